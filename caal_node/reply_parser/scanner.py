"""Running text: where markers are found and handed to the readers of what follows them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from caal_node.reply_parser.call_builder import CallBuilder
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.event_buffer import EventBuffer
from caal_node.reply_parser.format import CallFormat
from caal_node.reply_parser.formats import FORMAT_BY_OPENER, MARKERS
from caal_node.reply_parser.markers import (
    SEPARATOR,
    THINKING_BLOCKS,
    THINKING_CLOSERS,
    spoken_rest,
)
from caal_node.reply_parser.tool_index import ToolIndex
from caal_node.reply_parser.unmarked import UnmarkedCalls
from caal_node.reply_parser.unmarked.broken_call import open_brackets
from caal_node.reply_parser.unmarked.line_calls import LineOutcome

_HEADER: Final = ">>>"
"""Functionary's: the one marker without a bracket, so that JSON may seem to hold it."""
_LINES: Final = re.compile(r"\n(?:[ \t\r]*\n)*")
"""The end of a line, and empty lines."""


class ReplyScanner:
    """Reads one reply: `steps` takes text from `cursor` and puts events into `events`.

    It is the `ParseContext` of the formats' readers, and the `UnmarkedContext` of the readers of
    calls without markers.
    """

    def __init__(
        self, tools: Sequence[Mapping[str, Any]], *, in_thinking: bool, id_prefix: str
    ) -> None:
        self.cursor = Cursor()
        self.markers = MARKERS
        self.events = EventBuffer(MARKERS)
        self.calls = CallBuilder(ToolIndex.from_schemas(tools), self.events.emit, id_prefix)
        self._prompted = in_thinking
        """Whether the prompt left thinking open."""
        self._thinking: tuple[str, ...] | None = THINKING_CLOSERS if in_thinking else None
        """What may close the thinking that is open; None outside of thinking."""
        self._literal: tuple[str, ...] = ()
        """What may close the speech in which markers mean nothing; empty outside of it."""
        self._gap_before_marker = False
        """`events.gap` as it was before the marker that was found last."""
        self._unmarked = UnmarkedCalls(self)
        self._position = self._unmarked.position

    # -- what readers use: see ParseContext and UnmarkedContext ---------------------------------

    @property
    def spoken(self) -> bool:
        return self.events.spoken

    def say(self, text: str) -> None:
        self.events.say(text)

    def think(self, text: str) -> None:
        self.events.think(text)

    def mark_gap(self) -> None:
        self.events.gap = True

    def with_separator(self, text: str) -> str:
        return self.events.with_separator(text)

    def guard_call_beginning(self) -> None:
        self.events.guard_call_beginning()

    def begin_thinking(self, closers: tuple[str, ...]) -> None:
        self._thinking = closers
        self.events.skip_space = True

    def begin_literal(self, closers: tuple[str, ...]) -> None:
        self._literal = closers

    def say_rejected(self, text: str) -> str:
        found = MARKERS.strip.search(text)
        header = text.find(_HEADER, 1)
        if header > 0 and (found is None or header < found.start()):
            if self.cursor.try_unread(text[header:]):  # It may begin a call, as behind any speech.
                text = text[:header]
        elif found is not None and self.cursor.try_unread(text[found.start() :]):
            text = text[: found.start()]
        elif found is None:
            cut = MARKERS.partial_start(text)
            if cut < len(text) and (cut > 0 or text[0] != "["):
                # The reading stopped inside a marker; the scanner shall see it whole.
                self.cursor.unread(text[cut:])
                text = text[:cut]
        clean = MARKERS.strip.sub(f" {SEPARATOR} ", text)
        self.events.gap = self.events.gap or clean != text
        said = self.with_separator(clean)
        self.say(clean)
        self.events.gap = self.events.gap or clean != text
        return said

    def skip_broken_call(self, text: str, *, restarted: bool = False) -> Steps[bool]:
        cursor, found = self.cursor, MARKERS.strip.search(text)
        if found is not None:
            broken, cut = True, found.start()
            if not cursor.try_unread(text[cut:]):
                cut = len(text)
        else:  # The reading may have stopped inside a marker, or in front of one.
            cut = MARKERS.partial_start(text)
            cursor.unread(text[cut:])
            broken = bool((yield from MARKERS.peek(cursor)))
            if not broken:
                cursor.advance_by(len(text) - cut)
        if broken or restarted:
            self.calls.broken("", "The call breaks off in the middle; write it whole.")
        if broken:
            self._position.broken_depth = open_brackets(text[:cut])
        return broken or restarted

    def read_format(self, call_format: CallFormat, opener: str) -> Steps[bool]:
        cursor, position, before = self.cursor, self._position, self.events.call_events
        thinking, self._thinking = self._thinking, None
        cursor.record()
        if (yield from call_format.read(self, call_format, opener)):
            cursor.recorded()
            position.after_call()
            if self.events.call_events == before and self._thinking is None:
                position.broken_depth = 0  # A header: what follows is a message of its own.
            return True
        text = cursor.recorded()
        if not call_format.tentative:
            text = text.removeprefix(opener)  # Some readers read it again as a tag.
        if self._thinking is None:
            self._thinking = thinking
        if call_format.tentative:
            self.events.gap = self._gap_before_marker
            self._pass_on(opener)
            if opener == _HEADER:
                self.guard_call_beginning()
        cursor.unread(text)
        return False

    # -- the text itself ------------------------------------------------------------------------

    def steps(self) -> Steps[None]:
        """Read the reply to its end, and yield whenever more text is needed."""
        cursor, position, lines = self.cursor, self._position, self._unmarked.lines
        if self._thinking is None:
            yield from self._unmarked.missing_header.at_start()
        yield from lines.at_start()
        while True:
            plain = self._thinking is None and not self._literal
            if plain and position.broken_depth:
                yield from self._unmarked.broken_call.skip_rest()
            if plain and position.line_start and not position.broken_depth:
                outcome = yield from lines.at_line()
                if outcome is LineOutcome.INCOMPLETE:
                    yield
                if outcome is not LineOutcome.RUNNING_TEXT:
                    continue
            found = MARKERS.scan.search(cursor.text, cursor.at)
            end = found.start() if found is not None else len(cursor.text)
            if end > cursor.at:
                self._pass_on(cursor.advance(end))
            if found is not None and (yield from self._handle(found.group())):
                continue
            if not cursor.closed:
                yield
            elif cursor.at >= len(cursor.text):
                return

    def _pass_on(self, text: str) -> None:
        """Pass on text that holds no marker."""
        if self._thinking is not None:
            self.think(text)
        else:
            self._position.say(text)

    def _handle(self, text: str) -> Steps[bool]:
        """Deal with what the scanner found. False: more text is needed first."""
        cursor = self.cursor
        if text[0] == "`" or text in ("{", "[", "\n"):
            return (yield from self._handle_single(text))
        if not MARKERS.is_marker(text):
            if not cursor.closed:
                return False
            cursor.advance_by(len(text))
            self._pass_on(spoken_rest(text))
            return True
        cursor.advance_by(len(text))
        yield from self._handle_marker(text)
        return True

    def _handle_single(self, text: str) -> Steps[bool]:
        """Deal with a bracket, backticks or a new line, which may begin a call without markers."""
        cursor = self.cursor
        at_end = cursor.at + len(text) >= len(cursor.text) and not cursor.closed
        if at_end and text in ("[", "`", "``"):
            return False  # `[` begins markers, too, and one backtick may not be alone.
        lines = _LINES.match(cursor.text, cursor.at)
        if lines is not None:
            self._pass_on(cursor.advance(lines.end()))
        elif self._thinking is not None:
            self._pass_on(cursor.advance_by(len(text)))
        elif text[0] == "`":
            cursor.advance_by(len(text))
            yield from self._unmarked.fences.at_backticks(text)
        elif self._literal:
            self._pass_on(cursor.advance_by(1))
        else:
            return (yield from self._unmarked.brackets.at_bracket(text))
        return True

    # -- markers --------------------------------------------------------------------------------

    def _handle_marker(self, marker: str) -> Steps[None]:
        self._gap_before_marker, self.events.gap = self.events.gap, True
        call_format = FORMAT_BY_OPENER.get(marker)
        if self._thinking is not None:
            yield from self._handle_marker_in_thinking(marker, call_format)
        elif self._literal:
            if marker in self._literal:
                self._literal = ()
                if call_format is not None:
                    yield from self.read_format(call_format, marker)
        elif self._position.quoting:
            if marker in MARKERS.tentative:
                self.events.gap = self._gap_before_marker
                self._pass_on(marker)
        elif marker in THINKING_BLOCKS:
            self.begin_thinking((THINKING_BLOCKS[marker],))
        elif marker in THINKING_CLOSERS:
            self._position.after_unopened_thinking()
            self.events.end_unopened_thinking()
        elif call_format is not None:
            yield from self.read_format(call_format, marker)

    def _handle_marker_in_thinking(
        self, marker: str, call_format: CallFormat | None
    ) -> Steps[None]:
        closes = marker in (self._thinking or ())
        if call_format is not None and (closes or call_format.in_thinking):
            yield from self.read_format(call_format, marker)
        elif closes:
            self._thinking = None
            self.events.skip_space = True
            self._position.after_thinking()
        elif marker in THINKING_BLOCKS and self._prompted:
            self.begin_thinking((THINKING_BLOCKS[marker], *THINKING_CLOSERS))
        else:
            self.think(marker)
