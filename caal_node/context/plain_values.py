"""Whatever a tool gives, seen one level at a time as plain JSON.

One level at a time, because a value may be megabytes of which a few thousand characters are ever
shown: nothing here walks more than it is asked for.
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
"""Characters of JSON text that are read for one line: 1 to 7 ms. Texts beyond it are read to this
point, and the line says that it does not know the rest."""
_SORTED: Final = 5_000
"""Members of a set that are put in order: 2 ms."""
_AS_IT_IS: Final = frozenset({type(None), bool, int, str, dict, list})
_EDGE: Final = 64
"""Characters of a text that are looked at for its first and last bracket."""


def plain(value: object) -> Plain:
    """One level of `value`; its members are as they were."""
    if type(value) in _AS_IT_IS:
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
        # A set's own order differs between runs; sorting a huge one would hold everything up.
        members = cast(Set[Any], value)
        return sorted(members, key=repr) if len(members) <= _SORTED else f"({len(members)} values)"
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
    """Reads JSON that stands inside a text, each text once, up to a total of `READ_CHARS`."""

    def __init__(self) -> None:
        self._left = READ_CHARS
        self._read: dict[int, tuple[str, Plain]] = {}

    def read(self, text: str) -> Plain:
        """The object or array that `text` is, or `text` itself. Bare numbers stay text."""
        if not _has_brackets(text):
            return text
        if (known := self._read.get(id(text))) is not None:
            return known[1]
        value = self._parse(text)
        self._read[id(text)] = text, value  # holding the text keeps its id from being used again
        return value

    def _parse(self, text: str) -> Plain:
        whole = len(text) <= self._left
        if not whole and self._left < READ_CHARS:
            return text  # something was read before it: the rest is shown as text, and cut as text
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
    first, last = text[:_EDGE].lstrip()[:1], text[-_EDGE:].rstrip()[-1:]
    return (first, last) in (("{", "}"), ("[", "]"))
