"""`call:set_timer{minutes:5,label:<|"|>tea<|"|>}`: Gemma's own way of writing arguments."""

from __future__ import annotations

from typing import Any, cast

from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.literal_parser import (
    GEMMA_QUOTES,
    LiteralParser,
    UnquotedText,
    UnreadableLiteral,
)
from caal_node.reply_parser.tool_index import properties_of
from caal_node.reply_parser.values import typed


def read_braces(cursor: Cursor, closers: tuple[str, ...]) -> Steps[tuple[str, bool]]:
    """Take `{...}` with Gemma's strings in it, and return its text and whether it was closed."""
    parts: list[str] = []
    depth = 0
    stops = (*GEMMA_QUOTES, "{", "}", *closers)
    while True:
        text, stop = yield from cursor.take_until(stops)
        parts.append(text)
        if stop in closers or not stop:
            return "".join(parts), bool(stop)
        parts.append(cursor.advance_by(len(stop)))
        if stop in GEMMA_QUOTES:
            text, end = yield from cursor.take_until((stop, *closers))
            parts.append(text)
            if end != stop:
                return "".join(parts), bool(end)
            parts.append(cursor.advance_by(len(stop)))
            continue
        depth += 1 if stop == "{" else -1
        if depth <= 0:
            return "".join(parts), True


def end_braces(call: OpenCall, text: str) -> None:
    """End `call` with the arguments in `text`."""
    try:
        found = LiteralParser(text).mapping()
    except UnreadableLiteral:
        call.fail("The arguments cannot be read.")
        return
    properties = properties_of(call.tool)
    call.end({key: _settled(value, properties.get(key)) for key, value in found.items()})


def _settled(value: Any, schema: Any) -> Any:
    """Return `value` with its unquoted words as text, unless their schema knows better."""
    if isinstance(value, UnquotedText):
        text = str(value)
        return typed(text, schema) if schema else text
    if isinstance(value, dict):
        return {k: _settled(v, None) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_settled(entry, None) for entry in cast("list[Any]", value)]
    return value
