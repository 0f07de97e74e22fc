"""Arguments as Python writes them, `set_timer(minutes=5, label='tea')`, and as Gemma does.

Gemma's are `call:set_timer{minutes:5,label:<|"|>tea<|"|>}`.
"""

from __future__ import annotations

from typing import Any, cast

from caal_node.reply_parser.arguments import allowed_types, has_unquoted_text, typed
from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.literal_parser import (
    GEMMA_QUOTES,
    LiteralParser,
    UnquotedText,
    UnreadableLiteral,
    parse_keywords,
)
from caal_node.reply_parser.markers import MarkerTable
from caal_node.reply_parser.repeated_keys import RepeatedValues
from caal_node.reply_parser.syntax.streamed_values import PYTHON, read_nested
from caal_node.reply_parser.tool_index import ToolSignature, properties_of

_MAX_STRING_CHARS = 2_000
"""How far behind a closer in a string the string's own quote is looked for."""


def read_parentheses(cursor: Cursor) -> Steps[tuple[str, bool]]:
    """Take the bracket that begins here, and return what stands in it and whether it was closed."""
    text, whole = yield from read_nested(cursor, PYTHON)
    return (text[1:-1] if whole else text[1:]), whole


def parse_arguments(
    text: str, tool: ToolSignature | None, markers: MarkerTable, *, literal: bool = False
) -> dict[str, Any] | None:
    """Return the arguments between a call's brackets; None where they cannot be read. If markers
    leaked into the text, it is read without them.

    literal: only literals with a name count; without, positions and words without quotes do, too.
    """
    names = () if literal else tuple(properties_of(tool))
    for attempt in (text, markers.removed_from(text)):
        given = _parse_single_object(attempt, tool)
        if given is None:
            try:
                return parse_keywords(attempt, names, literal=literal)
            except UnreadableLiteral:
                continue
        if not literal:
            return {k: str(v) if isinstance(v, UnquotedText) else v for k, v in given.items()}
        if not has_unquoted_text(given):
            return given
    return None


def _parse_single_object(text: str, tool: ToolSignature | None) -> dict[str, Any] | None:
    """Return the arguments of `set_timer({"minutes": 5})`, from what stands between the brackets.

    None: it is no single object, or that may be the tool's first argument itself.
    """
    parser = LiteralParser(text)
    if parser.skip_space() != "{":
        return None
    try:
        found = parser.mapping()
    except UnreadableLiteral:
        return None
    if parser.skip_space():
        return None
    if tool is not None:
        first = next(iter(tool.properties.values()), None)
        takes_object = "object" in allowed_types(first, tool.schema)
        if takes_object or not found.keys() <= tool.properties.keys():
            return None
    return found


def end_keywords(call: OpenCall, text: str, markers: MarkerTable) -> None:
    """End `call` with the arguments between the brackets."""
    given = parse_arguments(text, call.tool, markers)
    if given is None:
        call.fail("The arguments cannot be read; write them as name=value.")
    else:
        call.end(given)


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
            text, ended = yield from _take_string(cursor, stop, closers)
            parts.append(text)
            if not ended:
                return "".join(parts), text.rstrip().endswith("}") and bool(
                    (yield from cursor.peek())
                )
            continue
        depth += 1 if stop == "{" else -1
        if depth <= 0:
            return "".join(parts), True


def _take_string(cursor: Cursor, quote: str, closers: tuple[str, ...]) -> Steps[tuple[str, bool]]:
    """Take the rest of Gemma's string with the quote that ends it, and return it and whether that
    came. A closer in front of the quote is a part of the string, unless another string begins
    behind it, as it does where the quote was forgotten."""
    parts: list[str] = []
    while True:
        text, stop = yield from cursor.take_until((quote, *closers))
        parts.append(text)
        if not stop:
            return "".join(parts), False
        if stop == quote:
            parts.append(cursor.advance_by(len(quote)))
            return "".join(parts), True
        text, following = yield from cursor.take_until((quote, "call:"), _MAX_STRING_CHARS)
        if following != quote:
            cursor.unread(text)
            return "".join(parts), False
        parts.append(text)


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
    if isinstance(value, RepeatedValues):
        return RepeatedValues(_settled(entry, schema) for entry in value)
    if isinstance(value, list):
        return [_settled(entry, None) for entry in cast("list[Any]", value)]
    return value
