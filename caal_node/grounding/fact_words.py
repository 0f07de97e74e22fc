"""The words of `prompts/stated_facts.toml`, and its units."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from caal_node.core.prompt_files import read
from caal_node.policy.heard_words import stem

_LANGUAGES: Final[Mapping[str, Any]] = tomllib.loads(read("stated_facts.toml"))
WORDS: Final[Mapping[str, Any]] = _LANGUAGES["en"]
GERMAN_LENGTHS: Final[Mapping[str, Any]] = _LANGUAGES["de"]["lengths"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of a figure. A value of it is `value * factor + offset` in its dimension's first."""

    name: str
    dimension: str
    factor: float = 0.0
    """0 where the unit says no scale, as "degrees" does."""
    offset: float = 0.0


UNITS: Final[Mapping[str, Unit]] = {
    word: Unit(name, dimension, float(factor), float(offset))
    for name, (dimension, factor, offset, spelt) in WORDS["units"].items()
    for word in spelt
}
"""The units by their words."""
_SPELT: Final = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
UNIT_BEHIND: Final = re.compile(rf"[ \u00a0\u202f]?-?(?:of an? )?({_SPELT})(?![^\W\d_])")
"""A unit behind a number, of text in lower case."""


def listed(key: str) -> frozenset[str]:
    """Return a list of words."""
    return frozenset[str](WORDS[key])


def stemmed(key: str) -> frozenset[str]:
    """Return a list of words as stems."""
    return frozenset(map(stem, listed(key)))
