"""Writes a value as compact JSON in a given shape, and stops as soon as it is too long."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from caal_node.context.omission_notes import (
    KEY,
    OmittedTotal,
    items_note,
    keys_note,
    noted_items,
    noted_keys,
    split_text,
    text_note,
)
from caal_node.context.plain_values import JsonTexts, plain

ALL: Final = 1 << 62
DEPTH: Final = 32
"""Levels of a value that are written. The limit also ends a value that contains itself."""
SHORT_TEXT: Final = 300
"""Characters that show what a text is about. Items are left out before texts become shorter."""

_NUMBER_BITS: Final = 212
"""Bits of the longest whole number that is written: 64 digits."""
_NOTE_CHARS: Final = 48
"""A text is cut only where more than a note's length is saved."""
_NAME_CHARS: Final = 32
"""Names up to this length are encoded once: a list of records repeats them."""
_encode_text: Final = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class JsonShape:
    """Limits of a line: characters of a text, keys of an object, items of a list, and levels."""

    text: int
    keys: int
    items: int
    depth: int = DEPTH


class _TooLong(Exception):
    """The line is longer than it may be."""


class JsonWriter:
    """Writes one value in one shape, and stops after `room` characters."""

    def __init__(self, value: object, shape: JsonShape, room: int, texts: JsonTexts) -> None:
        self.line: str | None = None
        """None where it is too long."""
        self.reached = 0
        """Items of the outermost list that were written before the line was too long."""
        self.long_text = False
        """Whether the value has a text that is worth cutting."""
        self._shape = shape
        self._room = room
        self._texts = texts
        self._parts: list[str] = []
        try:
            self._value(value, 0)
            self.line = "".join(self._parts)
        except _TooLong:
            pass

    def _value(self, value: object, depth: int) -> None:
        """Append one value, `depth` levels below the top."""
        if (number := _number(value)) is not None:
            self._append(number)
            return
        simple = plain(value)
        if isinstance(simple, str):
            simple = self._texts.read(simple)
        # The concrete types come first because a check for the abstract ones takes longer.
        if isinstance(simple, str):
            self._append(self._text(simple))
        elif isinstance(simple, (dict, Mapping)):
            self._object(simple, depth)
        elif isinstance(simple, (list, Sequence)):
            self._array(simple, depth)
        else:
            self._append(_number(simple) or "null")

    def _append(self, part: str) -> None:
        self._room -= len(part)
        if self._room < 0:
            raise _TooLong
        self._parts.append(part)

    def _text(self, text: str) -> str:
        self.long_text = self.long_text or len(text) > SHORT_TEXT + _NOTE_CHARS
        if len(text) > self._shape.text + _NOTE_CHARS:
            end, total = split_text(text)
            shown = min(end, self._shape.text)
            text = text[:shown] + text_note(shown, total)
        elif len(text) > self._room:
            raise _TooLong
        return json_text(text)

    def _name(self, key: object) -> str:
        name = key if type(key) is str else str(plain(key))
        return _short_name(name) if len(name) <= _NAME_CHARS else self._text(name)

    def _object(self, members: Mapping[Any, Any], depth: int) -> None:
        total = noted_keys(members)
        noted = total is not None
        limit = self._shape.keys if depth < self._shape.depth else 0
        shown = 0
        between = "{"
        try:
            for key, member in members.items():
                if member is None or (noted and key == KEY):
                    continue
                if shown == limit:
                    total = total or OmittedTotal(len(members))
                    break
                self._append(f"{between}{self._name(key)}:")
                self._value(member, depth + 1)
                shown += 1
                between = ","
        except _TooLong:
            self.reached = max(self.reached, shown)
            raise
        if total is not None:
            self._append(f"{between}{json_text(KEY)}:{json_text(keys_note(shown, total))}}}")
        else:
            self._append("}" if shown else "{}")

    def _array(self, values: Sequence[Any], depth: int) -> None:
        total = noted_items(values)
        count = len(values) - (total is not None)
        limit = self._shape.items if depth < self._shape.depth else 0
        most = min(count, limit)
        shown = 0
        between = "["
        try:
            for member in islice(values, most):
                self._append(between)
                self._value(member, depth + 1)
                shown += 1
                between = ","
        except _TooLong:
            self.reached = shown  # the outermost list comes last
            raise
        if most < count or total is not None:
            self._append(f"{between}{json_text(items_note(most, total or OmittedTotal(count)))}]")
        else:
            self._append("]" if most else "[]")


def _number(value: object) -> str | None:
    """Write a number, bool or null as JSON. Anything else, also a subclass of int, gives None."""
    if value is None:
        return "null"
    match value:
        case bool():
            return "true" if value else "false"
        case float() if math.isfinite(value) and type(value) is float:
            return repr(value)
        case int() if type(value) is int:
            bits = value.bit_length()
            return repr(value) if bits <= _NUMBER_BITS else f'"(a number of {bits} bits)"'
        case _:
            return None


@lru_cache(maxsize=1024)
def _short_name(name: str) -> str:
    return json_text(name)


def json_text(text: str) -> str:
    """Write a text as a JSON string on one line."""
    line = _encode_text(text)
    if line.isascii():
        return line
    # JSON allows these unescaped, but whoever reads line by line breaks the text at them.
    for character, escape in (("\x85", "\\u0085"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
        if character in line:
            line = line.replace(character, escape)
    return encodable(line)


def encodable(text: str) -> str:
    """Replace lone surrogates (halves of characters) in a text, as UTF-8 cannot encode them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
