"""Calls as Python writes them: `set_timer(minutes=5, label='tea')`."""

from __future__ import annotations

from typing import Any

from caal_node.reply_parser.call_builder import OpenCall
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.literal_parser import (
    LiteralParser,
    UnquotedText,
    UnreadableLiteral,
    keywords,
)
from caal_node.reply_parser.schema_types import kinds
from caal_node.reply_parser.syntax.brackets import PYTHON, nested
from caal_node.reply_parser.tool_index import ToolSignature, properties_of


def bracketed(source: Cursor) -> Steps[tuple[str, bool]]:
    """Take what stands in the bracket that begins here, and the bracket: (text, was it closed)."""
    text, whole = yield from nested(source, PYTHON)
    return (text[1:-1] if whole else text[1:]), whole


def one_object(text: str, tool: ToolSignature | None) -> dict[str, Any] | None:
    """The arguments of `set_timer({"minutes": 5})`, from what stands between the brackets.

    None: it is no single object, or that may be the tool's first argument itself.
    """
    reader = LiteralParser(text)
    if reader.space() != "{":
        return None
    try:
        found = reader.mapping()
    except UnreadableLiteral:
        return None
    if reader.space():
        return None
    if tool is not None:
        first = next(iter(tool.properties.values()), None)
        if not found.keys() <= tool.properties.keys() or "object" in kinds(first, tool.schema):
            return None
    return found


def end_keywords(call: OpenCall, text: str) -> None:
    """End `call` with the arguments between the brackets."""
    # Dialects use this, and the scanner knows all dialects.
    from caal_node.reply_parser.markers import without_markers

    names = tuple(properties_of(call.tool))
    for attempt in (text, without_markers(text)):
        given = one_object(attempt, call.tool)
        if given is not None:
            call.end({k: str(v) if isinstance(v, UnquotedText) else v for k, v in given.items()})
            return
        try:
            call.end(keywords(attempt, names))
            return
        except UnreadableLiteral:
            continue
    call.fail("The arguments cannot be read; write them as name=value.")
