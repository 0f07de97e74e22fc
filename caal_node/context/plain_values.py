"""Converts a tool's result to plain JSON values, with notes in place of what was left out.

It converts one level at a time because a result may have megabytes, of which the model reads a few
thousand characters: no more is converted than is asked for.

A shortened value may be shortened once more, as when a kept result has less room later. Its first
note is then read to keep the true total: `… 12 of 40 shown` becomes `… 5 of 40 shown`, not
`… 5 of 13`.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, time
from enum import Enum
from typing import Any, Final, TypeAlias, cast

from pydantic import BaseModel
from pydantic_core import from_json

KEY: Final = "…"
"""The key under which an object has its note."""

_ITEMS: Final = re.compile(r"… \d+ of (at least )?(\d+) shown")
_KEYS: Final = re.compile(r"(?<!\d)\d++ of (at least )?(\d++) keys shown")
_TEXT: Final = re.compile(r"… \(\d+ of (at least )?(\d+) characters shown\)\Z")
_NOTE_CHARS: Final = 80
"""No note has more characters."""

Plain: TypeAlias = bool | int | float | str | Mapping[Any, Any] | Sequence[Any] | None
READ_CHARS: Final = 65_536
"""Characters of JSON text that are parsed for one line: 1 to 7 ms. A longer text is parsed to this
point, and the line says that the rest is unknown."""
_SORTED_MAX: Final = 5_000
"""Members of the largest set that is sorted: 2 ms."""
_PLAIN_TYPES: Final = frozenset({type(None), bool, int, str, dict, list})
_EDGE_CHARS: Final = 64
"""Characters at either end of a text in which its first and last bracket are searched."""


@dataclass(frozen=True, slots=True)
class OmittedTotal:
    """How much there is in all, or at least, where `open` says that the rest was never read."""

    count: int
    open: bool = False

    def __str__(self) -> str:
        return f"at least {self.count}" if self.open else str(self.count)


def items_note(shown: int, total: OmittedTotal) -> str:
    return f"… {shown} of {total} shown"


def keys_note(shown: int, total: OmittedTotal) -> str:
    return f"{shown} of {total} keys shown"


def text_note(shown: int, total: OmittedTotal) -> str:
    return f"… ({shown} of {total} characters shown)"


def noted_items(values: Sequence[Any]) -> OmittedTotal | None:
    """Read the total from the note at a list's end; a list that was never cut gives None."""
    return _read(_ITEMS, values[-1]) if values else None


def noted_keys(members: Mapping[Any, Any]) -> OmittedTotal | None:
    """Read the total from an object's note; an object that was never cut gives None."""
    return _read(_KEYS, members.get(KEY))


def split_text(text: str) -> tuple[int, OmittedTotal]:
    """Return how many characters are in front of the note, and how many there were originally."""
    tail = text[-_NOTE_CHARS:]
    if match := _TEXT.search(tail):
        return len(text) - len(tail) + match.start(), OmittedTotal(
            int(match[2]), match[1] is not None
        )
    return len(text), OmittedTotal(len(text))


def mark_unread(value: object) -> None:
    """Add notes to the last members of a value whose text was read only in part.

    The last list or object of each level may go on in the unread part; all others are whole.
    """
    while isinstance(value, (list, dict)):
        total = OmittedTotal(len(cast(list[Any], value)), open=True)
        if isinstance(value, list):
            values = cast(list[Any], value)
            last = values[-1] if values else None
            values.append(items_note(total.count, total))
        else:
            members = cast(dict[str, Any], value)
            last = next(reversed(members.values()), None)
            members[KEY] = keys_note(total.count, total)
        value = last


def _read(pattern: re.Pattern[str], note: object) -> OmittedTotal | None:
    if not isinstance(note, str) or len(note) > _NOTE_CHARS:
        return None
    match = pattern.fullmatch(note)
    return OmittedTotal(int(match[2]), match[1] is not None) if match else None


def plain(value: object) -> Plain:
    """Convert one level of `value`. Its members stay as they are."""
    if type(value) in _PLAIN_TYPES:
        return cast(Plain, value)
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return cast(Mapping[Any, Any], value)
    if isinstance(value, BaseModel):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Set):
        # A set's own order differs between runs; to sort a huge one would block the event loop.
        members = cast(Set[Any], value)
        return (
            sorted(members, key=repr) if len(members) <= _SORTED_MAX else f"({len(members)} values)"
        )
    if isinstance(value, (bytes, bytearray)):
        return f"({len(value)} bytes)"
    if isinstance(value, Sequence):
        return cast(Sequence[Any], value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if type(value).__str__ is object.__str__ and type(value).__repr__ is object.__repr__:
        return f"({type(value).__name__})"  # the default text is an address in memory
    return str(value)


class JsonTexts:
    """Parses texts that hold JSON, each text once, up to a total of `READ_CHARS`."""

    def __init__(self) -> None:
        self._left = READ_CHARS
        self._read: dict[int, tuple[str, Plain]] = {}

    def read(self, text: str) -> Plain:
        """Return the object or array that `text` holds, else `text` itself. Numbers stay text."""
        if not _has_brackets(text):
            return text
        if (known := self._read.get(id(text))) is not None:
            return known[1]
        value = self._parse(text)
        self._read[id(text)] = text, value  # while the text is held, its id is not used again
        return value

    def _parse(self, text: str) -> Plain:
        whole = len(text) <= self._left
        if not whole and self._left < READ_CHARS:
            return text  # only the first text may be parsed in part; this one stays text
        part = text if whole else text[: self._left]
        self._left -= len(part)
        try:
            value: Any = from_json(part, allow_partial=not whole)
        except (ValueError, TypeError):  # TypeError: it has half of a surrogate pair
            return text
        if not whole:
            mark_unread(value)
        return value


def _has_brackets(text: str) -> bool:
    first, last = text[:_EDGE_CHARS].lstrip()[:1], text[-_EDGE_CHARS:].rstrip()[-1:]
    return (first, last) in (("{", "}"), ("[", "]"))
