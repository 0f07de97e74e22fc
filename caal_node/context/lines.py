"""A value as one line for the model: JSON without spaces, nulls or JSON inside JSON.

Every character of a result is read by the model, and again after every cut of the window, so a
line has a cap. What does not fit is left out where it costs least, in this order: the ends of long
texts, list items past the first ones, object members past the first ones, deep levels. The line
stays valid JSON and says what is missing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Any, Final

from caal_node.context.cuts import (
    KEY,
    Total,
    items_note,
    keys_note,
    noted_items,
    noted_keys,
    split_text,
    text_note,
)
from caal_node.context.values import JsonTexts, Plain, plain

LINE_CHARS: Final = 6_000
"""Characters of a line unless told otherwise: about 2,000 tokens of JSON."""
MIN_CHARS: Final = 80
"""The smallest cap: room for the longest note about what is missing."""

_ALL: Final = 1 << 62
_DEPTH: Final = 32
"""Levels that a line shows; also what ends a value that contains itself."""
_NUMBER_BITS: Final = 212
"""Bits of the longest whole number that is written out: 64 digits."""
_NOTE_CHARS: Final = 48
"""A text is cut only where more than a note's length is saved."""
_NAME_CHARS: Final = 32
"""Names up to this length are encoded once: a list of records repeats them."""
_encode_text: Final = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class _Shape:
    """How much of a value is written: characters of a text, members, items, levels."""

    text: int
    keys: int
    items: int
    depth: int = _DEPTH


_WHOLE: Final = _Shape(_ALL, _ALL, _ALL)
_SHORT_TEXT: Final = 300
"""Characters that tell what a text is about. Shorter than this, whole items are left out first."""
# (text, keys, depth) and the fewest items that are worth showing in that shape.
_RUNGS: Final = (
    (_SHORT_TEXT, 40, _DEPTH, 5),
    (120, 24, _DEPTH, 3),
    (60, 12, _DEPTH, 1),
    (30, 12, 3, 1),
    (30, 6, 2, 1),
    (30, 6, 1, 0),
)
_NOTHING: Final = _Shape(0, 0, 0, 0)


def to_line(value: object, *, max_chars: int = LINE_CHARS) -> str:
    """One line for the model, at most `max_chars` long; the same value gives the same bytes.

    Objects, lists and numbers become JSON: members that are null are dropped, and a text that is
    itself a JSON object or array stands as what it is. A text of one line stays as it is; one of
    several becomes a JSON string. Dates, dataclasses, pydantic models, sets and the like become
    their nearest JSON.

    The work grows with `max_chars`, not with the value (4 MiB: see tests/bench), except that JSON
    inside a text is read up to `values.READ_CHARS`.

    Raises:
        ValueError: `max_chars` is below `MIN_CHARS`.
    """
    if max_chars < MIN_CHARS:
        raise ValueError(f"max_chars must be at least {MIN_CHARS}, not {max_chars}")
    texts = JsonTexts()
    top = plain(value)
    if isinstance(top, str):
        top = texts.read(top)
        if isinstance(top, str):
            return _words(top.strip(), max_chars)
    return _json(top, max_chars, texts)


def _words(text: str, max_chars: int) -> str:
    write = _encodable if len(text[:max_chars].splitlines()) <= 1 else _json_text
    line = write(text) if len(text) <= max_chars else None
    end, total = split_text(text)
    shown = min(end, max_chars)
    while line is None or len(line) > max_chars:
        line = write(text[:shown] + text_note(shown, total))
        shown = max(0, shown * max_chars // len(line) - 1)
    return line


def _json(value: Plain, max_chars: int, texts: JsonTexts) -> str:
    attempt = partial(_attempt, value, max_chars, texts)
    whole = attempt(_WHOLE)
    if whole.line is not None:
        return whole.line
    if whole.long_text:  # else shorter texts would end at the same place
        shape = partial(_Shape, keys=_ALL, items=_ALL)
        if line := _most(_SHORT_TEXT, max_chars, whole.reached, lambda n: attempt(shape(n))):
            return line
    for text, keys, depth, least in _RUNGS:
        shape = partial(_rung_shape, text, keys, depth)
        if line := _most(least, max_chars // 2, whole.reached, lambda n, s=shape: attempt(s(n))):
            return line
    line = attempt(_NOTHING).line
    assert line is not None  # one note, which is shorter than MIN_CHARS
    return line


def _rung_shape(text: int, keys: int, depth: int, count: int) -> _Shape:
    # An object with more members than a record has is a list by another name.
    return _Shape(text, max(keys, count), count, depth)


@dataclass(frozen=True, slots=True)
class _Attempt:
    line: str | None
    """None: too long."""
    reached: int
    """Items of the outermost list that were written when the room ended."""
    long_text: bool
    """A text came by that is worth cutting."""


def _attempt(value: Plain, room: int, texts: JsonTexts, shape: _Shape) -> _Attempt:
    writer = _Writer(shape, room, texts)
    try:
        writer.value(value, 0)
    except _Full:
        return _Attempt(None, writer.reached, writer.long_text)
    return _Attempt("".join(writer.parts), 0, writer.long_text)


def _most(low: int, high: int, guess: int, attempt: Callable[[int], _Attempt]) -> str | None:
    """The line of nearly the largest size that fits; None when not even `low` does.

    A failed attempt tells how far it came, which is nearly always the answer to try next: most
    values are one long list. Otherwise the gap is halved until it is a quarter of what fits.
    """
    best = attempt(low).line
    if best is None:
        return None
    fits, fails, size = low, high + 1, guess
    while fails - fits > 1 + fits // 4:
        size = min(max(size, fits + 1), fails - 1)
        tried = attempt(size)
        if tried.line is not None:
            fits, best, size = size, tried.line, 2 * size + 1
        elif fits < tried.reached < size:
            fails, size = size, tried.reached
        elif tried.reached == fits and size <= 2 * fits + 1:
            break
        else:
            fails, size = size, math.isqrt(fits * size)
    return best


class _Full(Exception):
    """The line is longer than it may be."""


class _Writer:
    """Writes one value in one shape, and stops where the room ends."""

    def __init__(self, shape: _Shape, room: int, texts: JsonTexts) -> None:
        self.parts: list[str] = []
        self.reached = 0
        self.long_text = False
        self._shape = shape
        self._room = room
        self._texts = texts

    def value(self, value: object, depth: int) -> None:
        if (number := _number(value)) is not None:
            self._put(number)
            return
        seen = plain(value)
        if isinstance(seen, str):
            seen = self._texts.read(seen)
        # The concrete types stand first because asking for the abstract ones takes longer.
        if isinstance(seen, str):
            self._put(self._text(seen))
        elif isinstance(seen, (dict, Mapping)):
            self._object(seen, depth)
        elif isinstance(seen, (list, Sequence)):
            self._array(seen, depth)
        else:
            self._put(_number(seen) or "null")

    def _put(self, part: str) -> None:
        self._room -= len(part)
        if self._room < 0:
            raise _Full
        self.parts.append(part)

    def _text(self, text: str) -> str:
        self.long_text = self.long_text or len(text) > _SHORT_TEXT + _NOTE_CHARS
        if len(text) > self._shape.text + _NOTE_CHARS:
            end, total = split_text(text)
            shown = min(end, self._shape.text)
            text = text[:shown] + text_note(shown, total)
        elif len(text) > self._room:
            raise _Full
        return _json_text(text)

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
                    total = total or Total(len(members))
                    break
                self._put(f"{between}{self._name(key)}:")
                self.value(member, depth + 1)
                shown += 1
                between = ","
        except _Full:
            self.reached = max(self.reached, shown)
            raise
        if total is not None:
            self._put(f"{between}{_json_text(KEY)}:{_json_text(keys_note(shown, total))}}}")
        else:
            self._put("}" if shown else "{}")

    def _array(self, values: Sequence[Any], depth: int) -> None:
        total = noted_items(values)
        count = len(values) - (total is not None)
        limit = self._shape.items if depth < self._shape.depth else 0
        most = min(count, limit)
        shown = 0
        between = "["
        try:
            for member in islice(values, most):
                self._put(between)
                self.value(member, depth + 1)
                shown += 1
                between = ","
        except _Full:
            self.reached = shown  # the outermost list comes last
            raise
        if most < count or total is not None:
            self._put(f"{between}{_json_text(items_note(most, total or Total(count)))}]")
        else:
            self._put("]" if most else "[]")


def _number(value: object) -> str | None:
    """A number, bool or null as JSON; None for anything else, also for their subclasses."""
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
    return _json_text(name)


def _json_text(text: str) -> str:
    line = _encode_text(text)
    if line.isascii():
        return line
    # JSON lets these stand bare, but readers of lines break at them.
    for character, escape in (("\x85", "\\u0085"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
        if character in line:
            line = line.replace(character, escape)
    return _encodable(line)


def _encodable(text: str) -> str:
    """The text without half characters (lone surrogates), which no wire can carry."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
