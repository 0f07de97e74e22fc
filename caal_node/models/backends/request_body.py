"""A request's body as JSON, without holding the event loop.

One `json.dumps` over a 4 MiB tool result takes longer than an audio frame (23 ms measured on two
cores, against 20), and a thread would not help: the encoder holds the interpreter's lock. So the
body is written piece by piece, and the loop has its turn in between. A piece is a whole tool or
message where that is short: one call for each of their values takes ten times as long.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

SLICE_CHARS: Final = 65_536
"""Characters escaped at a time: about 0.5 ms. An escape concerns one character, so a string may
be cut anywhere."""
BREATHE_BYTES: Final = 262_144
"""Bytes between two turns of the event loop: about 2 ms."""
_WHOLE_LEVEL: Final = 2
"""Levels below the body at which a value may be one piece: the tools and messages in its lists.
Looking for short values at every level would read a deep one again for each of its levels."""
_VALUE_CHARS: Final = 8
"""What a value counts for beside its text: with nothing but numbers, 8,192 of them are 1 ms."""


async def encode(body: Mapping[str, Any]) -> bytes:
    """`body` as compact UTF-8 JSON; the same body always gives the same bytes.

    A lone surrogate, which UTF-8 cannot carry, becomes `?`.

    Raises:
        ValueError: a number is not finite; JSON has no word for it.
        TypeError: something in it is not JSON.
    """
    pieces: list[bytes] = []
    since = 0
    for piece in _pieces(body):
        pieces.append(piece.encode(errors="replace"))
        since += len(piece)
        if since >= BREATHE_BYTES:
            since = 0
            await asyncio.sleep(0)
    return b"".join(pieces)


def _pieces(value: object, level: int = 0) -> Iterator[str]:
    if level == _WHOLE_LEVEL and _is_short(value):
        yield _dumps(value)
    elif isinstance(value, str) and len(value) > SLICE_CHARS:
        yield '"'
        for start in range(0, len(value), SLICE_CHARS):
            yield _dumps(value[start : start + SLICE_CHARS])[1:-1]
        yield '"'
    elif isinstance(value, Mapping):
        separator = "{"
        for key, inner in cast("Mapping[str, object]", value).items():
            yield separator + _dumps({key: 0})[1:-2]  # a key that is a number is quoted, too
            yield from _pieces(inner, level + 1)
            separator = ","
        yield "}" if separator == "," else "{}"
    elif isinstance(value, Sequence) and not isinstance(value, str):
        separator = "["
        for inner in cast("Sequence[object]", value):
            yield separator
            yield from _pieces(inner, level + 1)
            separator = ","
        yield "]" if separator == "," else "[]"
    else:
        yield _dumps(value)


def _is_short(value: object) -> bool:
    """Whether all of `value` is about SLICE_CHARS long at most. Stops where it is longer."""
    left = SLICE_CHARS
    waiting: list[object] = [value]
    while waiting and left >= 0:
        seen = waiting.pop()
        kind = type(seen)
        if kind is str:
            left -= len(cast("str", seen))
        elif kind is dict:
            members = cast("dict[object, object]", seen)
            left -= (len(members) + 1) * 2 * _VALUE_CHARS
            try:
                left -= len("".join(cast("dict[str, object]", members)))
            except TypeError:  # a key that is no text
                return False
            waiting += members.values()
        elif kind is list:
            values = cast("list[object]", seen)
            left -= (len(values) + 1) * _VALUE_CHARS
            waiting += values
        elif isinstance(seen, (str, Mapping, Sequence)):
            return False  # of a rarer kind, which the encoder may not know
    return left >= 0


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
