"""Kimi K3: `<|open|>call tool="set_timer"<|sep|>...<|close|>call<|sep|>`."""

from __future__ import annotations

import html
import re
from typing import Any

from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import Format, ParseContext
from caal_node.reply_parser.values import typed

_OPEN, _CLOSE, _SEP = "<|open|>", "<|close|>", "<|sep|>"
_MAX_HEAD_CHARS = 256
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


def _head(reading: ParseContext) -> Steps[tuple[str, dict[str, str]]]:
    """What stands between a bracket and `<|sep|>`: its kind and its attributes."""
    source = reading.source
    text, _ = yield from source.until((_SEP,), _MAX_HEAD_CHARS)
    yield from source.take(_SEP)
    kind = text.split()[0] if text.split() else ""
    return kind, {key: html.unescape(value) for key, value in _ATTRIBUTE.findall(text)}


def _read(reading: ParseContext, dialect: Format, opener: str) -> Steps[bool]:
    source = reading.source
    head, stop = yield from source.until((_SEP, "\n"), _MAX_HEAD_CHARS)
    if stop != _SEP and (yield from source.peek()):
        return False  # A marker that leaked: what follows it is speech.
    source.unread(head)
    kind, attributes = yield from _head(reading)
    if opener == _CLOSE:
        return True
    if kind == "call":
        yield from _call(reading, attributes.get("tool", ""))
    elif kind in ("think", "thinking", "reasoning"):
        reading.begin_thinking((_CLOSE,))
    return True


def _call(reading: ParseContext, name: str) -> Steps[None]:
    source = reading.source
    call = reading.desk.open(name)
    found: dict[str, Any] = {}
    while True:
        _, stop = yield from source.until((_OPEN, _CLOSE))
        if not stop:
            call.cut_off()
            return
        yield from source.take(stop)
        kind, attributes = yield from _head(reading)
        if stop == _CLOSE and kind in ("call", "tools"):
            call.end(found)
            return
        if stop == _OPEN and "key" in attributes:
            value, end = yield from source.until((_CLOSE,))
            if not end:
                call.cut_off()
                return
            found[attributes["key"]] = _value(call, attributes, value)


def _value(call: OpenCall, attributes: dict[str, str], text: str) -> Any:
    declared = call.tool.properties.get(attributes["key"]) if call.tool else None
    return typed(text, {"type": attributes["type"]} if "type" in attributes else declared)


FORMATS = (Format(name="kimi-k3", openers=(_OPEN, _CLOSE), strays=(_SEP,), read=_read),)
