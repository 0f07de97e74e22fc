"""Converts a tool's result to plain JSON values, one level at a time.

It goes one level at a time because a result may have megabytes, of which the model reads a few
thousand characters: no more is converted than is asked for.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence, Set
from datetime import date, time
from enum import Enum
from typing import Any, Final, TypeAlias, cast

from pydantic import BaseModel
from pydantic_core import from_json

from caal_node.context.omission_notes import mark_unread

Plain: TypeAlias = bool | int | float | str | Mapping[Any, Any] | Sequence[Any] | None

READ_CHARS: Final = 65_536
"""Characters of JSON text that are parsed for one line: 1 to 7 ms. A longer text is parsed to this
point, and the line says that the rest is unknown."""
_SORTED_MAX: Final = 5_000
"""Members of the largest set that is sorted: 2 ms."""
_PLAIN_TYPES: Final = frozenset({type(None), bool, int, str, dict, list})
_EDGE_CHARS: Final = 64
"""Characters at either end of a text in which its first and last bracket are searched."""


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
        except ValueError:
            return text
        if not whole:
            mark_unread(value)
        return value


def _has_brackets(text: str) -> bool:
    first, last = text[:_EDGE_CHARS].lstrip()[:1], text[-_EDGE_CHARS:].rstrip()[-1:]
    return (first, last) in (("{", "}"), ("[", "]"))
