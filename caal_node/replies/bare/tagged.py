"""Calls as a tag with the tool's own name, on a line of its own.

    <set_timer minutes="5">      <set_timer minutes="5"/>      <set_timer>{"minutes": 5}</set_timer>

A 1.5B writes them in place of its template's calls. HTML has such tags too (`<time datetime=...>`),
so it is a call only if every attribute is one of the tool's parameters.
"""

from __future__ import annotations

import html
from typing import Any

from caal_node.replies.bare.place import Running
from caal_node.replies.names import Tool
from caal_node.replies.source import Steps
from caal_node.replies.syntax.json_arguments import read_arguments
from caal_node.replies.syntax.tags import Tag, read_tag
from caal_node.replies.values import typed

_BEHIND_NAME = (" ", "\t", "\n", "/", ">")


def read_tagged(reading: Running, name: str) -> Steps[bool]:
    """Read the tag that begins here. False: it is no call; what was read is speech."""
    source = reading.source
    tag = yield from read_tag(source)
    tool = reading.desk.box.named(name)
    if tag is None or tool is None or not tag.text[len(name) + 1 :].startswith(_BEHIND_NAME):
        return False
    if tag.attributes:
        if not tag.attributes.keys() <= tool.properties.keys():
            return False
        reading.desk.open(name).end(_given(tag, tool))
    else:
        if tag.text != f"<{name}>" or (yield from source.skip_space()) != "{":
            return False
        yield from read_arguments(source, reading.desk.open(name))
    if not tag.text.endswith("/>"):
        yield from source.skip_space()
        gap = source.skipped
        if not (yield from source.take(tag.closer)):
            source.unread(gap)
    return True


def _given(tag: Tag, tool: Tool) -> dict[str, Any]:
    values = tag.attributes.items()
    return {
        key: typed(html.unescape(text), tool.properties[key], root=tool.schema)
        for key, text in values
    }
