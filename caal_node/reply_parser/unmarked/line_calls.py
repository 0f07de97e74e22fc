"""Calls that begin a line: with a tool's own name, or with a word that is no marker elsewhere."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from caal_node.reply_parser.cursor import Steps
from caal_node.reply_parser.format import ReadOutcome
from caal_node.reply_parser.formats import formats
from caal_node.reply_parser.formats.action import INPUTS
from caal_node.reply_parser.literal_parser import UnreadableLiteral, keywords
from caal_node.reply_parser.marker_next import next_marker
from caal_node.reply_parser.markers import markers, without_markers
from caal_node.reply_parser.syntax.json_arguments import read_arguments
from caal_node.reply_parser.syntax.python_calls import bracketed, one_object
from caal_node.reply_parser.tool_index import ToolSignature
from caal_node.reply_parser.unmarked.named_tags import read_tagged
from caal_node.reply_parser.unmarked.text_position import TextPosition, UnmarkedContext
from caal_node.reply_parser.values import has_bare_words

_BLANK = re.compile(r"[ \t\r]*")
_TO = ("to=", " to=")
_MAX_SPACE_CHARS = 32
_SEPARATORS = ("]<]",)
_MESSAGE = "<|message|>"
"""Opens a message whose header names its recipient; a bare name is what is left of one."""


class LineOutcome(Enum):
    """What became of a line's beginning."""

    GOES_ON = "it is running text"
    WAITS = "it may become a call's first word, and has not come whole"
    WAS_READ = "it was read for a call; what is left may be another"


class LineCalls:
    """Looks at the beginning of the reply, of each line, and at what stands behind a call."""

    def __init__(self, reading: UnmarkedContext, place: TextPosition) -> None:
        self._reading = reading
        self._place = place
        self._heads: dict[str, tuple[str, ...]] = {}
        self._dialects = {
            opener: dialect
            for dialect in formats()
            if dialect.at_line
            for opener in dialect.openers
        }
        names = tuple(tool.name for tool in reading.desk.box.tools)
        for head in (*self._dialects, *names, *(f"<{name}" for name in names)):
            self._heads[head[0]] = (*self._heads.get(head[0], ()), head)

    def at_start(self) -> Steps[None]:
        """` to=NAME<|message|>`: a header whose beginning was in the prompt."""
        source = self._reading.source
        if (yield from source.look(_TO)) is None:
            return
        head = source.advance(source.text.index("to=", source.at) + 3)
        name, stop = yield from source.until(("<|message|>", " ", "\n", "<|channel|>"), 128)
        source.unread(head + name)
        opener = markers().openers["<|start|>"]
        if not stop.startswith("<|") or not (yield from self._reading.open(opener, "")):
            self._place.say(source.advance(source.at + len(head)))

    def at_line(self) -> Steps[LineOutcome]:
        """A line begins, or a call has just ended."""
        source, place = self._reading.source, self._place
        while (char := source.text[source.at : source.at + 1]) and char in " \t\r;,]}":
            if char in " \t\r":
                blank = _BLANK.match(source.text, source.at)
                place.say(source.advance(blank.end() if blank else source.at + 1))
                if not place.line_start:
                    return LineOutcome.GOES_ON  # What separates it from a marker stands first.
                continue
            if not place.behind_call:
                break
            separator, certain = source.next_of(_SEPARATORS)
            if not certain:
                return LineOutcome.WAITS
            if separator is not None:
                break  # No bracket left over, but MiniMax's separator.
            source.advance(source.at + 1)
        if not char or char in "{[`\n":
            return LineOutcome.GOES_ON
        shown = place.fence or place.indented
        head, certain = source.next_of(() if shown else self._heads.get(char, ()))
        if not certain:
            return LineOutcome.WAITS
        if head is None:
            place.line_start = place.line_start and char == "<"  # It may be a marker's.
            return LineOutcome.GOES_ON
        if char == "<":
            return (yield from self._at_tag(head.removeprefix("<")))
        yield from self._at_head(head)
        return LineOutcome.WAS_READ

    def _at_tag(self, name: str) -> Steps[LineOutcome]:
        source, place = self._reading.source, self._place
        place.consulted = True
        source.record()
        read = ReadOutcome.SPEECH
        if not place.example:
            read = yield from read_tagged(self._reading, name)
        text = source.recorded()
        if read is ReadOutcome.CALL:
            place.after_call()
        elif read is ReadOutcome.SPEECH or not (yield from self._reading.wreck(text)):
            place.line_start = False
            if not text:
                return LineOutcome.GOES_ON
            place.say_back(text)
        return LineOutcome.WAS_READ

    def _at_head(self, head: str) -> Steps[None]:
        source, place = self._reading.source, self._place
        place.consulted = True
        source.record()
        source.advance(source.at + len(head))
        dialect = self._dialects.get(head)
        if dialect is None:
            read = yield from self.named(head)
        elif not place.example and (yield from dialect.read(self._reading, dialect, head)):
            read = ReadOutcome.CALL
        else:
            read = ReadOutcome.SPEECH
        text = source.recorded()
        if read is ReadOutcome.CALL:
            place.after_call()
        elif read is ReadOutcome.SPEECH or not (yield from self._reading.wreck(text)):
            place.line_start = False
            place.say_back(text)
            self._reading.beware()

    def tool_head(self, char: str) -> Steps[str | None]:
        """The tool's name that comes next, if one does; `char` is the next character."""
        names = self._reading.desk.box.by_name
        heads = tuple(head for head in self._heads.get(char, ()) if head in names)
        return (yield from self._reading.source.look(heads))

    def named(self, name: str, *, wrapped: bool = False) -> Steps[ReadOutcome]:
        """`set_timer {"minutes": 5}`, `set_timer(minutes=5)` on a line of its own.

        wrapped: the call stands in the brackets of another.
        """
        reading = self._reading
        source = reading.source
        char = yield from source.peek()
        if char in ("<", "["):
            marker = yield from next_marker(source)
            if marker and (marker == _MESSAGE or marker not in markers().openers):
                source.advance(source.at + len(marker))
                char = yield from source.peek()
        if char == "(" and not self._place.example:
            inner, whole = yield from bracketed(source)
            following = yield from source.peek()
            inside = wrapped and following == ")"
            if whole and not inside and not (yield from self._ended(following)):
                return ReadOutcome.SPEECH
            tool = reading.desk.box.named(name)
            given = _literals(inner, tool) if whole else None
            if given is None and whole:
                given = _literals(without_markers(inner), tool)
            if given is None:
                return ReadOutcome.TORN  # Or an expression: program code, no call.
            reading.desk.open(name).end(given)
            return ReadOutcome.CALL
        if char not in ("{", " ", "\n", "\r", ":") or self._place.example:
            return ReadOutcome.SPEECH
        if char == ":":
            source.advance(source.at + 1)
        while (char := (yield from source.peek())) in (" ", "\n", "\r", "\t"):
            source.advance(source.at + 1)
        # ReAct, where the label in front of the name stood in the prompt.
        if (yield from source.take_any(INPUTS)) is not None:
            char = yield from source.skip_space()
        if char != "{":
            return ReadOutcome.SPEECH
        length = 2
        while (yield from source.has(length)) and source.text[source.at + length - 1].isspace():
            length += 1
        if length > _MAX_SPACE_CHARS or source.text[source.at + length - 1 :][:1] not in ('"', "}"):
            return ReadOutcome.SPEECH
        yield from read_arguments(source, reading.desk.open(name))
        return ReadOutcome.CALL

    def _ended(self, following: str) -> Steps[bool]:
        """Whether the call that may stand here is over: nothing follows, a marker, or the next."""
        source = self._reading.source
        if following in ("[", "{") and (yield from source.has(2)):
            char = source.text[source.at + 1]
            if char in "{_" or (char == '"' if following == "{" else char.isalpha()):
                return True
        return following in ("", *"\r\n;`<") or bool((yield from next_marker(source)))


def _literals(inner: str, tool: ToolSignature | None) -> dict[str, Any] | None:
    """The arguments between the brackets; None: not all of them are literals."""
    given = one_object(inner, tool)
    if given is not None:
        return None if has_bare_words(given) else given
    try:
        return keywords(inner, (), literal=True)
    except UnreadableLiteral:
        return None
