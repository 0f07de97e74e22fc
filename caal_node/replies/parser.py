"""A reply as a stream of events: running text, and the calls and the thinking in it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from caal_node.replies.bare import BareCalls
from caal_node.replies.calls import CallDesk
from caal_node.replies.events import (
    BrokenCall,
    Event,
    ReasoningDelta,
    Reply,
    TextDelta,
    TextWasThinking,
    ToolCall,
    ToolCallEnd,
    ToolCallStart,
    UnknownCall,
)
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
from caal_node.replies.source import Source, Steps, quiet_characters
from caal_node.replies.thinking import ANY_CLOSER, CLOSERS

_MARKERS = markers()
"""Made at import: compiling the scanner takes longer than a running session may stand still."""
_CALM = "".join(map(chr, range(32, 127)))
_SPOKEN = {char: TextDelta(char) for char in _CALM if not TRIGGERS.match(char)}
_THOUGHT = {char: ReasoningDelta(char) for char in _CALM if not TRIGGERS.match(char)}
_FLOWING = {char: delta for char, delta in _SPOKEN.items() if char not in '"\\'}
_TAIL_CHARS = 128
"""How much of the spoken text is kept: longer than any marker."""
_NOTHING: dict[str, Any] = {}
_NONE: frozenset[str] = frozenset()


class ReplyParser:
    """Reads one reply.

    tools: OpenAI-style schemas; without any, every name is allowed.
    in_thinking: the prompt left a think block open, so the reply begins inside it.
    id_prefix: what call ids begin with; they are numbered from 1, so a conversation that needs
        ids of its own for every reply gives a prefix of its own for each.
    """

    def __init__(
        self,
        tools: Sequence[Mapping[str, Any]],
        *,
        in_thinking: bool = False,
        id_prefix: str = "call_",
    ) -> None:
        self.source = Source()
        self._events: list[Event] = []
        self.desk = CallDesk(toolbox(tools), self._emit, id_prefix)
        self._bare = BareCalls(self)
        self._thinking: tuple[str, ...] | None = None
        """Closers of the thinking that is open."""
        self._literal: tuple[str, ...] = ()
        """Closers of a stretch in which markers mean nothing."""
        self._space: list[str] = []
        """White space that is spoken only if speech follows."""
        self._skip_space = False
        """Whether the next text's leading white space belongs to a marker before it."""
        self._tail = ""
        """The end of what was spoken."""
        self._gap = False
        """Whether a marker stood between that and what comes."""
        self._text_open = False
        """Whether there is text that an orphan closer would turn into thinking."""
        if in_thinking:
            self._thinking = ANY_CLOSER
        self._prompted = in_thinking
        self._calm: Mapping[str, Event] = _NOTHING
        """What single characters mean while nothing can begin with them."""
        self._quiet = _NONE
        """Single characters that the waiting reader need not be told of."""
        self._put = self.source.put
        self._out: list[str] = []
        self._went_out = self._out.append
        self._steps = self._read()
        next(self._steps)
        self._finished = False

    # -- outside ----------------------------------------------------------------------------

    def feed(self, chunk: str) -> list[Event]:
        """Take the next piece of the reply; give what it has made certain."""
        event = self._calm.get(chunk)
        if event is not None:
            self._went_out(chunk)
            return [event]
        if chunk in self._quiet:
            self._put(chunk)
            return []
        self._put(chunk)
        wake = self.source.wake
        if wake is not None and wake.search(chunk) is None:
            return []
        return self._go_on()

    def finish(self) -> list[Event]:
        """The reply is over; give what is left. Nothing may be fed afterwards."""
        if self._finished:
            return []
        self._finished = True
        self.source.closed = True
        return self._go_on()

    def _go_on(self) -> list[Event]:
        self._calm = _NOTHING
        if self._out:
            out = "".join(self._out)
            self._out.clear()
            self._bare.passed(out)
            self._tail = (self._tail + out)[-_TAIL_CHARS:]
        self.source.gather()
        with contextlib.suppress(StopIteration):
            next(self._steps)
        wake = self.source.wake
        self._quiet = _NONE if wake is None else quiet_characters(wake)
        events, self._events = self._events, []
        return events

    # -- what readers use -------------------------------------------------------------------

    def _emit(self, event: Event) -> None:
        if isinstance(event, ToolCallEnd | ToolCallStart | BrokenCall | UnknownCall):
            self._space.clear()
            self._text_open = False
            self._gap = True
        self._events.append(event)

    def say(self, text: str) -> None:
        if self._skip_space:
            text = text.lstrip()
        if not text:
            return
        self._skip_space = False
        if not self._text_open and text.isspace():
            self._space.append(text)
            return
        if self._space:
            text = "".join(self._space) + text
            self._space.clear()
        if self._gap:
            # A marker was dropped here. What stands on either side must not become another.
            self._gap = False
            if cut_marker(self._tail) < len(self._tail):
                text = "\n" + text
        self._text_open = True
        self._tail = (self._tail + text)[-_TAIL_CHARS:]
        self._append(TextDelta(text))

    def say_back(self, text: str) -> None:
        cut = cut_marker(text)
        if cut < len(text) and text[cut] != "[":
            # The reading stopped inside a marker; the scanner shall see it whole.
            self.source.unread(text[cut:])
            text = text[:cut]
        clean = without_markers(text)
        if clean != text:
            self._gap = True
        self.say(clean)
        if clean != text:
            self._gap = True

    def flow(self) -> None:
        if self._text_open and not self._skip_space and not self._gap:
            self._calm = _FLOWING

    def think(self, text: str) -> None:
        if self._skip_space:
            text = text.lstrip()
        if text:
            self._skip_space = False
            self._append(ReasoningDelta(text))

    def _append(self, event: TextDelta | ReasoningDelta) -> None:
        last = self._events[-1] if self._events else None
        if isinstance(last, type(event)):
            self._events[-1] = type(event)(last.text + event.text)
        else:
            self._events.append(event)

    def begin_thinking(self, closers: tuple[str, ...]) -> None:
        self._thinking = closers
        self._skip_space = True

    def begin_literal(self, closers: tuple[str, ...]) -> None:
        self._literal = closers

    # -- running text -----------------------------------------------------------------------

    def _read(self) -> Steps[None]:
        source = self.source
        scan = _MARKERS.scan
        yield
        yield from self._bare.at_start()
        while True:
            if self._bare.line_start and self._thinking is None and not self._literal:
                yield from self._bare.at_line()
            found = scan.search(source.text, source.at)
            if found is None:
                self._pass(len(source.text))
            else:
                self._pass(found.start())
                if (yield from self._found(found.group())):
                    continue
            if source.closed:
                if source.at >= len(source.text):
                    return
                continue
            if found is None:
                self._rest()
            yield

    def _rest(self) -> None:
        """Nothing is held: the next plain characters can go straight out."""
        if self._skip_space or self._space or self._gap or self._bare.line_start:
            return
        if self._thinking is not None:
            self._calm = _THOUGHT
        elif self._text_open:
            self._calm = _SPOKEN

    def _pass(self, end: int) -> None:
        """Text up to `end` holds no marker."""
        if end <= self.source.at:
            return
        text = self.source.advance(end)
        if self._thinking is not None:
            self.think(text)
        else:
            self._bare.passed(text)
            self.say(text)

    def _found(self, text: str) -> Steps[bool]:
        """Deal with what the scanner found. False: wait for more text."""
        source = self.source
        at_end = source.at + len(text) >= len(source.text)
        if text[0] == "`" or text in ("{", "[", "\n"):
            return (yield from self._single(text))
        if at_end and not is_marker(text):
            if not source.closed:
                return False
            source.advance(source.at + len(text))
            self._plain(spoken_rest(text))
            return True
        if not is_marker(text):
            source.advance(source.at + 1)
            self._plain(text[0])
            return True
        source.advance(source.at + len(text))
        yield from self._marker(text)
        return True

    def _plain(self, text: str) -> None:
        if self._thinking is not None:
            self.think(text)
        else:
            self._bare.passed(text)
            self.say(text)

    def _single(self, text: str) -> Steps[bool]:
        source = self.source
        at_end = source.at + len(text) >= len(source.text) and not source.closed
        if at_end and text == "[":
            return False
        if self._thinking is not None:
            source.advance(source.at + len(text))
            self.think(text)
            return True
        if text[0] == "`":
            if at_end:
                return False
            source.advance(source.at + len(text))
            yield from self._bare.backticks(text)
            return True
        if text != "\n" and not self._literal and (yield from self._bare.at_bracket(text)):
            return True
        source.advance(source.at + 1)
        self._plain(text)
        return True

    # -- markers ----------------------------------------------------------------------------

    def _marker(self, marker: str) -> Steps[None]:
        self._gap = True
        if self._thinking is not None:
            yield from self._marker_in_thinking(marker)
            return
        if self._literal:
            if marker in self._literal:
                self._literal = ()
                yield from self._after(marker)
            return
        if marker in _MARKERS.thinking:
            self.begin_thinking((CLOSERS[marker],))
        elif marker in _MARKERS.closing_thinking:
            self._orphan()
        elif marker in _MARKERS.openers and not self._bare.quoting:
            yield from self.open(_MARKERS.openers[marker], marker)
        elif marker in _MARKERS.openers and _MARKERS.openers[marker].tentative:
            self._plain(marker)

    def _after(self, marker: str) -> Steps[None]:
        """A stretch ended with a marker that may begin something itself."""
        dialect = _MARKERS.openers.get(marker)
        if dialect is not None:
            yield from self.open(dialect, marker)

    def _marker_in_thinking(self, marker: str) -> Steps[None]:
        if marker in (self._thinking or ()):
            if marker in _MARKERS.openers:
                yield from self.open(_MARKERS.openers[marker], marker)
                return
            self._thinking = None
            self._skip_space = True
            self._bare.line_start = True
        elif marker in _MARKERS.openers and _MARKERS.openers[marker].in_thinking:
            yield from self.open(_MARKERS.openers[marker], marker)
        elif marker in _MARKERS.thinking and self._prompted:
            self._thinking = (CLOSERS[marker], *ANY_CLOSER)
            self._skip_space = True
        else:
            self.think(marker)

    def _orphan(self) -> None:
        """A closer whose opener never came: what was taken for speech was thinking."""
        self._space.clear()
        self._skip_space = True
        self._bare.line_start = True
        if self._text_open:
            self._text_open = False
            self._events.append(TextWasThinking())

    def open(self, dialect: Dialect, opener: str) -> Steps[None]:
        """Let `dialect` read what follows; what is no call stays running text."""
        source = self.source
        was_thinking, self._thinking = self._thinking, None
        source.record()
        if (yield from dialect.read(self, dialect, opener)):
            source.recorded()
            self._bare.after_call()
            return
        text = source.recorded().removeprefix(opener)
        if self._thinking is None:
            self._thinking = was_thinking
        if dialect.tentative:
            self._plain(opener)
        source.unread(text)


def summarise(events: Iterable[Event]) -> Reply:
    """The sum of a whole reply's events."""
    pieces: list[TextDelta | ReasoningDelta] = []
    calls: list[ToolCall] = []
    problems: list[BrokenCall | UnknownCall] = []
    since = 0
    for event in events:
        if isinstance(event, TextDelta | ReasoningDelta):
            pieces.append(event)
        elif isinstance(event, TextWasThinking):
            pieces[since:] = [ReasoningDelta(piece.text) for piece in pieces[since:]]
        elif isinstance(event, ToolCallEnd):
            calls.append(ToolCall(event.name, event.arguments))
            since = len(pieces)
        elif isinstance(event, BrokenCall | UnknownCall):
            problems.append(event)
            since = len(pieces)
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
    reasoning = "".join(piece.text for piece in pieces if isinstance(piece, ReasoningDelta))
    return Reply(calls, text.rstrip() if calls else text, reasoning.strip(), problems)


def parse_reply(
    text: str, tools: Sequence[Mapping[str, Any]], *, in_thinking: bool = False
) -> Reply:
    """What a whole reply means."""
    parser = ReplyParser(tools, in_thinking=in_thinking)
    return summarise([*parser.feed(text), *parser.finish()])
