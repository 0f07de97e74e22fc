"""Kimi K3: `<|open|>call tool="set_timer"<|sep|>...<|close|>call<|sep|>`."""

from __future__ import annotations

import html
import re
from typing import Any

from caal_node.reply_parser.arguments import typed
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.events import OpenCall
from caal_node.reply_parser.literal_parser import add
from caal_node.reply_parser.parse_context import CallFormat, ParseContext

_OPEN, _CLOSE, _SEP = "<|open|>", "<|close|>", "<|sep|>"
_VALUE_END = f"{_CLOSE}argument{_SEP}"
_VALUE_ENDS = (_VALUE_END, f"{_OPEN}argument ", f"{_CLOSE}call{_SEP}", f"{_CLOSE}tools{_SEP}")
_MAX_HEADER_CHARS = 256
_MAX_VALUE_CHARS = 2_000
"""How far behind a closer in a value the value's own closer is looked for."""
_ATTRIBUTE = re.compile(r'(?<!\w)(\w++)="([^"]*)"')


def _read_header(cursor: Cursor) -> Steps[tuple[str, dict[str, str]]]:
    """Take what stands in front of `<|sep|>`, and return its kind and its attributes."""
    text, _ = yield from cursor.take_until((_SEP,), _MAX_HEADER_CHARS)
    yield from cursor.take(_SEP)
    kind = text.split()[0] if text.split() else ""
    return kind, {key: html.unescape(value) for key, value in _ATTRIBUTE.findall(text)}


def _read(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    cursor = context.cursor
    header, stop = yield from cursor.take_until((_SEP, "\n"), _MAX_HEADER_CHARS)
    if stop != _SEP and (yield from cursor.peek()):
        return False  # A marker that leaked: what follows it is speech.
    cursor.unread(header)
    kind, attributes = yield from _read_header(cursor)
    if opener == _CLOSE:
        return True
    if kind == "call":
        yield from _read_call(context, attributes.get("tool", ""))
    elif kind in ("think", "thinking", "reasoning"):
        context.begin_thinking((_CLOSE,))
    return True


def _read_call(context: ParseContext, name: str) -> Steps[None]:
    cursor = context.cursor
    call = context.calls.open(name)
    found: dict[str, Any] = {}
    while True:
        _, stop = yield from cursor.take_until((_OPEN, _CLOSE))
        if not stop:
            call.cut_off()
            return
        yield from cursor.take(stop)
        kind, attributes = yield from _read_header(cursor)
        if stop == _CLOSE and kind in ("call", "tools"):
            call.end(found)
            return
        if stop == _OPEN and "key" in attributes:
            value, ended = yield from _take_value(cursor)
            if not ended:
                call.cut_off()
                return
            add(found, attributes["key"], _typed(call, attributes, value))


def _take_value(cursor: Cursor) -> Steps[tuple[str, bool]]:
    """Take a value, and return it and whether it came to its end: at the last of its closers in
    front of the next argument or of the call's end."""
    parts: list[str] = []
    while True:
        text, stop = yield from cursor.take_until(_VALUE_ENDS)
        parts.append(text)
        if stop != _VALUE_END:
            return "".join(parts), bool(stop)
        cursor.advance_by(len(stop))
        text, following = yield from cursor.take_until(_VALUE_ENDS, _MAX_VALUE_CHARS)
        cut = not following and bool(text.strip()) and not (yield from cursor.peek())
        cursor.unread(text)
        if following != _VALUE_END:
            return "".join(parts), not cut
        parts.append(stop)


def _typed(call: OpenCall, attributes: dict[str, str], text: str) -> Any:
    declared = call.tool.properties.get(attributes["key"]) if call.tool else None
    return typed(text, {"type": attributes["type"]} if "type" in attributes else declared)


FORMATS = (CallFormat(name="kimi-k3", openers=(_OPEN, _CLOSE), strays=(_SEP,), read=_read),)
