"""How a text becomes words that can be compared: without case, endings and number words."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from caal_node.core.prompt_files import read

_LISTS: Final[dict[str, Any]] = tomllib.loads(read("origin_words.toml"))
_WORD: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NUMBERS: Final[dict[str, int]] = _LISTS["numbers"]
_TENS: Final = range(20, 100, 10)
_ENDINGS: Final = (("ing", 7), ("ed", 6), ("en", 6), ("es", 6), ("s", 4), ("e", 5))
"""An ending is cut from a word of at least so many letters: lights, mailing, deleted."""


def plain(text: str) -> str:
    """Return `text` without case, and with one form for each letter."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


@lru_cache(2048)
def stem(word: str) -> str:
    """Return a plain word without its ending; a number word becomes digits."""
    if (number := _NUMBERS.get(word)) is not None:
        return str(number)
    if word.isdecimal():
        return word.lstrip("0") or "0"
    for ending, least in _ENDINGS:
        if len(word) >= least and word.endswith(ending):
            return word[: -len(ending)]
    return word


def words(text: str) -> list[str]:
    """Return the plain words of `text`; `playMusic` and `play_music` are two words each."""
    return _WORD.findall(plain(_HUMP.sub(" ", text)))


@lru_cache(256)
def stems(text: str) -> frozenset[str]:
    """Return the stems of all words of `text`. "Twenty five" is 25 as well."""
    found = [*map(stem, words(text))]
    if not any(map(str.isdecimal, found)):
        return frozenset(found)
    joined: list[str] = []
    for tens, units in pairwise(found):
        if tens.isdecimal() and units.isdecimal() and int(tens[:3]) in _TENS and len(units) == 1:
            joined.append(str(int(tens[:3]) + int(units)))
    return frozenset(found + joined)


def _stemmed(listed: Iterable[str]) -> frozenset[str]:
    return frozenset(stem(plain(word)) for word in listed)


COMMON: Final = _stemmed(_LISTS["common"])
REFERENCES: Final = _stemmed(_LISTS["references"])
PICKS: Final = _stemmed(_LISTS["picks"])
QUESTIONS: Final = frozenset[str](_LISTS["questions"])
REPEATS: Final = _stemmed(_LISTS["repeats"])
YES: Final = _stemmed(_LISTS["yes"])
NO: Final = _stemmed(_LISTS["no"])
DESTINATIONS: Final = frozenset[str](_LISTS["destinations"])
_VERBS: Final = tuple(_stemmed(group) for group in _LISTS["verbs"])


@lru_cache(512)
def verbs_like(word: str) -> frozenset[str]:
    """Return the stems of the verbs that people use for this stem; empty if it is no known verb."""
    return frozenset[str]().union(*(group for group in _VERBS if word in group))
