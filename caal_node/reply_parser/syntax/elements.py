"""Arguments in elements: `<function=NAME><parameter=KEY>VALUE</parameter></function>` and kin."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.format import Format, ParseContext
from caal_node.reply_parser.syntax.bare_values import type_value
from caal_node.reply_parser.syntax.json_arguments import read_arguments
from caal_node.reply_parser.syntax.tags import Tag, read_tag
from caal_node.reply_parser.values import literal

_CALL_KINDS = ("invoke", "function", "tool_call", "function_call", "function_calls", "tool_calls")
_VALUE_KINDS = ("parameter", "param", "argument", "arg")
_CDATA = "<![CDATA["
_MAX_VALUE_CHARS = 2_000
"""So far behind a call's closer is the parameter's own still looked for."""


def read_invoke(reading: ParseContext, dialect: Format, opened: Tag) -> Steps[None]:
    """A call whose arguments are elements, from behind `<function=NAME>` to its end."""
    source = reading.source
    call = reading.desk.open(opened.value)
    found: dict[str, Any] = {}
    if (yield from source.skip_space()) == "{":
        yield from read_arguments(source, call)
        yield from _close(reading, opened)
        return
    while True:
        _, stop = yield from source.until(("<",))
        if not stop:
            # Nothing in the call says that it is all there: only what was given can.
            if opened.equals and found and _complete(call, found):
                call.end(found)
            else:
                call.cut_off()
            return
        tag = yield from read_tag(source)
        if tag is None:
            if (yield from source.has(1)):
                source.advance(source.at + 1)
            continue
        if tag.closing and tag.kind in _CALL_KINDS:
            if tag.text != opened.closer:
                source.unread(tag.text)
            break
        if tag.kind in ("invoke", "function", "tool_call") or tag.text in dialect.openers:
            source.unread(tag.text)  # The next call begins; this one was not closed.
            break
        if tag.text in dialect.closers:
            source.unread(tag.text)
            break
        key = _key_of(tag, call)
        if key is None:
            continue
        value, ended = yield from _value(reading, dialect, opened, tag, call, key)
        if not ended and not (opened.equals and _complete(call, {**found, key: value})):
            call.cut_off()
            return
        found[key] = value
    call.end(found)


def _close(reading: ParseContext, opened: Tag) -> Steps[None]:
    yield from reading.source.skip_space()
    yield from reading.source.take(opened.closer)


def _complete(call: OpenCall, found: Mapping[str, Any]) -> bool:
    return call.tool is None or set(call.tool.required) <= set(found)


def _key_of(tag: Tag, call: OpenCall) -> str | None:
    """Which parameter an element gives a value to."""
    if tag.closing or not tag.kind:
        return None
    if tag.kind in _VALUE_KINDS and tag.value:
        return tag.value
    if call.tool is not None:
        for name in call.tool.properties:
            if tag.text == f"<{name}>":
                return name
    return None


def _value(
    reading: ParseContext, dialect: Format, opened: Tag, tag: Tag, call: OpenCall, key: str
) -> Steps[tuple[Any, bool]]:
    """A parameter's value, and whether it came to its end."""
    source = reading.source
    if tag.kind == "param" and (yield from source.take(_CDATA)):
        text, stop = yield from source.until(("]]>",))
        yield from source.take("]]>")
        yield from source.take(tag.closer)
        return type_value(text, call, key, dialect), bool(stop)
    stops = {tag.closer, opened.closer, *dialect.closers}
    if tag.kind in _VALUE_KINDS:
        stops.add(tag.head)
    text, stop = yield from source.until(tuple(stops))
    if stop not in ("", tag.closer, tag.head) and not (yield from _over(source, dialect, stop)):
        text += yield from _rest_of_value(source, opened, tag)
    yield from source.take(tag.closer)
    if tag.equals:
        text = _without_frame(text)
    elif tag.kind == "param":
        text = html.unescape(text)
    says = tag.attributes.get("string")
    if says == "true":
        return text, bool(stop)
    if says == "false":
        return literal(text.strip()), bool(stop)
    return type_value(text, call, key, dialect), bool(stop)


def _over(source: Cursor, dialect: Format, stop: str) -> Steps[bool]:
    """Whether nothing but the call's end stands at `stop`, so that its value is over, too."""
    yield from source.take(stop)
    char = yield from source.skip_space()
    over = not char or (yield from source.look(dialect.closers)) is not None
    over = over or (stop in dialect.closers and "\n" in source.skipped)
    source.unread(stop + source.skipped)
    return over


def _rest_of_value(source: Cursor, opened: Tag, tag: Tag) -> Steps[str]:
    """What still belongs to a value that holds the call's own closer: all up to the parameter's
    closer, if that comes before another parameter or call begins. Code shows such tags."""
    text, stop = yield from source.until((tag.closer, tag.head, opened.head), _MAX_VALUE_CHARS)
    if stop == tag.closer:
        return text
    source.unread(text)
    return ""


def _without_frame(text: str) -> str:
    """Without the one newline on either side that frames a value."""
    return text.removeprefix("\n").removesuffix("\n")
