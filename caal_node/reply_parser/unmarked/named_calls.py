"""Calls that begin with the tool's own name: `set_timer {...}`, `set_timer(...)`, or as a tag.

    <set_timer minutes="5">      <set_timer minutes="5"/>      <set_timer>{"minutes": 5}</set_timer>

A 1.5B model writes such tags in place of its template's calls, each on a line of its own. HTML has
them too (`<time datetime=...>`), so one is a call only if every attribute is one of the tool's
parameters, and nothing else is in it.
"""

from __future__ import annotations

import html
import re
from typing import Any

from caal_node.reply_parser.arguments import typed
from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.formats.action import INPUTS
from caal_node.reply_parser.parse_context import ParseContext, ReadOutcome
from caal_node.reply_parser.syntax.elements import ATTRIBUTE, MAX_TAG_CHARS, Tag, read_tag
from caal_node.reply_parser.syntax.values import parse_arguments, read_arguments, read_parentheses
from caal_node.reply_parser.tool_index import ToolSignature, properties_of

_MESSAGE = "<|message|>"
"""Opens a message whose header names its recipient; a bare name is what is left of one."""
_MAX_SPACE_CHARS = 32
_BEHIND_NAME = (" ", "\t", "\n", "/", ">")
_TAG_ENDS = " \t\r\n/>"
_FIRST_ATTRIBUTE = re.compile(r"\s+([\w-]+)\s*=")


def peek_tool_name(context: ParseContext, char: str) -> Steps[str | None]:
    """Return the tool's name that comes next, if one does. char: the next character."""
    return (yield from context.cursor.peek_any(context.calls.tools.names_from(char)))


def read_named(context: ParseContext, name: str, *, wrapped: bool = False) -> Steps[ReadOutcome]:
    """Read `set_timer {"minutes": 5}` or `set_timer(minutes=5)`, from behind the name on.

    wrapped: the call stands in the brackets of another.
    """
    cursor, markers = context.cursor, context.markers
    char = yield from cursor.peek()
    if char in ("<", "["):
        marker = yield from markers.peek(cursor)
        if marker and (marker == _MESSAGE or marker not in markers.openers):
            cursor.advance_by(len(marker))
            char = yield from cursor.peek()
    if char == "(" and not context.position.example:
        return (yield from _read_python_call(context, name, wrapped=wrapped))
    if char not in ("{", " ", "\n", "\r", ":") or context.position.example:
        return ReadOutcome.SPEECH
    if char == ":":
        cursor.advance_by(1)
    while (char := (yield from cursor.peek())) in (" ", "\n", "\r", "\t"):
        cursor.advance_by(1)
    # ReAct, where the label in front of the name stood in the prompt.
    if (yield from cursor.take_any(INPUTS)) is not None:
        char = yield from cursor.skip_space()
    if char != "{" or not (yield from _begins_object(context)):
        return ReadOutcome.SPEECH
    yield from read_arguments(cursor, context.calls.open(name))
    return ReadOutcome.CALL


def _read_python_call(context: ParseContext, name: str, *, wrapped: bool) -> Steps[ReadOutcome]:
    cursor = context.cursor
    inner, whole = yield from read_parentheses(cursor)
    following = yield from cursor.peek()
    inside = wrapped and following == ")"
    if whole and not inside and not (yield from _may_follow_call(context, following)):
        return ReadOutcome.SPEECH
    tool = context.calls.tools.named(name)
    given = parse_arguments(inner, tool, context.markers, literal=True) if whole else None
    if given is None:
        return ReadOutcome.BROKEN  # Or an expression: program code, no call.
    context.calls.open(name).end(given)
    return ReadOutcome.CALL


def _begins_object(context: ParseContext) -> Steps[bool]:
    """Return whether a key or the object's end stands behind the `{` that comes next."""
    cursor = context.cursor
    length = 2
    while length <= _MAX_SPACE_CHARS and (yield from cursor.has(length)):
        char = cursor.text[cursor.at + length - 1]
        if not char.isspace():
            return char in ('"', "}")
        length += 1
    return False


def _may_follow_call(context: ParseContext, following: str) -> Steps[bool]:
    """Return whether a call may stand in front of here: nothing follows, or a marker, or the
    next call. following: the next character."""
    cursor = context.cursor
    if following in ("[", "{") and (yield from cursor.has(2)):
        char = cursor.text[cursor.at + 1]
        if char in "{_" or (char == '"' if following == "{" else char.isalpha()):
            return True
    if following in ("", *"\r\n;`<"):
        return True
    return bool((yield from context.markers.peek(cursor)))


def read_named_tag(context: ParseContext, name: str) -> Steps[ReadOutcome]:
    """Read the tag of the tool `name` that begins here. If it is no call, what was read stands in
    the cursor's record."""
    cursor, markers = context.cursor, context.markers
    tag = yield from read_tag(cursor)
    tool = context.calls.tools.named(name)
    if tag is None and _ends_in_tag(context, name, tool):
        cursor.take_rest()
        context.calls.open(name).cut_off()
        return ReadOutcome.CALL
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


def _ends_in_tag(context: ParseContext, name: str, tool: ToolSignature | None) -> bool:
    """Return whether the reply ends in the tag that begins here, behind an attribute's name."""
    text = context.cursor.text[context.cursor.at :]
    if not context.cursor.closed or len(text) > MAX_TAG_CHARS:
        return False
    first = _FIRST_ATTRIBUTE.match(text, len(name) + 1)
    return first is not None and first[1] in properties_of(tool)


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
