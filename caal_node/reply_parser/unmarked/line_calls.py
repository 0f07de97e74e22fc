"""Calls that begin a line: with a tool's own name, or with a word that is no marker elsewhere."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import ParseContext, ReadOutcome
from caal_node.reply_parser.formats import FORMAT_BY_LINE_OPENER
from caal_node.reply_parser.formats.action import INPUTS
from caal_node.reply_parser.literal_parser import UnreadableLiteral, parse_keywords
from caal_node.reply_parser.syntax.json_text import read_arguments
from caal_node.reply_parser.syntax.literal_arguments import parse_single_object, read_parentheses
from caal_node.reply_parser.tool_index import ToolSignature
from caal_node.reply_parser.unmarked.named_tags import read_named_tag
from caal_node.reply_parser.values import has_unquoted_text

_BLANK = re.compile(r"[ \t\r]*")
_MAX_SPACE_CHARS = 32
_MINIMAX_SEPARATORS = ("]<]",)
_MESSAGE = "<|message|>"
"""Opens a message whose header names its recipient; a bare name is what is left of one."""


class LineOutcome(Enum):
    """What became of a line's beginning."""

    RUNNING_TEXT = "It is running text."
    INCOMPLETE = "It may become a call's first word, and has not arrived whole."
    WAS_READ = "It was read for a call; what is left may be another."


class LineCalls:
    """Looks at the beginning of each line, and at what stands behind a call."""

    def __init__(self, context: ParseContext) -> None:
        self._context = context
        self._position = context.position
        names = tuple(context.calls.tools.by_name)
        tags = (f"<{name}" for name in names)
        self._beginnings: dict[str, tuple[str, ...]] = {}
        """What a call begins with, by its first character."""
        for word in (*FORMAT_BY_LINE_OPENER, *names, *tags):
            self._beginnings[word[0]] = (*self._beginnings.get(word[0], ()), word)

    def at_line(self) -> Steps[LineOutcome]:
        """Look whether a call begins here, where a line begins or a call has just ended."""
        cursor, position = self._context.cursor, self._position
        while (char := cursor.text[cursor.at : cursor.at + 1]) and char in " \t\r;,]}":
            if char in " \t\r":
                blank = _BLANK.match(cursor.text, cursor.at)
                self._context.say(cursor.advance(blank.end() if blank else cursor.at + 1))
                if not position.line_start:
                    return LineOutcome.RUNNING_TEXT  # A separator from a marker stands first.
                continue
            if not position.behind_call:
                break
            separator, certain = cursor.match_next(_MINIMAX_SEPARATORS)
            if not certain:
                return LineOutcome.INCOMPLETE
            if separator is not None:
                break  # No bracket left over, but MiniMax's separator.
            cursor.advance_by(1)
        if not char or char in "{[`\n":
            return LineOutcome.RUNNING_TEXT
        shown = position.fence or position.indented
        word, certain = cursor.match_next(() if shown else self._beginnings.get(char, ()))
        if not certain:
            return LineOutcome.INCOMPLETE
        if word is None:
            # It may be a marker's beginning, and then a call may begin behind that.
            position.line_start = position.line_start and char == "<"
            return LineOutcome.RUNNING_TEXT
        if char == "<":
            return (yield from self._at_tag(word.removeprefix("<")))
        yield from self._at_word(word)
        return LineOutcome.WAS_READ

    def _at_tag(self, name: str) -> Steps[LineOutcome]:
        cursor, position = self._context.cursor, self._position
        cursor.record()
        read = ReadOutcome.SPEECH
        if not position.example:
            read = yield from read_named_tag(self._context, name)
        text = cursor.recorded()
        if read is ReadOutcome.SPEECH and not text:
            position.line_start = False
            return LineOutcome.RUNNING_TEXT
        yield from self._settle(read, text)
        return LineOutcome.WAS_READ

    def _at_word(self, word: str) -> Steps[None]:
        cursor, position = self._context.cursor, self._position
        cursor.record()
        cursor.advance_by(len(word))
        call_format = FORMAT_BY_LINE_OPENER.get(word)
        if call_format is None:
            read = yield from read_named(self._context, word)
        elif not position.example and (
            yield from call_format.read(self._context, call_format, word)
        ):
            read = ReadOutcome.CALL
        else:
            read = ReadOutcome.SPEECH
        if (yield from self._settle(read, cursor.recorded())):
            self._context.events.guard_call_beginning()

    def _settle(self, read: ReadOutcome, text: str) -> Steps[bool]:
        """Give `text`, which was recorded, back to the speech unless it is a call.

        Returns:
            Whether it was given back.
        """
        position = self._position
        if read is ReadOutcome.CALL:
            position.after_call()
            return False
        if read is ReadOutcome.BROKEN and (yield from self._context.skip_broken_call(text)):
            return False
        position.line_start = False
        if text:
            self._context.say_rejected(text)
        return True


def peek_tool_name(context: ParseContext, char: str) -> Steps[str | None]:
    """Return the tool's name that comes next, if one does. char: the next character."""
    names = tuple(name for name in context.calls.tools.by_name if name[0] == char)
    return (yield from context.cursor.peek_any(names))


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
    given = None
    if whole:
        tool = context.calls.tools.named(name)
        given = _parse_literals(inner, tool)
        if given is None:
            given = _parse_literals(context.markers.removed_from(inner), tool)
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


def _parse_literals(inner: str, tool: ToolSignature | None) -> dict[str, Any] | None:
    """Return the arguments between the brackets; None where not all of them are literals."""
    given = parse_single_object(inner, tool)
    if given is not None:
        return None if has_unquoted_text(given) else given
    try:
        return parse_keywords(inner, (), literal=True)
    except UnreadableLiteral:
        return None
