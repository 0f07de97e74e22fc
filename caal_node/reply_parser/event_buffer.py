"""The events of a reply, with the white space and the separators that belong to its speech."""

from __future__ import annotations

import re

from caal_node.reply_parser.events import (
    BrokenCall,
    Event,
    ReasoningDelta,
    TextDelta,
    TextWasThinking,
    ToolCallStart,
    UnknownCall,
    joined,
)
from caal_node.reply_parser.markers import SEPARATOR, MarkerTable, spoken_rest

_MAX_BRACES = 9
_BRACES = re.compile(r"[{}]")
_GUARDED_LINES = 4
"""A name and its arguments stand on neighbouring lines, perhaps with an empty one between."""
_TAIL_CHARS = 128
"""How much of the spoken text is kept: longer than any marker."""


class EventBuffer:
    """Collects the events of a reply until `take` hands them over.

    Neighbouring pieces of text become one event. Where a marker was left out of the speech, what
    stood on either side is kept apart, so that it becomes neither one word nor another marker.
    """

    def __init__(self, markers: MarkerTable) -> None:
        self.markers = markers
        self._events: list[Event] = []
        self._space: list[str] = []
        """White space that is spoken only if speech follows."""
        self._tail = ""
        """The end of what was spoken."""
        self._open_braces = 0
        """Curly brackets that are open in what was spoken."""
        self._before: tuple[str, int, bool] = ("", 0, False)
        """Tail, brackets and `spoken` in front of the text that a closer without an opener would
        turn into thinking."""
        self._guarded_lines = 0
        """Lines for which a marker must be replaced by a separator: what was spoken begins as a
        call does."""
        self.spoken = False
        """Whether anything was said yet that is still taken for speech."""
        self.call_events = 0
        """How many events of calls there were so far."""
        self.skip_space = False
        """Whether the next text's leading white space belongs to a marker before it."""
        self.gap = False
        """Whether a marker stood between what was spoken and what comes."""
        self._held_from: int | None = None
        """Where the events of a call begin that was found in thinking. It is made only if the
        thinking never ends, as models forget to end it."""
        self._before_held = self._before
        """Tail, brackets and `spoken` in front of them."""
        self._text_open = False
        """Whether there is text that a closer without an opener would turn into thinking."""

    def take(self) -> list[Event]:
        """Return the events that were collected since the last time."""
        if self._held_from == 0:
            return []  # All of it is held, however often somebody asks.
        events, self._events = self._events, []
        if self._held_from is not None:
            self._events = events[self._held_from :]
            del events[self._held_from :]
            self._held_from = 0
        return joined(events) if len(events) > 1 else events

    def hold(self) -> None:
        """Keep back what comes from now on, until `end_unopened_thinking` or `release`."""
        if self._held_from is None:
            self._held_from = len(self._events)
            self._before_held = self._tail, self._open_braces, self.spoken

    def release(self) -> None:
        """The reply is over: calls that were held back are made."""
        self._held_from = None

    def emit(self, event: Event) -> None:
        """Add an event that is no text."""
        if isinstance(event, ToolCallStart | BrokenCall | UnknownCall):
            self._space.clear()
            self._text_open = False
            self.gap = True
            self.call_events += 1
        self._events.append(event)

    def say(self, text: str) -> str:
        """Add speech.

        Returns:
            The same text with what keeps it apart from what was spoken before it.
        """
        behind_marker = self.skip_space
        if behind_marker:
            text = text.lstrip()
        if not text:
            return text
        self.skip_space = False
        if not self._text_open and text.isspace():
            self._space.append(text)
            return text
        passed = text
        if self._space:
            text = "".join(self._space) + text
            self._space.clear()
        if self.gap:
            self.gap = False
            separator = self._separator(text)
            text = separator + text
            if not behind_marker:  # Else the white space is the marker's, so it indents nothing.
                passed = separator + passed
        if not self._text_open:
            self._text_open = True
            self._before = self._tail, self._open_braces, self.spoken
        self._remember(text)
        self._events.append(TextDelta(text))
        return passed

    def think(self, text: str) -> None:
        """Add thinking."""
        if self.skip_space:
            text = text.lstrip()
        if text:
            self.skip_space = False
            self._events.append(ReasoningDelta(text))

    def end_unopened_thinking(self) -> None:
        """A closer came without its opener: what was taken for speech was thinking."""
        self._space.clear()
        self.skip_space = True
        if self._held_from is not None:
            held = self._events[self._held_from :]
            self._events[self._held_from :] = [
                ReasoningDelta(event.text)
                for event in held
                if isinstance(event, TextDelta | ReasoningDelta)
            ]
            self._held_from, self._text_open = None, False
            self._tail, self._open_braces, self.spoken = self._before_held
        if self._text_open:
            self._text_open = False
            self._tail, self._open_braces, self.spoken = self._before
            self._events.append(TextWasThinking())

    def guard_call_beginning(self) -> None:
        """What was said last begins as a call does: nothing behind a marker must complete it."""
        self._guarded_lines = _GUARDED_LINES

    def _separator(self, text: str) -> str:
        """Return what is put between the spoken text and `text`, so that they stay apart."""
        tail = self._tail
        may_complete_call = self._guarded_lines or self._open_braces
        if may_complete_call or self.markers.partial_start(tail) < len(tail):
            return f" {SEPARATOR} "
        return " " if tail[-1:].strip() and text[0].strip() else ""

    def _remember(self, text: str) -> None:
        """Note what the end of the speech says of what may come behind it."""
        self.spoken = self.spoken or not text.isspace()
        if "{" in text or "}" in text:
            # One by one: as a whole "}{" would open nothing, in two pieces it does.
            for brace in _BRACES.findall(text):
                more = 1 if brace == "{" else -1
                self._open_braces = min(max(self._open_braces + more, 0), _MAX_BRACES)
        if self._guarded_lines:
            self._guarded_lines = max(0, self._guarded_lines - text.count("\n"))
        self._tail = (self._tail + text)[-_TAIL_CHARS:]


class MarkerScrubber:
    """Speaks text that does not stand as running text, piece by piece and without its markers."""

    def __init__(self, events: EventBuffer) -> None:
        self._events = events
        self._held = ""
        """What may become a marker."""

    def say(self, piece: str) -> None:
        """Speak the next piece."""
        markers = self._events.markers
        text = self._held + piece
        at = 0
        while True:
            found = markers.strip.search(text, at)
            cut = markers.partial_start(text, at)
            if found is None or found.start() > cut:
                break  # One inside of what may become another belongs to that.
            self._events.say(text[at : found.start()])
            self._events.gap = True
            at = found.end()
        self._events.say(text[at:cut])
        self._held = text[cut:]

    def say_all(self, text: str) -> None:
        """Speak `text`, behind which nothing comes."""
        self.say(text)
        self.end()

    def end(self) -> None:
        """Speak what is left, as no more comes."""
        if self._held:
            self._events.say(spoken_rest(self._held))
            self._events.gap = True
        self._held = ""
