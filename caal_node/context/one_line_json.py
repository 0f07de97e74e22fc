"""Writes a value as one line for the model: JSON without spaces, nulls or JSON inside JSON.

The model reads every character of a result, and reads it again after every cut of the window, so a
line has a limit. What does not fit is omitted in this order, least harmful first: the ends of long
texts, all but the first items of lists, all but the first members of objects, deep levels. The
line stays valid JSON and says what is missing.

A tool's result is converted to plain JSON values one level at a time: it may have megabytes, of
which the model reads a few thousand characters. A shortened value may be shortened once more, as
when a kept result has less room later. Its first note is then read to keep the true total:
`… 12 of 40 shown` becomes `… 5 of 40 shown`, not `… 5 of 13`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, time
from enum import Enum
from functools import lru_cache, partial
from itertools import islice
from typing import Any, Final, TypeAlias, cast

from pydantic import BaseModel
from pydantic_core import from_json

KEY: Final = "…"
"""The key under which an object has its note."""

_ITEMS: Final = re.compile(r"… \d+ of (at least )?(\d+) shown")
_KEYS: Final = re.compile(r"(?<!\d)\d++ of (at least )?(\d++) keys shown")
_TEXT: Final = re.compile(r"… \(\d+ of (at least )?(\d+) characters shown\)\Z")
_LONGEST_NOTE: Final = 80
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
    tail = text[-_LONGEST_NOTE:]
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
    if not isinstance(note, str) or len(note) > _LONGEST_NOTE:
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

LINE_CHARS: Final = 6_000
"""Characters of a line by default: about 2,000 tokens of JSON."""
MIN_CHARS: Final = 80
"""The lowest limit: it has room for the longest note about what is missing."""
# Ever smaller shapes: text, keys, depth, and the fewest items that are worth showing in that shape.
_SHAPES: Final = (
    (SHORT_TEXT, 40, DEPTH, 5),
    (120, 24, DEPTH, 3),
    (60, 12, DEPTH, 1),
    (30, 12, 3, 1),
    (30, 6, 2, 1),
    (30, 6, 1, 0),
)


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


_WHOLE: Final = JsonShape(ALL, ALL, ALL)
_NOTHING: Final = JsonShape(0, 0, 0, 0)


def to_line(value: object, *, max_chars: int = LINE_CHARS) -> str:
    """Write one line for the model, at most `max_chars` long. The same value gives the same bytes.

    Objects, lists and numbers become JSON: members that are null are dropped, and a text that is
    itself a JSON object or array is written as one. A text of one line stays as it is; one of
    several lines becomes a JSON string. Dates, dataclasses, pydantic models, sets and the like
    become the JSON that is most like them.

    The work grows with `max_chars`, not with the value (4 MiB: see tests/bench), except that JSON
    inside a text is read up to `READ_CHARS`.

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
            return _text_line(top.strip(), max_chars)
    return _json_line(top, max_chars, texts)


def _text_line(text: str, max_chars: int) -> str:
    write = encodable if len(text[:max_chars].splitlines()) <= 1 else json_text
    line = write(text) if len(text) <= max_chars else None
    end, total = split_text(text)
    shown = min(end, max_chars)
    while line is None or len(line) > max_chars:
        line = write(text[:shown] + text_note(shown, total))
        shown = max(0, shown * max_chars // len(line) - 1)
    return line


def _json_line(value: Plain, max_chars: int, texts: JsonTexts) -> str:
    def attempt(shape: JsonShape) -> JsonWriter:
        return JsonWriter(value, shape, max_chars, texts)

    whole = attempt(_WHOLE)
    if whole.line is not None:
        return whole.line
    if whole.long_text:  # without long texts, shorter ones would not make the line shorter
        shape = partial(JsonShape, keys=ALL, items=ALL)
        if line := _largest(SHORT_TEXT, max_chars, whole.reached, lambda n: attempt(shape(n))):
            return line
    for text, keys, depth, least in _SHAPES:
        shape = partial(_shape, text, keys, depth)
        if line := _largest(least, max_chars // 2, whole.reached, lambda n, s=shape: attempt(s(n))):
            return line
    line = attempt(_NOTHING).line
    assert line is not None  # one note, which is shorter than MIN_CHARS
    return line


def _shape(text: int, keys: int, depth: int, count: int) -> JsonShape:
    # An object with more members than a record has is in fact a list, so items limit its keys too.
    return JsonShape(text, max(keys, count), count, depth)


def _largest(low: int, high: int, guess: int, attempt: Callable[[int], JsonWriter]) -> str | None:
    """Return the line of nearly the largest size that fits, or None where not even `low` does.

    Most values are one long list, so the number of items that a failed attempt reached is nearly
    always the size to try next. Otherwise the gap is halved until it is a quarter of what fits.
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
