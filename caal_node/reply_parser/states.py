"""What a parser knows to do with the next characters without waking the reader.

Most text comes in small pieces, and most pieces change nothing: the next letter of a word, or of
an argument that is not over yet. A `State` is a node of an automaton; its table says, for a piece
of text, which event that makes and which state comes next. What no table says is worked out by
the readers, and the answer is kept, so that an automaton grows as it is used (a lazy DFA).
"""

from __future__ import annotations

import re
from typing import TypeAlias

from caal_node.reply_parser.events import Event, ReasoningDelta, TextDelta

Step: TypeAlias = "tuple[Event | None, State, str]"
"""(what goes out, the state that follows, the text to keep: see the state's kind)."""

_MAX_PIECE_CHARS = 8
"""Longer pieces of text seldom come again."""
_MAX_STEPS = 2_000
"""Steps that one state keeps. All letters of a script have room; memory stays small."""


class State:
    """Nothing is known: every piece wakes the reader."""

    __slots__ = ("bites", "steps")

    def __init__(self) -> None:
        self.bites = False
        """Whether it takes much at once, so that looking at single characters is slower."""
        self.steps: dict[str, Step] = {}
        """By piece of text."""

    def bite(self, text: str, at: int) -> int:
        """Up to where `text` may be taken in one piece from `at` on."""
        return len(text)

    def step(self, piece: str) -> Step | None:
        """What `piece` does here. None: the reader must be told."""
        return None

    def keep(self, piece: str, step: Step) -> Step:
        if len(piece) <= _MAX_PIECE_CHARS and len(self.steps) < _MAX_STEPS:
            self.steps[piece] = step
        return step


class Waiting(State):
    """A reader waits for something; till then its text is only collected."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        self.bites = True


class Flowing(State):
    """Text goes straight out, up to something that may have a meaning."""

    __slots__ = ("_delta", "_stops")

    def __init__(self, delta: type[TextDelta | ReasoningDelta], stops: re.Pattern[str]) -> None:
        super().__init__()
        self.bites = True
        self._delta = delta
        self._stops = stops

    def step(self, piece: str) -> Step | None:
        if self._stops.search(piece) is not None:
            return None
        return self.keep(piece, (self._delta(piece), self, piece))


class Start(State):
    """Nothing has been read. One character at a time, so that what follows finds its state."""

    __slots__ = ()

    def bite(self, text: str, at: int) -> int:
        return at + 1


EVERYTHING = State()
START = Start()
