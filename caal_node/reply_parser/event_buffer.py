"""What goes out: speech and thinking as deltas, with the white space that belongs to them."""

from __future__ import annotations

import re
from typing import NamedTuple

from caal_node.reply_parser.events import (
    BrokenCall,
    Event,
    ReasoningDelta,
    TextDelta,
    TextWasThinking,
    ToolCallEnd,
    ToolCallStart,
    UnknownCall,
)
from caal_node.reply_parser.markers import APART, cut_marker

_MAX_BRACES = 9
_BRACES = re.compile(r"[{}]")
WARY_LINES = 4
"""A name and its arguments stand on neighbouring lines, perhaps with an empty one between."""
_TAIL_CHARS = 128
"""How much of the spoken text is kept: longer than any marker."""


def end_of(text: str) -> str:
    """What counts of spoken text for what may come: the beginning of a marker at its end, or a
    letter for a word, or nothing."""
    return text[cut_marker(text) :] or ("x" if text[-1:].strip() else "")


class EventBufferState(NamedTuple):
    skip_space: bool
    gap: bool
    text_open: bool
    space_waits: bool
    braces: int
    tail: str
    """`end_of` the spoken text."""
    before: tuple[str, int, bool]
    spoken: bool
    wary: int


class EventBuffer:
    """Collects a reply's events; `take` hands them over."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._kind: type[TextDelta | ReasoningDelta] = TextDelta
        self._parts: list[str] = []
        """Text of that kind that came after the last event."""
        self._space: list[str] = []
        """White space that is spoken only if speech follows."""
        self._tail = ""
        """The end of what was spoken."""
        self._braces = 0
        """Curly brackets that are open in what was spoken."""
        self._before: tuple[str, int, bool] = ("", 0, False)
        """Tail, brackets and `spoken` in front of the text that an orphan closer would turn into
        thinking."""
        self.spoken = False
        """Whether anything was said yet that is still taken for speech."""
        self.wary = 0
        """LineCalls for which a marker must keep apart what stands on either side: what was spoken
        begins as a call does."""
        self.calls = 0
        """Events of calls, so far."""
        self.skip_space = False
        """Whether the next text's leading white space belongs to a marker before it."""
        self.gap = False
        """Whether a marker stood between what was spoken and what comes."""
        self.text_open = False
        """Whether there is text that an orphan closer would turn into thinking."""

    @property
    def flowing(self) -> bool:
        """Whether a next plain character goes out just as it is."""
        return self.text_open and not (self.skip_space or self._space or self.gap)

    def standing(self) -> EventBufferState:
        """All that decides what becomes of the next text, but for the white space itself."""
        self._tail = end_of(self._tail)
        tail, braces, spoken = self._before
        self._before = end_of(tail), braces, spoken
        return EventBufferState(
            self.skip_space,
            self.gap,
            self.text_open,
            bool(self._space),
            self._braces,
            self._tail,
            self._before,
            self.spoken,
            self.wary,
        )

    def stand(self, state: EventBufferState, passed: str) -> None:
        """Be as `state` says. passed: the text that has gone by since, white space if it waits."""
        self.skip_space = state.skip_space
        self.gap = state.gap
        self.text_open = state.text_open
        self._braces, self._tail, self._before = state.braces, state.tail, state.before
        self.spoken, self.wary = state.spoken, state.wary
        if state.space_waits:
            self._space.append(passed)

    def take(self) -> list[Event]:
        self._flush()
        events, self._events = self._events, []
        return events

    def emit(self, event: Event) -> None:
        if isinstance(event, ToolCallEnd | ToolCallStart | BrokenCall | UnknownCall):
            self._space.clear()
            self.text_open = False
            self.gap = True
            self.calls += 1
        self._flush()
        self._events.append(event)

    def say(self, text: str) -> None:
        if self.skip_space:
            text = text.lstrip()
        if not text:
            return
        self.skip_space = False
        if not self.text_open and text.isspace():
            self._space.append(text)
            return
        if self._space:
            text = "".join(self._space) + text
            self._space.clear()
        if self.gap:
            # A marker was dropped here. What stands on either side must not become another, nor
            # one word.
            self.gap = False
            text = self._joint(text) + text
        if not self.text_open:
            self.text_open = True
            self._before = self._tail, self._braces, self.spoken
        self.went_out(text)
        self._append(TextDelta, text)

    def apart(self, text: str) -> str:
        """`text`, which comes next, with what keeps it apart from what was spoken."""
        if self.skip_space:
            return text.lstrip()  # The white space belongs to a marker, so it indents nothing.
        held = not self.text_open and text.isspace()
        return text if held or not (self.gap and text) else self._joint(text) + text

    def _joint(self, text: str) -> str:
        """What is put between the spoken text and `text`, so that they stay apart."""
        if self.wary or self._braces or cut_marker(self._tail) < len(self._tail):
            return f" {APART} "
        return " " if self._tail[-1:].strip() and text[0].strip() else ""

    def went_out(self, text: str) -> None:
        """`text` was spoken."""
        self.spoken = self.spoken or not text.isspace()
        if "{" in text or "}" in text:
            # One by one: as a whole "}{" would open nothing, in two pieces it does.
            for brace in _BRACES.findall(text):
                more = 1 if brace == "{" else -1
                self._braces = min(max(self._braces + more, 0), _MAX_BRACES)
        if self.wary:
            self.wary = max(0, self.wary - text.count("\n"))
        self._tail = (self._tail + text)[-_TAIL_CHARS:]

    def think(self, text: str) -> None:
        if self.skip_space:
            text = text.lstrip()
        if text:
            self.skip_space = False
            self._append(ReasoningDelta, text)

    def was_thinking(self) -> None:
        """A closer came without its opener: what was taken for speech was thinking."""
        self._space.clear()
        self.skip_space = True
        if self.text_open:
            self.text_open = False
            self._tail, self._braces, self.spoken = self._before
            self._flush()
            self._events.append(TextWasThinking())

    def _append(self, kind: type[TextDelta | ReasoningDelta], text: str) -> None:
        if kind is not self._kind:
            self._flush()
            self._kind = kind
        self._parts.append(text)

    def _flush(self) -> None:
        if self._parts:
            self._events.append(self._kind("".join(self._parts)))
            self._parts.clear()
