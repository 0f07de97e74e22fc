"""`call:set_timer{minutes:5,label:<|"|>tea<|"|>}`: Gemma's own value syntax."""

from __future__ import annotations

from typing import Any, cast

from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.literal_parser import LiteralParser, UnquotedText, UnreadableLiteral
from caal_node.reply_parser.tool_index import properties_of
from caal_node.reply_parser.values import typed

_DELIMITERS = ('<|"|>', "<escape>")


def read_braces(source: Cursor, closers: tuple[str, ...]) -> Steps[tuple[str, bool]]:
    """Take `{...}`, strings in their delimiters left alone: (text, did it come to an end)."""
    parts: list[str] = []
    depth = 0
    stops = (*_DELIMITERS, "{", "}", *closers)
    while True:
        text, stop = yield from source.until(stops)
        parts.append(text)
        if stop in closers or not stop:
            return "".join(parts), bool(stop)
        parts.append(source.advance(source.at + len(stop)))
        if stop in _DELIMITERS:
            text, end = yield from source.until((stop, *closers))
            parts.append(text)
            if end != stop:
                return "".join(parts), bool(end)
            parts.append(source.advance(source.at + len(stop)))
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
    """Undelimited words are text, unless their schema knows better."""
    if isinstance(value, UnquotedText):
        text = str(value)
        return typed(text, schema) if schema else text
    if isinstance(value, dict):
        return {k: _settled(v, None) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_settled(entry, None) for entry in cast("list[Any]", value)]
    return value
