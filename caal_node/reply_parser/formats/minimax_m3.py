"""MiniMax M3: elements, each behind a separator, nested for objects and lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from caal_node.reply_parser.arguments import allowed_types, typed, untyped
from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.events import OpenCall
from caal_node.reply_parser.literal_parser import collect
from caal_node.reply_parser.parse_context import CallFormat, ParseContext
from caal_node.reply_parser.syntax.elements import parse_tag
from caal_node.reply_parser.tool_index import mapping

_SEPARATOR = "]<]minimax[>["
_MAX_DEPTH = 32


@dataclass(slots=True)
class _Element:
    name: str
    text: str = ""
    children: list[_Element] = field(default_factory=list["_Element"])


def _read(context: ParseContext, call_format: CallFormat, opener: str) -> Steps[bool]:
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


FORMATS = (
    CallFormat(name="minimax-m3", openers=(_SEPARATOR,), closers=("</tool_call>",), read=_read),
)
