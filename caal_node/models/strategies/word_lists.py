"""The word lists of `prompts/protocol_words.toml`, and how a text becomes words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any, Final

from caal_node.core.prompt_files import read

_LISTS: Final[dict[str, Any]] = tomllib.loads(read("protocol_words.toml"))
JOINERS: Final[Sequence[str]] = _LISTS["joiners"]
NUMBERS: Final = frozenset[str](_LISTS["numbers"])
ARTICLES: Final = frozenset[str](_LISTS["articles"])
MEASURES: Final = frozenset[str](_LISTS["measures"])
TIMES: Final = frozenset[str](_LISTS["times"])
COMMON: Final = frozenset[str](_LISTS["common"])

_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
STEM_CHARS: Final = 4
"""Words that begin alike in this many letters count as one: drive and driving, quiet and quietly.
That is shorter than a stemmer would have it, and the same for every language."""


def words(text: str) -> list[str]:
    """Return the lower-case words of `text`; `play_music` and `playMusic` are two words each."""
    return [word.casefold() for word in _WORD.findall(_HUMP.sub(" ", text).replace("_", " "))]


def stems(text: str) -> frozenset[str]:
    """Return the first letters of each word of `text`."""
    return frozenset(word[:STEM_CHARS] for word in words(text))
