"""Calls as a tag with the tool's own name, on a line of its own.

    <set_timer minutes="5">      <set_timer minutes="5"/>      <set_timer>{"minutes": 5}</set_timer>

A 1.5B model writes them in place of its template's calls. HTML has such tags too (`<time
datetime=...>`), so it is a call only if every attribute is one of the tool's parameters, and
nothing else is in it.
"""

from __future__ import annotations

import html
from typing import Any

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import ParseContext, ReadOutcome
from caal_node.reply_parser.syntax.json_text import read_arguments
from caal_node.reply_parser.syntax.tags import ATTRIBUTE, MAX_TAG_CHARS, Tag, read_tag
from caal_node.reply_parser.tool_index import ToolSignature
from caal_node.reply_parser.values import typed

_BEHIND_NAME = (" ", "\t", "\n", "/", ">")
_TAG_ENDS = " \t\r\n/>"


def read_named_tag(context: ParseContext, name: str) -> Steps[ReadOutcome]:
    """Read the tag of the tool `name` that begins here. If it is no call, what was read stands in
    the cursor's record."""
    cursor, markers = context.cursor, context.markers
    tag = yield from read_tag(cursor)
    tool = context.calls.tools.named(name)
    if tag is None:
        return _take_up_to_marker(context)
    behind_name = len(name) + 1
    marker = markers.strip.search(tag.text)
    at_name = marker is not None and marker.start() == behind_name
    if tool is None or not (at_name or tag.text.startswith(_BEHIND_NAME, behind_name)):
        return ReadOutcome.SPEECH
    if marker is not None:
        return ReadOutcome.BROKEN
    if tag.attributes:
        rest = ATTRIBUTE.sub("", tag.text.removeprefix(f"<{name}"))
        if rest.strip(_TAG_ENDS) or not tag.attributes.keys() <= tool.properties.keys():
            return ReadOutcome.SPEECH
        context.calls.open(name).end(_typed_attributes(tag, tool))
    else:
        if tag.text != f"<{name}>":
            return ReadOutcome.SPEECH
        if (yield from cursor.skip_space()) != "{":
            broken = yield from markers.peek(cursor)
            return ReadOutcome.BROKEN if broken else ReadOutcome.SPEECH
        yield from read_arguments(cursor, context.calls.open(name))
    if not tag.text.endswith("/>"):
        yield from cursor.skip_space()
        space = cursor.skipped
        if not (yield from cursor.take(tag.closer)):
            cursor.unread(space)
    return ReadOutcome.CALL


def _take_up_to_marker(context: ParseContext) -> ReadOutcome:
    """Take what begins as a tag and has no end, up to the marker that breaks it."""
    cursor = context.cursor
    found = context.markers.strip.search(cursor.text, cursor.at, cursor.at + MAX_TAG_CHARS)
    if found is None:
        return ReadOutcome.SPEECH
    cursor.advance(found.start())
    return ReadOutcome.BROKEN


def _typed_attributes(tag: Tag, tool: ToolSignature) -> dict[str, Any]:
    values = tag.attributes.items()
    return {
        key: typed(html.unescape(text), tool.properties[key], root=tool.schema)
        for key, text in values
    }
