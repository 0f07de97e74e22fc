"""Running text: where markers are found, and handed to those who can read what follows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from caal_node.reply_parser.call_builder import CallBuilder
from caal_node.reply_parser.cursor import Cursor, Steps
from caal_node.reply_parser.event_buffer import WARY_LINES, EventBuffer
from caal_node.reply_parser.events import TextDelta
from caal_node.reply_parser.format import Format
from caal_node.reply_parser.marker_next import next_marker
from caal_node.reply_parser.markers import (
    APART,
    TRIGGERS,
    cut_marker,
    is_marker,
    markers,
    spoken_rest,
)
from caal_node.reply_parser.resting import Mode, automaton
from caal_node.reply_parser.standstill import Standstill
from caal_node.reply_parser.states import Flowing
from caal_node.reply_parser.thinking_markers import ANY_CLOSER, CLOSERS
from caal_node.reply_parser.tool_index import ToolIndex
from caal_node.reply_parser.unmarked import UnmarkedCalls
from caal_node.reply_parser.unmarked.broken_call import depth
from caal_node.reply_parser.unmarked.line_calls import LineOutcome

_MARKERS = markers()
"""Made at import: compiling the scanner takes longer than a running session may stand still."""


_HEADER = ">>>"
"""Functionary's: the one marker without a bracket, so that JSON may seem to hold it."""
_LINES = re.compile(r"\n(?:[ \t\r]*\n)*")
"""The end of a line, and empty lines."""
_QUOTED = Flowing(TextDelta, re.compile(TRIGGERS.pattern + r'|["\\]'))
"""In a string that is spoken while it arrives."""


class ReplyScanner:
    """The reading of one reply; `steps` runs to its end."""

    def __init__(
        self, tools: Sequence[Mapping[str, Any]], *, in_thinking: bool, id_prefix: str
    ) -> None:
        self.source = Cursor()
        self.voice = EventBuffer()
        self.desk = CallBuilder(ToolIndex.from_schemas(tools), self.voice.emit, id_prefix)
        self.mode = Mode(prompted=in_thinking, thinking=ANY_CLOSER if in_thinking else None)
        self._bare = UnmarkedCalls(self)
        self._lines = self._bare.lines
        states = automaton(tuple(self.desk.box.by_name))
        self.still = Standstill(self.source, self.voice, self._bare.place, self.mode, states)
        self._gap = False
        """`voice.gap` before the marker that was found last."""

    # -- for those who read ------------------------------------------------------------------

    def say(self, text: str) -> None:
        self.voice.say(text)

    @property
    def spoken(self) -> bool:
        return self.voice.spoken

    def apart(self, text: str) -> str:
        return self.voice.apart(text)

    def beware(self) -> None:
        self.voice.wary = WARY_LINES

    def drop(self) -> None:
        self.voice.gap = True

    def think(self, text: str) -> None:
        self.voice.think(text)

    def say_back(self, text: str) -> str:
        found = _MARKERS.strip.search(text)
        again = text.find(_HEADER, 1)
        if again > 0 and (found is None or again < found.start()):
            if self.source.retry(text[again:]):  # It may be a call's, as behind any speech.
                text = text[:again]
        elif found is not None and self.source.retry(text[found.start() :]):
            text = text[: found.start()]
        elif found is None:
            cut = cut_marker(text)
            if cut < len(text) and (cut > 0 or text[0] != "["):
                # The reading stopped inside a marker; the scanner shall see it whole.
                self.source.unread(text[cut:])
                text = text[:cut]
        clean = _MARKERS.strip.sub(f" {APART} ", text)
        self.voice.gap = self.voice.gap or clean != text
        said = self.apart(clean)
        self.say(clean)
        self.voice.gap = self.voice.gap or clean != text
        return said

    def wreck(self, text: str, *, anew: bool = False) -> Steps[bool]:
        source, found = self.source, _MARKERS.strip.search(text)
        if found is not None:
            torn, cut = True, found.start()
            if not source.retry(text[cut:]):
                cut = len(text)
        else:  # The reading may have stopped inside a marker, or in front of one.
            cut = cut_marker(text)
            source.unread(text[cut:])
            torn = bool((yield from next_marker(source)))
            if not torn:
                source.advance(source.at + len(text) - cut)
        if torn or anew:
            self.desk.broken("", "The call breaks off in the middle; write it whole.")
        if torn:
            self._bare.place.wreck = depth(text[:cut])
        return torn or anew

    def flow(self) -> None:
        if self.voice.flowing:
            self.source.waiting = _QUOTED

    def begin_thinking(self, closers: tuple[str, ...]) -> None:
        self.mode.thinking = closers
        self.voice.skip_space = True

    def begin_literal(self, closers: tuple[str, ...]) -> None:
        self.mode.literal = closers

    def open(self, dialect: Format, opener: str) -> Steps[bool]:
        source, place, calls = self.source, self._bare.place, self.voice.calls
        place.consulted = True
        was_thinking, self.mode.thinking = self.mode.thinking, None
        source.record()
        if (yield from dialect.read(self, dialect, opener)):
            source.recorded()
            place.after_call()
            if self.voice.calls == calls and self.mode.thinking is None:
                place.wreck = 0  # A header: what follows is a message of its own.
            return True
        text = source.recorded()
        if not dialect.tentative:
            text = text.removeprefix(opener)  # Some read it again as a tag.
        if self.mode.thinking is None:
            self.mode.thinking = was_thinking
        if dialect.tentative:
            self.voice.gap = self._gap
            self._plain(opener)
            if opener == _HEADER:
                self.beware()
        source.unread(text)
        return False

    # -- the text itself ---------------------------------------------------------------------

    def steps(self) -> Steps[None]:
        """Read the reply; yields whenever it needs more."""
        source, scan, place, mode = self.source, _MARKERS.scan, self._bare.place, self.mode
        yield
        if mode.thinking is None:
            yield from self._bare.headless.at_start()
        yield from self._lines.at_start()
        while True:
            plain = mode.thinking is None and not mode.literal
            if plain and place.wreck:
                yield from self._bare.wreck.rest()
            if plain and place.line_start and not place.wreck:
                line = yield from self._lines.at_line()
                if line is LineOutcome.WAITS:
                    yield from self._rest()
                if line is not LineOutcome.GOES_ON:
                    continue
            found = scan.search(source.text, source.at)
            end = found.start() if found is not None else len(source.text)
            if end > source.at:
                self._plain(source.advance(end))
            if found is not None and (yield from self._found(found.group())):
                continue
            if source.closed:
                if source.at >= len(source.text):
                    return
                continue
            yield from self._rest()

    def _rest(self) -> Steps[None]:
        self.still.resting = True
        yield
        self.still.resting = False

    def _plain(self, text: str) -> None:
        """`text` holds no marker."""
        if self.mode.thinking is not None:
            self.think(text)
        else:
            self._bare.place.say(text)

    def _found(self, text: str) -> Steps[bool]:
        """Deal with what the scanner found. False: wait for more text."""
        source = self.source
        if text[0] == "`" or text in ("{", "[", "\n"):
            return (yield from self._single(text))
        if not is_marker(text):
            if not source.closed:
                return False
            source.advance(source.at + len(text))
            self._plain(spoken_rest(text))
            return True
        source.advance(source.at + len(text))
        yield from self._marker(text)
        return True

    def _single(self, text: str) -> Steps[bool]:
        """A bracket, backticks or a new line: what may begin a call without markers."""
        source = self.source
        at_end = source.at + len(text) >= len(source.text) and not source.closed
        if at_end and text in ("[", "`", "``"):
            return False  # `[` begins markers, too, and one backtick may not be alone.
        lines = _LINES.match(source.text, source.at)
        if lines is not None:
            self._plain(source.advance(lines.end()))
        elif self.mode.thinking is not None:
            self._plain(source.advance(source.at + len(text)))
        elif text[0] == "`":
            source.advance(source.at + len(text))
            yield from self._bare.fences.backticks(text)
        elif self.mode.literal:
            self._plain(source.advance(source.at + 1))
        else:
            return (yield from self._bare.brackets.at_bracket(text))
        return True

    # -- markers -----------------------------------------------------------------------------

    def _marker(self, marker: str) -> Steps[None]:
        self._gap, self.voice.gap = self.voice.gap, True
        opens = _MARKERS.openers.get(marker)
        if self.mode.thinking is not None:
            yield from self._marker_in_thinking(marker, opens)
        elif self.mode.literal:
            if marker in self.mode.literal:
                self.mode.literal = ()
                if opens is not None:
                    yield from self.open(opens, marker)
        elif self._bare.place.quoting:
            if opens is not None and opens.tentative:
                self.voice.gap = self._gap
                self._plain(marker)
        elif marker in CLOSERS:
            self.begin_thinking((CLOSERS[marker],))
        elif marker in _MARKERS.closing_thinking:
            self._bare.place.was_thinking()
            self.voice.was_thinking()
        elif opens is not None:
            yield from self.open(opens, marker)

    def _marker_in_thinking(self, marker: str, opens: Format | None) -> Steps[None]:
        closes = marker in (self.mode.thinking or ())
        if opens is not None and (closes or opens.in_thinking):
            yield from self.open(opens, marker)
        elif closes:
            self.mode.thinking = None
            self.voice.skip_space = True
            self._bare.place.thought()
        elif marker in CLOSERS and self.mode.prompted:
            self.mode.thinking = (CLOSERS[marker], *ANY_CLOSER)
            self.voice.skip_space = True
        else:
            self.think(marker)
