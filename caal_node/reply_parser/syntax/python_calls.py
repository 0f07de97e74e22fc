"""Calls as Python writes them: `set_timer(minutes=5, label='tea')`."""

from __future__ import annotations

from typing import Any

from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.literal_parser import (
    LiteralParser,
    UnquotedText,
    UnreadableLiteral,
    parse_keywords,
)
from caal_node.reply_parser.markers import MarkerTable
from caal_node.reply_parser.schema_types import allowed_types
from caal_node.reply_parser.syntax.brackets import PYTHON, read_nested
from caal_node.reply_parser.tool_index import ToolSignature, properties_of


def read_parentheses(cursor: Cursor) -> Steps[tuple[str, bool]]:
    """Take the bracket that begins here, and return what stands in it and whether it was closed."""
    text, whole = yield from read_nested(cursor, PYTHON)
    return (text[1:-1] if whole else text[1:]), whole


def parse_single_object(text: str, tool: ToolSignature | None) -> dict[str, Any] | None:
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
    names = tuple(properties_of(call.tool))
    for attempt in (text, markers.removed_from(text)):
        given = parse_single_object(attempt, call.tool)
        if given is not None:
            call.end({k: str(v) if isinstance(v, UnquotedText) else v for k, v in given.items()})
            return
        try:
            call.end(parse_keywords(attempt, names))
            return
        except UnreadableLiteral:
            continue
    call.fail("The arguments cannot be read; write them as name=value.")
