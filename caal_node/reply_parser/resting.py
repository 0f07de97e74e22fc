"""Running text at rest: nothing is being read for a call, so a few facts say how it goes on.

Those facts are a `Standing`. The same character in the same standing always does the same, so
what the readers once made of it is kept as a step of the automaton. What depends on more (which
words came before, which tools are called) is never kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from caal_node.reply_parser.event_buffer import EventBufferState
from caal_node.reply_parser.events import Event, ReasoningDelta, TextDelta, TextWasThinking
from caal_node.reply_parser.markers import TRIGGERS
from caal_node.reply_parser.states import State, Step
from caal_node.reply_parser.unmarked.text_position import TextPositionState, last_of

MAX_HELD_CHARS = 32
"""Longer than any marker of fixed spelling; what is held is part of a standing."""
_MAX_STANDINGS = 4_000
"""Standings that one automaton keeps before it begins anew. Ordinary replies need some hundred."""


@dataclass(slots=True)
class Mode:
    """What running text is taken for."""

    prompted: bool
    """Whether the prompt left thinking open."""
    thinking: tuple[str, ...] | None = None
    """Closers of the thinking that is open."""
    literal: tuple[str, ...] = ()
    """Closers of a stretch in which markers mean nothing."""


class Standing(NamedTuple):
    held: str
    """Text that may become a marker."""
    thinking: tuple[str, ...] | None
    prompted: bool
    literal: tuple[str, ...]
    voice: EventBufferState
    place: TextPositionState

    @property
    def delta(self) -> type[TextDelta | ReasoningDelta] | None:
        """What plain characters become, if they go straight out here."""
        if self.held:
            return None
        if self.thinking is not None:
            return None if self.voice.skip_space else ReasoningDelta
        voice, place = self.voice, self.place
        held_back = voice.skip_space or voice.gap or voice.space_waits or len(voice.tail) > 1
        settled = voice.text_open and not (place.line_start or place.behind_call or place.wreck)
        return TextDelta if settled and not held_back else None


class Resting(State):
    """A `Standing` as a node of the automaton."""

    __slots__ = ("_automaton", "_delta", "_siblings", "standing")

    def __init__(self, automaton: Automaton, standing: Standing) -> None:
        super().__init__()
        self.standing = standing
        self._automaton = automaton
        self._delta = standing.delta
        self.bites = self._delta is not None
        self._siblings: dict[tuple[str, str], Resting] = {}
        """The standings that differ in the last character only."""

    def bite(self, text: str, at: int) -> int:
        if self._delta is None:
            return at + 1
        found = TRIGGERS.search(text, at)
        return len(text) if found is None else max(found.start(), at + 1)

    def step(self, piece: str) -> Step | None:
        known = self.steps.get(piece)
        if known is not None or self._delta is None or TRIGGERS.search(piece) is not None:
            return known
        if self.standing.thinking is not None:
            return self.keep(piece, (self._delta(piece), self, ""))
        ends = last_of(piece, self.standing.place.last), "x" if piece[-1:].strip() else ""
        following = self._siblings.get(ends)
        if following is None:
            last, tail = ends
            voice, place = self.standing.voice, self.standing.place
            following = self._automaton.state(
                self.standing._replace(
                    voice=voice._replace(tail=tail), place=place._replace(last=last)
                )
            )
            self._siblings[ends] = following
        return self.keep(piece, (self._delta(piece), following, piece))

    def learn(self, char: str, events: Sequence[Event], after: Resting, passed: str) -> None:
        """Keep what `char` did here, if it is the same every time."""
        voice = self.standing.voice
        if len(events) > 1 or voice.space_waits != after.standing.voice.space_waits:
            return
        if voice.space_waits and voice.skip_space:
            return  # What passes here is not what waits.
        event = events[0] if events else None
        if isinstance(event, TextDelta | ReasoningDelta | TextWasThinking | None):
            self.keep(char, (event, after, passed))


class Automaton:
    """The states of running text, for one set of tool names."""

    def __init__(self) -> None:
        self._states: dict[Standing, Resting] = {}

    def state(self, standing: Standing) -> Resting:
        found = self._states.get(standing)
        if found is None:
            if len(self._states) >= _MAX_STANDINGS:
                self._states.clear()
            found = self._states[standing] = Resting(self, standing)
        return found


@lru_cache(maxsize=16)
def automaton(names: tuple[str, ...]) -> Automaton:
    """The automaton that parsers with tools of these names share."""
    return Automaton()
