"""What goes out: speech and thinking as deltas, with the white space that belongs to them."""

from __future__ import annotations

from caal_node.replies.events import (
    BrokenCall,
    Event,
    ReasoningDelta,
    TextDelta,
    TextWasThinking,
    ToolCallEnd,
    ToolCallStart,
    UnknownCall,
)
from caal_node.replies.markers import cut_marker

_TAIL_CHARS = 128
"""How much of the spoken text is kept: longer than any marker."""


class Voice:
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
        self.skip_space = False
        """Whether the next text's leading white space belongs to a marker before it."""
        self.gap = False
        """Whether a marker stood between what was spoken and what comes."""
        self.text_open = False
        """Whether there is text that an orphan closer would turn into thinking."""

    @property
    def flowing(self) -> bool:
        """Whether a next plain character goes out just as it is."""
        return not (self.skip_space or self._space or self.gap)

    def take(self) -> list[Event]:
        self._flush()
        events, self._events = self._events, []
        return events

    def emit(self, event: Event) -> None:
        if isinstance(event, ToolCallEnd | ToolCallStart | BrokenCall | UnknownCall):
            self._space.clear()
            self.text_open = False
            self.gap = True
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
            # A marker was dropped here. What stands on either side must not become another.
            self.gap = False
            if cut_marker(self._tail) < len(self._tail):
                text = "\n" + text
        self.text_open = True
        self.went_out(text)
        self._append(TextDelta, text)

    def went_out(self, text: str) -> None:
        """`text` was spoken."""
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
