"""From what a person says to the answer of one question's field. Pure; English words."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from mcp_bridge import Field

Value: TypeAlias = str | int | float | bool | list[str]

_YES: Final = frozenset({"yes", "yeah", "yep", "sure", "ok", "okay", "right", "correct", "please"})
_NO: Final = frozenset({"no", "nope", "not", "don't", "never"})
_STOP: Final = re.compile(r"\s*(never ?mind|cancel( (it|that))?|stop|forget (it|that))\W*", re.I)
_NUMBER: Final = re.compile(r"-?\d+(?:[.,]\d+)?")
_WORDS: Final = re.compile(r"[\w']+")


def stops(said: str) -> bool:
    """Whether the person wants to leave the question."""
    return _STOP.fullmatch(said) is not None


def agrees(said: str) -> bool | None:
    """Yes or no; None where it is neither, or both."""
    words = {word.lower() for word in _WORDS.findall(said.replace("’", "'"))}
    if bool(words & _YES) == bool(words & _NO):
        return None
    return bool(words & _YES)


def value_of(field: Field, said: str) -> Value | None:
    """What `said` means for this field; None where it does not say."""
    match field.kind:
        case "text":
            return said.strip() or None
        case "boolean":
            return agrees(said)
        case "number" | "integer":
            return _number(said, whole=field.kind == "integer")
        case "choice":
            named = _named(field, said)
            return named[0] if len(named) == 1 else None
        case "choices":
            return _named(field, said) or None


def _number(said: str, *, whole: bool) -> int | float | None:
    found = _NUMBER.findall(said)
    if len(found) != 1:
        return None
    number = float(found[0].replace(",", "."))
    if whole:
        return int(number) if number.is_integer() else None
    return number


def _named(field: Field, said: str) -> list[str]:
    """Choices whose words, or whose value, are said as whole words."""
    text = f" {' '.join(_WORDS.findall(said.lower()))} "
    return [
        value
        for value, words in field.choices
        if any(f" {' '.join(_WORDS.findall(name.lower()))} " in text for name in (value, words))
    ]
