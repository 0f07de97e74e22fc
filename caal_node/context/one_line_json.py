"""Writes a value as one line for the model: JSON without spaces, nulls or JSON inside JSON.

The model reads every character of a result, and reads it again after every cut of the window, so a
line has a limit. What does not fit is omitted in this order, least harmful first: the ends of long
texts, all but the first items of lists, all but the first members of objects, deep levels. The
line stays valid JSON and says what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final

from caal_node.context.json_writer import (
    ALL,
    DEPTH,
    SHORT_TEXT,
    JsonShape,
    JsonWriter,
    encodable,
    json_text,
)
from caal_node.context.omission_notes import split_text, text_note
from caal_node.context.plain_values import JsonTexts, Plain, plain

LINE_CHARS: Final = 6_000
"""Characters of a line by default: about 2,000 tokens of JSON."""
MIN_CHARS: Final = 80
"""The lowest limit: it has room for the longest note about what is missing."""

_WHOLE: Final = JsonShape(ALL, ALL, ALL)
# Ever smaller shapes: text, keys, depth, and the fewest items that are worth showing in that shape.
_SHAPES: Final = (
    (SHORT_TEXT, 40, DEPTH, 5),
    (120, 24, DEPTH, 3),
    (60, 12, DEPTH, 1),
    (30, 12, 3, 1),
    (30, 6, 2, 1),
    (30, 6, 1, 0),
)
_NOTHING: Final = JsonShape(0, 0, 0, 0)


def to_line(value: object, *, max_chars: int = LINE_CHARS) -> str:
    """Write one line for the model, at most `max_chars` long. The same value gives the same bytes.

    Objects, lists and numbers become JSON: members that are null are dropped, and a text that is
    itself a JSON object or array is written as one. A text of one line stays as it is; one of
    several lines becomes a JSON string. Dates, dataclasses, pydantic models, sets and the like
    become the JSON that is most like them.

    The work grows with `max_chars`, not with the value (4 MiB: see tests/bench), except that JSON
    inside a text is read up to `plain_values.READ_CHARS`.

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
