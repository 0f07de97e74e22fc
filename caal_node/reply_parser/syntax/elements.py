"""Arguments in elements, whatever their namespace.

`<function=NAME><parameter=KEY>VALUE</parameter></function>`, and
`<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>` behind a name. Either may name the value's
type, as the attribute `type` or as `<arg_type>TYPE</arg_type>` between key and value. It counts
where no schema says more.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from caal_node.reply_parser.arguments import parse_literal, typed, untyped
from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.parse_context import CallFormat, ParseContext
from caal_node.reply_parser.repeated_keys import add
from caal_node.reply_parser.syntax.streamed_values import read_arguments
from caal_node.reply_parser.syntax.tags import Tag, read_tag

_CALL_KINDS = ("invoke", "function", "tool_call", "function_call", "function_calls", "tool_calls")
_VALUE_KINDS = ("parameter", "param", "argument", "arg")
_CDATA = "<![CDATA["
_MAX_TYPE_CHARS = 32
_MAX_VALUE_CHARS = 2_000
"""How far behind a call's closer the parameter's own closer is looked for."""


def read_elements(context: ParseContext, call_format: CallFormat, opened: Tag) -> Steps[None]:
    """Read a call whose arguments are elements, from behind `<function=NAME>` to its end."""
    cursor = context.cursor
    call = context.calls.open(opened.value)
    found: dict[str, Any] = {}
    if (yield from cursor.skip_space()) == "{":
        yield from read_arguments(cursor, call)
        yield from cursor.skip_space()
        yield from cursor.take(opened.closer)
        return
    while True:
        _, stop = yield from cursor.take_until(("<",))
        if not stop:
            # Nothing in the call says that it is complete: only what was given can.
            if opened.equals and found and _is_complete(call, found):
                call.end(found)
            else:
                call.cut_off()
            return
        tag = yield from read_tag(cursor)
        if tag is None:
            if (yield from cursor.has(1)):
                cursor.advance_by(1)
            continue
        if tag.closing and tag.kind in _CALL_KINDS:
            if tag.text != opened.closer:
                cursor.unread(tag.text)
            break
        if tag.kind in ("invoke", "function", "tool_call") or tag.text in call_format.openers:
            cursor.unread(tag.text)  # The next call begins; this one was not closed.
            break
        if tag.text in call_format.closers:
            cursor.unread(tag.text)
            break
        key = _key_of(tag, call)
        if key is None:
            continue
        value, ended = yield from _read_value(cursor, call_format, opened, tag, call, key)
        if not ended and not (opened.equals and _is_complete(call, {**found, key: value})):
            call.cut_off()
            return
        add(found, key, value)
    call.end(found)


def type_value(text: str, call: OpenCall, key: str, call_format: CallFormat, said: str = "") -> Any:
    """Return a value typed by its parameter's schema.

    said: the type that the text gives it; "" if it gives none.
    """
    tool = call.tool
    schema = tool.properties.get(key) if tool else None
    if said and not isinstance(schema, Mapping):
        schema = {"type": said}
    if not isinstance(schema, Mapping):
        return untyped(text) if call_format.untyped_json else text
    value = typed(text, schema, root=tool.schema if tool else None)
    if call_format.unquote and isinstance(value, str):
        bare = value.strip()
        if len(bare) > 1 and bare[0] == bare[-1] == '"':
            decoded = untyped(bare)
            return decoded if isinstance(decoded, str) and decoded != bare else bare[1:-1]
    return value


def _is_complete(call: OpenCall, found: Mapping[str, Any]) -> bool:
    return call.tool is None or set(call.tool.required) <= set(found)


def _key_of(tag: Tag, call: OpenCall) -> str | None:
    """Return the parameter to which an element gives a value."""
    if tag.closing or not tag.kind:
        return None
    if tag.kind in _VALUE_KINDS and tag.value:
        return tag.value
    if call.tool is not None:
        for name in call.tool.properties:
            if tag.text == f"<{name}>":
                return name
    return None


def _read_value(
    cursor: Cursor, call_format: CallFormat, opened: Tag, tag: Tag, call: OpenCall, key: str
) -> Steps[tuple[Any, bool]]:
    """Return a parameter's value, and whether it came to its end."""
    if tag.kind == "param" and (yield from cursor.take(_CDATA)):
        text, stop = yield from cursor.take_until(("]]>",))
        yield from cursor.take("]]>")
        yield from cursor.take(tag.closer)
        return type_value(text, call, key, call_format), bool(stop)
    stops = {tag.closer, opened.closer, *call_format.closers}
    if tag.kind in _VALUE_KINDS:
        stops.add(tag.head)
    text, stop = yield from cursor.take_until(tuple(stops))
    own = stop in ("", tag.closer, tag.head)
    if not own and not (yield from _call_is_over(cursor, call_format, stop)):
        text += yield from _read_rest_of_value(cursor, opened, tag)
    yield from cursor.take(tag.closer)
    if tag.equals:
        # One newline on either side frames the value.
        text = text.removeprefix("\n").removesuffix("\n")
    elif tag.kind == "param":
        text = html.unescape(text)
    is_string = tag.attributes.get("string")
    if is_string == "true":
        return text, bool(stop)
    if is_string == "false":
        return parse_literal(text.strip()), bool(stop)
    said = tag.attributes.get("type", "")
    return type_value(text, call, key, call_format, said), bool(stop)


def _call_is_over(cursor: Cursor, call_format: CallFormat, stop: str) -> Steps[bool]:
    """Return whether nothing but the call's end stands at `stop`, so that its value is over."""
    yield from cursor.take(stop)
    char = yield from cursor.skip_space()
    space = cursor.skipped
    over = not char or (yield from cursor.peek_any(call_format.closers)) is not None
    over = over or (stop in call_format.closers and "\n" in space)
    cursor.unread(stop + space)
    return over


def _read_rest_of_value(cursor: Cursor, opened: Tag, tag: Tag) -> Steps[str]:
    """Return what still belongs to a value that holds the call's own closer: everything up to the
    parameter's closer, if that comes before another parameter or call begins. Code shows such
    tags."""
    stops = (tag.closer, tag.head, opened.head)
    text, stop = yield from cursor.take_until(stops, _MAX_VALUE_CHARS)
    if stop == tag.closer:
        return text
    cursor.unread(text)
    return ""


def read_pairs(cursor: Cursor, call_format: CallFormat, call: OpenCall, first: Tag) -> Steps[None]:
    """Read the keys and values of `call`, from behind the first `<arg_key>`, which is `first`."""
    key_close = first.closer
    value_open = first.text.replace("arg_key", "arg_value")
    value_close = value_open.replace("<", "</", 1)
    found: dict[str, Any] = {}
    while True:
        key, stop = yield from cursor.take_until((key_close, *call_format.closers))
        if stop != key_close:
            if stop:
                call.end(found)
            else:
                call.cut_off()
            return
        yield from cursor.take(key_close)
        said = yield from _read_pair_type(cursor, first.text.replace("arg_key", "arg_type"))
        value, stop = yield from _read_pair_value(
            cursor, value_open, value_close, (first.text, *call_format.closers)
        )
        if value is not None:
            if not stop:
                call.cut_off()
                return
            typed_value = type_value(value, call, key.strip(), call_format, said)
            add(found, key.strip(), typed_value)
        while (yield from cursor.skip_space()) == "\\" and (yield from cursor.take("\\n")):
            pass  # A newline that was escaped once too often.
        if (yield from cursor.take(first.text)):
            continue
        closing = yield from cursor.peek_any(call_format.closers)
        if closing is None and (yield from _reply_ends(cursor, call_format)):
            # The call is made only when nothing can be missing.
            if call.tool is None or set(call.tool.properties) <= set(found):
                call.end(found)
            else:
                call.cut_off()
            return
        call.end(found)
        return


def _reply_ends(cursor: Cursor, call_format: CallFormat) -> Steps[bool]:
    """Return whether the reply ends here, or in the middle of a closer, which is taken then."""
    if not (yield from cursor.peek()):
        return True
    rest = cursor.text[cursor.at :]
    if cursor.closed and any(closer.startswith(rest) for closer in call_format.closers):
        cursor.take_rest()
        return True
    return False


def _read_pair_type(cursor: Cursor, type_open: str) -> Steps[str]:
    """Return the type that stands between a key and its value; "" if none does."""
    yield from cursor.skip_space()
    space = cursor.skipped
    if not (yield from cursor.take(type_open)):
        cursor.unread(space)
        return ""
    type_close = type_open.replace("<", "</", 1)
    said, _ = yield from cursor.take_until(("<",), _MAX_TYPE_CHARS)
    yield from cursor.take(type_close)
    return said.strip().lower()


def _read_pair_value(
    cursor: Cursor, value_open: str, value_close: str, others: tuple[str, ...]
) -> Steps[tuple[str | None, str]]:
    """Return the value behind a key, and what ended it; None when there is no value."""
    following = yield from cursor.skip_space()
    if following == "\\":
        yield from cursor.take("\\n")
        following = yield from cursor.skip_space()
    if not (yield from cursor.take(value_open)) and (
        not following or (yield from cursor.peek_any(others)) is not None
    ):
        return None, ""
    text, stop = yield from cursor.take_until((value_close, *others))
    yield from cursor.take(value_close)
    return text, stop
