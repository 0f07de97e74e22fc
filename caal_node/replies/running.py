"""Running text: where markers are found, and handed to those who can read what follows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caal_node.replies.bare import BareCalls
from caal_node.replies.calls import CallDesk
from caal_node.replies.events import Event, ReasoningDelta, TextDelta
from caal_node.replies.markers import (
    TRIGGERS,
    cut_marker,
    is_marker,
    markers,
    spoken_rest,
    without_markers,
)
from caal_node.replies.names import toolbox
from caal_node.replies.reading import Dialect
from caal_node.replies.source import Source, Steps
from caal_node.replies.thinking import ANY_CLOSER, CLOSERS
from caal_node.replies.voice import Voice

_MARKERS = markers()
"""Made at import: compiling the scanner takes longer than a running session may stand still."""


@dataclass(frozen=True, slots=True)
class Calm:
    """A state in which text goes straight out until something comes that may have a meaning."""

    single: Mapping[str, Event]
    """What single characters become; made once, as most text comes in small pieces."""
    stops: re.Pattern[str]
    delta: type[TextDelta | ReasoningDelta]


def _calm(delta: type[TextDelta | ReasoningDelta], stops: re.Pattern[str]) -> Calm:
    plain = [char for char in map(chr, range(32, 127)) if not stops.match(char)]
    return Calm({char: delta(char) for char in plain}, stops, delta)


_SPOKEN = _calm(TextDelta, TRIGGERS)
_THOUGHT = _calm(ReasoningDelta, TRIGGERS)
_QUOTED = _calm(TextDelta, re.compile(TRIGGERS.pattern + r'|["\\]'))


class RunningText:
    """The reading of one reply; `steps` runs to its end."""

    def __init__(
        self, tools: Sequence[Mapping[str, Any]], *, in_thinking: bool, id_prefix: str
    ) -> None:
        self.source = Source()
        self.voice = Voice()
        self.desk = CallDesk(toolbox(tools), self.voice.emit, id_prefix)
        self.calm: Calm | None = None
        """Set while nothing is held and nothing is awaited."""
        self._bare = BareCalls(self)
        self._prompted = in_thinking
        self._thinking: tuple[str, ...] | None = ANY_CLOSER if in_thinking else None
        """Closers of the thinking that is open."""
        self._literal: tuple[str, ...] = ()
        """Closers of a stretch in which markers mean nothing."""

    def went_out(self, text: str) -> None:
        """`text` was passed on by way of `calm`."""
        if self._thinking is None:
            self._bare.place.passed(text)
            self.voice.went_out(text)

    # -- for those who read ------------------------------------------------------------------

    def say(self, text: str) -> None:
        self.voice.say(text)

    def think(self, text: str) -> None:
        self.voice.think(text)

    def say_back(self, text: str) -> None:
        cut = cut_marker(text)
        if cut < len(text) and (cut > 0 or text[0] != "["):
            # The reading stopped inside a marker; the scanner shall see it whole.
            self.source.unread(text[cut:])
            text = text[:cut]
        clean = without_markers(text)
        self.voice.gap = self.voice.gap or clean != text
        self.say(clean)
        self.voice.gap = self.voice.gap or clean != text

    def flow(self) -> None:
        if self.voice.text_open and self.voice.flowing:
            self.calm = _QUOTED

    def begin_thinking(self, closers: tuple[str, ...]) -> None:
        self._thinking = closers
        self.voice.skip_space = True

    def begin_literal(self, closers: tuple[str, ...]) -> None:
        self._literal = closers

    def open(self, dialect: Dialect, opener: str) -> Steps[None]:
        source = self.source
        was_thinking, self._thinking = self._thinking, None
        source.record()
        if (yield from dialect.read(self, dialect, opener)):
            source.recorded()
            self._bare.place.after_call()
            return
        text = source.recorded().removeprefix(opener)
        if self._thinking is None:
            self._thinking = was_thinking
        if dialect.tentative:
            self._plain(opener)
        source.unread(text)

    # -- the text itself ---------------------------------------------------------------------

    def steps(self) -> Steps[None]:
        """Read the reply; yields whenever it needs more."""
        source, scan = self.source, _MARKERS.scan
        yield
        yield from self._bare.lines.at_start()
        while True:
            if self._bare.place.line_start and self._thinking is None and not self._literal:
                yield from self._bare.lines.at_line()
            found = scan.search(source.text, source.at)
            end = found.start() if found is not None else len(source.text)
            if end > source.at:
                self._plain(source.advance(end))
            if found is not None and (yield from self._found(found.group())):
                continue
            if source.closed and source.at >= len(source.text):
                return
            if source.closed:
                continue
            if found is None:
                self._rest()
            yield

    def _rest(self) -> None:
        """Nothing is held: the next plain characters can go straight out."""
        if not self.voice.flowing and not (self._thinking and not self.voice.skip_space):
            return
        if self._thinking is not None:
            self.calm = _THOUGHT
        elif self.voice.text_open and not self._bare.place.line_start:
            self.calm = _SPOKEN

    def _plain(self, text: str) -> None:
        """`text` holds no marker."""
        if self._thinking is not None:
            self.think(text)
        else:
            self._bare.place.passed(text)
            self.say(text)

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
        if at_end and text == "[":
            return False
        if self._thinking is not None or text == "\n":
            self._plain(source.advance(source.at + len(text)))
        elif text[0] == "`":
            if at_end:
                return False
            source.advance(source.at + len(text))
            yield from self._bare.fences.backticks(text)
        elif self._literal:
            self._plain(source.advance(source.at + 1))
        else:
            yield from self._bare.brackets.at_bracket(text)
        return True

    # -- markers -----------------------------------------------------------------------------

    def _marker(self, marker: str) -> Steps[None]:
        self.voice.gap = True
        opens = _MARKERS.openers.get(marker)
        if self._thinking is not None:
            yield from self._marker_in_thinking(marker, opens)
        elif self._literal:
            if marker in self._literal:
                self._literal = ()
                if opens is not None:
                    yield from self.open(opens, marker)
        elif self._bare.place.quoting:
            if opens is not None and opens.tentative:
                self._plain(marker)
        elif marker in CLOSERS:
            self.begin_thinking((CLOSERS[marker],))
        elif marker in _MARKERS.closing_thinking:
            self._bare.place.line_start = True
            self.voice.was_thinking()
        elif opens is not None:
            yield from self.open(opens, marker)

    def _marker_in_thinking(self, marker: str, opens: Dialect | None) -> Steps[None]:
        closes = marker in (self._thinking or ())
        if opens is not None and (closes or opens.in_thinking):
            yield from self.open(opens, marker)
        elif closes:
            self._thinking = None
            self.voice.skip_space = True
            self._bare.place.line_start = True
        elif marker in CLOSERS and self._prompted:
            self._thinking = (CLOSERS[marker], *ANY_CLOSER)
            self.voice.skip_space = True
        else:
            self.think(marker)
