"""Numbers in a text, in digits or words, with how exactly each was stated; and the words of units.

The words are in `prompts/stated_facts.toml`, with others that facts are stated with.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from caal_node.core.prompt_files import read
from caal_node.policy.heard_words import stem

# The words of the file, and its units.

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


# Numbers.

NUMBERS_MAX: Final = 2_048
"""Numbers of one text that are read: as many as the longest text that is read can hold."""
_SMALL: Final[Mapping[str, int]] = WORDS["small_numbers"]
_MAGNITUDES: Final[Mapping[str, int]] = WORDS["magnitudes"]
_HUNDRED: Final = 100
_HUNDRED_STEP: Final = 10.0
"""Hundreds in words are meant to the ten, as "a hundred" of 104."""
_PARTS: Final[Mapping[str, float]] = {"half": 0.5, "quarter": 0.25}
_TOKEN: Final = re.compile(
    r"(?P<figure>(?<![\w.,:/])(?P<sign>(?<![\w)])[-−])?(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,9},\d\d(?![\d,.]\d|\d)|\d{1,15}(?:\.\d{1,9})?)"
    r"(?P<ordinal>st|nd|rd|th)?(?![\d])(?P<short>[kK](?![^\W\d_]))?)"
    r"|(?P<word>[^\W\d_]+)"
)
_JOINED: Final = re.compile(r"[ \u00a0]?[- \u00a0]?")
_AND_PART: Final = re.compile(r" and (?:an? )?(three )?(half|quarters?)(?! past| to)\b")
_MINUS: Final = frozenset({"minus", "negative"})


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a text. `start` and `end` are its characters."""

    start: int
    end: int
    value: float
    step: float = 1.0
    """The size of the last place that was stated: 0.1 of "21.4", 1000 of "fourteen thousand"."""
    ordinal: bool = False
    is_word: bool = False
    is_bare_one: bool = False
    """The word "one" alone, which is more often no number ("the first one")."""


@dataclass(frozen=True, slots=True)
class _Token:
    start: int
    end: int
    word: str
    value: float = 0.0
    step: float = 1.0
    ordinal: bool = False


def numbers(text: str) -> list[Number]:
    """Return the numbers of a text in lower case, in order, the first NUMBERS_MAX of them.

    "Three one" is two numbers, "twenty one" and "a hundred and five" are one each. Ordinals are
    read in digits alone ("28th"): as words they say which one, and not how many.
    """
    tokens = list(_tokens(text))
    found, at = list[Number](), 0
    while at < len(tokens) and len(found) < NUMBERS_MAX:
        number, after = _number(text, tokens, at)
        if number is not None:
            found.append(number)
        at = after
    return found


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        if word := match["word"]:
            yield _Token(match.start(), match.end(), word)
            continue
        digits: str = match["digits"]
        if digits[-3:-2] == ",":  # "38,60" as most of Europe writes it
            digits = f"{digits[:-3]}.{digits[-2:]}"
        digits = digits.replace(",", "")
        value = float(digits) * (-1 if match["sign"] else 1)
        step = 10.0 ** -len(digits.partition(".")[2])
        if match["short"]:
            value, step = value * 1000, step * 1000
        yield _Token(match.start(), match.end(), "", value, step, bool(match["ordinal"]))


def _number(text: str, tokens: list[_Token], at: int) -> tuple[Number | None, int]:
    """Read the number that begins at a token; return it, and the token behind it."""
    first = tokens[at]
    if first.ordinal:
        return Number(first.start, first.end, first.value, ordinal=True), at + 1
    read = _whole(text, tokens, at)
    if read is None:
        return None, at + 1
    value, step, end = _with_places(text, tokens, *read)
    start, last = first.start, tokens[end - 1].end
    if part := _AND_PART.match(text, last):
        value += _PARTS[part[2].rstrip("s")] * (3 if part[1] else 1)
        step, last = min(step, 0.1), part.end()
        while end < len(tokens) and tokens[end].start < last:
            end += 1
        size = _MAGNITUDES.get(tokens[end].word) if end < len(tokens) else None
        if size is not None and _joined(text, tokens[end - 1], tokens[end]):
            value, step, last, end = value * size, step * size, tokens[end].end, end + 1
    before = tokens[at - 1] if at else None
    if before is not None and before.word in _MINUS and _joined(text, before, first):
        value, start = -value, before.start
    bare = first.word == "one" and last == first.end
    return Number(start, last, value, step, is_word=bool(first.word), is_bare_one=bare), end


def _joined(text: str, one: _Token, other: _Token) -> bool:
    return _JOINED.fullmatch(text, one.end, other.start) is not None


def _whole(text: str, tokens: list[_Token], at: int) -> tuple[float, float, int] | None:
    """Read a number up to its decimals: its value, the size of its last place, where it ends."""
    first, total, step = tokens[at], 0.0, tokens[at].step
    part: float | None = None if first.word else first.value
    begun, by_magnitude = at, False
    at += not first.word
    while at < len(tokens) and (at == begun or _joined(text, tokens[at - 1], tokens[at])):
        word = tokens[at].word
        small, size = _SMALL.get(word), _MAGNITUDES.get(word)
        if size is not None:
            if part is None and not total and begun and tokens[begun - 1].word == "a":
                part = 1.0
            if part is None or (size == _HUNDRED and not 0 < part < _HUNDRED):
                break
            if size == _HUNDRED:
                part, step = part * size, _HUNDRED_STEP
            else:
                total, part, step = total + part * size, None, step * size
        elif small is not None and _goes_on(part, small, by_magnitude):
            part, step = (part or 0.0) + small, 1.0
        elif not (word == "and" and by_magnitude and _says_small(tokens, at + 1)):
            break
        by_magnitude = size is not None or word == "and"
        at += 1
    if at == begun:
        return (12.0, 1.0, at + 1) if first.word == "dozen" else None
    return total + (part or 0.0), step, at


def _says_small(tokens: list[_Token], at: int) -> bool:
    return at < len(tokens) and tokens[at].word in _SMALL


def _goes_on(part: float | None, small: int, by_magnitude: bool) -> bool:
    """Say whether a word below a hundred belongs to what was read so far: "twenty" and "one"."""
    if part is None or by_magnitude:
        return True
    return part % _HUNDRED >= 20 and part % 10 == 0 and 0 < small < 10


def _with_places(
    text: str, tokens: list[_Token], value: float, step: float, at: int
) -> tuple[float, float, int]:
    """Take in decimals that are said: "point two five"."""
    if at + 1 >= len(tokens) or tokens[at].word != "point":
        return value, step, at
    if not _joined(text, tokens[at - 1], tokens[at]):
        return value, step, at
    places, end = "", at + 1
    while end < len(tokens) and _joined(text, tokens[end - 1], tokens[end]):
        digit = _SMALL.get(tokens[end].word)
        if digit is None or (digit > 9 and places):
            break
        places, end = places + str(digit), end + 1
    if not places:
        return value, step, at
    return value + float(f"0.{places}"), 10.0 ** -len(places), end
