"""Calls as a tag with the tool's own name, on a line of its own.

    <set_timer minutes="5">      <set_timer minutes="5"/>      <set_timer>{"minutes": 5}</set_timer>

A 1.5B writes them in place of its template's calls. HTML has such tags too (`<time datetime=...>`),
so it is a call only if every attribute is one of the tool's parameters, and nothing else is in it.
"""

from __future__ import annotations

import html
from typing import Any

from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.format import ReadOutcome
from caal_node.reply_parser.marker_next import next_marker
from caal_node.reply_parser.markers import markers
from caal_node.reply_parser.syntax.json_arguments import read_arguments
from caal_node.reply_parser.syntax.tags import ATTRIBUTE, MAX_TAG_CHARS, Tag, read_tag
from caal_node.reply_parser.tool_index import ToolSignature
from caal_node.reply_parser.unmarked.text_position import UnmarkedContext
from caal_node.reply_parser.values import typed

_BEHIND_NAME = (" ", "\t", "\n", "/", ">")
_TAG_ENDS = " \t\r\n/>"


def read_tagged(reading: UnmarkedContext, name: str) -> Steps[ReadOutcome]:
    """Read the tag that begins here. Speech or torn: it is no call; what was read is recorded."""
    source = reading.source
    tag = yield from read_tag(source)
    tool = reading.desk.box.named(name)
    if tag is None:
        return _up_to_marker(source)
    behind_name = len(name) + 1
    torn = markers().strip.search(tag.text)
    at_name = torn is not None and torn.start() == behind_name
    if tool is None or not (at_name or tag.text.startswith(_BEHIND_NAME, behind_name)):
        return ReadOutcome.SPEECH
    if torn is not None:
        return ReadOutcome.TORN
    if tag.attributes:
        rest = ATTRIBUTE.sub("", tag.text.removeprefix(f"<{name}"))
        if rest.strip(_TAG_ENDS) or not tag.attributes.keys() <= tool.properties.keys():
            return ReadOutcome.SPEECH
        reading.desk.open(name).end(_given(tag, tool))
    else:
        if tag.text != f"<{name}>":
            return ReadOutcome.SPEECH
        if (yield from source.skip_space()) != "{":
            return ReadOutcome.TORN if (yield from next_marker(source)) else ReadOutcome.SPEECH
        yield from read_arguments(source, reading.desk.open(name))
    if not tag.text.endswith("/>"):
        yield from source.skip_space()
        gap = source.skipped
        if not (yield from source.take(tag.closer)):
            source.unread(gap)
    return ReadOutcome.CALL


def _up_to_marker(source: Cursor) -> ReadOutcome:
    """What begins as a tag and has no end."""
    found = markers().strip.search(source.text, source.at, source.at + MAX_TAG_CHARS)
    if found is None:
        return ReadOutcome.SPEECH
    source.advance(found.start())
    return ReadOutcome.TORN


def _given(tag: Tag, tool: ToolSignature) -> dict[str, Any]:
    values = tag.attributes.items()
    return {
        key: typed(html.unescape(text), tool.properties[key], root=tool.schema)
        for key, text in values
    }
