"""Calls in elements: Qwen 3-Coder without its wrapping, MiniMax M2 and M3, MiniCPM, DSML, dots,
Olmo, and Kimi K3, whose elements have brackets of their own."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from caal_node.reply_parser.arguments import allowed_types, typed, untyped
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.events import OpenCall
from caal_node.reply_parser.literal_parser import add, collect
from caal_node.reply_parser.parse_context import CallFormat, ParseContext
from caal_node.reply_parser.syntax.block import read_block
from caal_node.reply_parser.syntax.elements import SPACES_IN_TAGS, parse_tag, spellings
from caal_node.reply_parser.tool_index import mapping


def _read_opened(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    """Read a block whose opener is itself the beginning of a call's tag."""
    context.cursor.unread(opener)
    made = yield from read_block(context, call_format, opener)
    if not made:
        yield from context.cursor.take(opener)
    return made


def _named(*kinds: str, quotes: str = '"') -> tuple[str, ...]:
    """Return how tags begin that have their name as an attribute."""
    return tuple(
        f"<{kind}{space}name={quote}"
        for kind in kinds
        for space in SPACES_IN_TAGS
        for quote in quotes
    )


def _dsml(*tags: str) -> tuple[str, ...]:
    """Return tags like `/invoke` in DSML's namespace."""
    names = (f"<{'/' * (tag[0] == '/')}｜DSML｜{tag.lstrip('/')}>" for tag in tags)
    return tuple(spelling for name in names for spelling in spellings(name))


# MiniMax M3: elements, each behind a separator, nested for objects and lists.

_SEPARATOR = "]<]minimax[>["
_MAX_DEPTH = 32


@dataclass(slots=True)
class _Element:
    name: str
    text: str = ""
    children: list[_Element] = field(default_factory=list["_Element"])


def _read_separated(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
    cursor = context.cursor
    if (yield from cursor.peek_any(("<tool_call>", "<invoke "))) is None:
        return True
    call: OpenCall | None = None
    stack: list[_Element] = []
    while True:
        if (yield from cursor.take_any(call_format.closers)) is not None:
            break
        token, stop = yield from cursor.take_until((_SEPARATOR,))
        yield from cursor.take(_SEPARATOR)
        head, bracket, text = token.partition(">")
        tag = parse_tag(head + bracket) if bracket else None
        if tag is not None and tag.kind == "invoke":
            if call is not None:
                _end(call, stack)
            call, stack = None, [_Element("")]
            if not tag.closing:
                call = context.calls.open(tag.value)
        elif tag is not None and call is not None and not _add(stack, head[1:], text):
            call.fail("The arguments are not nested properly.")
            call = None
        if not stop:
            break
    if call is not None:
        call.cut_off()
    return True


def _add(stack: list[_Element], name: str, text: str) -> bool:
    """Begin or end one element. False: the wrong one ends, or too many are open."""
    if not name.startswith("/"):
        element = _Element(name, text)
        stack[-1].children.append(element)
        stack.append(element)
        return len(stack) < _MAX_DEPTH
    if len(stack) < 2 or stack[-1].name != name[1:]:
        return False
    stack.pop()
    return True


def _end(call: OpenCall, stack: list[_Element]) -> None:
    schema: Mapping[str, Any] = call.tool.schema if call.tool else {}
    if len(stack) != 1:
        call.cut_off()
        return
    call.end(mapping(_value(stack[0], schema, schema)))


def _value(element: _Element, schema: Any, root: Mapping[str, Any]) -> Any:
    known = mapping(schema)
    if not element.children:
        if element.name == "":
            return {}
        if not element.text and "string" not in (allowed := allowed_types(known, root)):
            if "array" in allowed:
                return []
            if "object" in allowed:
                return {}
        return typed(element.text, known, root=root) if known else untyped(element.text)
    if all(child.name == "item" for child in element.children):
        return [_value(child, known.get("items"), root) for child in element.children]
    properties = mapping(known.get("properties"))
    values = ((c.name, _value(c, properties.get(c.name), root)) for c in element.children)
    return collect(values) if element.name == "" else dict(values)


# Kimi K3: `<|open|>call tool="set_timer"<|sep|>...<|close|>call<|sep|>`.

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


def _read_opened_by_marker(
    context: ParseContext, call_format: CallFormat, opener: str
) -> Steps[bool]:
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


FORMATS = (
    CallFormat(
        name="function-element",
        openers=("<function=", *_named("function", quotes="\"'")),
        closers=("</tool_call>",),
        strays=("</function>", "<parameter=", "</parameter>", *_named("param"), "</param>"),
        read=_read_opened,
    ),
    CallFormat(
        name="invoke-element",
        openers=_named("invoke", "｜DSML｜invoke", "｜DSML｜ invoke"),
        closers=_dsml("/function_calls", "/tool_calls"),
        strays=(
            *("</invoke>", *_dsml("/invoke", "/parameter")),
            *_named("parameter"),
        ),
        read=_read_opened,
    ),
    CallFormat(
        name="minimax",
        openers=("<minimax:tool_call>",),
        closers=("</minimax:tool_call>",),
        read=read_block,
    ),
    CallFormat(
        name="dsml",
        openers=_dsml("function_calls", "tool_calls"),
        closers=_dsml("/function_calls", "/tool_calls"),
        strays=_named("｜DSML｜parameter", "｜DSML｜ parameter"),
        read=read_block,
    ),
    CallFormat(
        name="dots",
        openers=("<dots_function_call>",),
        closers=("</dots_function_call>",),
        read=read_block,
    ),
    CallFormat(
        name="olmo", openers=("<function_calls>",), closers=("</function_calls>",), read=read_block
    ),
    CallFormat(
        name="minimax-m3", openers=(_SEPARATOR,), closers=("</tool_call>",), read=_read_separated
    ),
    CallFormat(
        name="kimi-k3", openers=(_OPEN, _CLOSE), strays=(_SEP,), read=_read_opened_by_marker
    ),
)
