"""What a model writes in somebody else's name: a tool's result, or the person's next words.

Nothing of it is for people, so it goes up to the marker that ends it. A model that never writes
that marker speaks on behind it all the same, so then the loss is bounded: by the JSON value that
the result is, or by its first line.
"""

from __future__ import annotations

from typing import Final

from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.syntax.json_text import json_value

_MAX_CHARS: Final = 2_000
"""So much is searched for the end of a turn; a longer one is no voice assistant's."""
_MAX_REST_CHARS: Final = 200
"""The same behind a JSON value: speech may be what stands there."""


def drop_result(source: Cursor, closers: tuple[str, ...], stops: tuple[str, ...]) -> Steps[bool]:
    """Drop the tool's result that begins here. False: it is none (and was put back).

    closers: belong to the result.
    stops: begin something else.
    """
    char = yield from source.skip_space()
    framed = "\n" in source.skipped
    gap = source.skipped
    if char and char in "{[" and (yield from source.look(stops)) is None:
        yield from json_value(source)
        yield from _up_to(source, closers, stops, _MAX_REST_CHARS)
        return True
    limit = _MAX_CHARS if framed else _MAX_REST_CHARS
    if (yield from _up_to(source, closers, stops, limit)):
        return True
    if not framed:
        source.unread(gap)
        return False  # The marker alone leaked into a sentence.
    yield from source.until(("\n", *closers, *stops), _MAX_CHARS)
    return True


def drop_words(source: Cursor, stops: tuple[str, ...]) -> Steps[None]:
    """Drop what somebody else says, up to one of `stops`."""
    yield from source.until(stops, _MAX_CHARS)


def _up_to(
    source: Cursor, closers: tuple[str, ...], stops: tuple[str, ...], limit: int
) -> Steps[bool]:
    """Drop all up to a closer. False: none comes (and nothing was dropped)."""
    text, stop = yield from source.until((*closers, *stops), limit)
    if stop in closers and (yield from source.take(stop)):
        return True
    source.unread(text)
    return False
