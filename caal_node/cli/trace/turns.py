"""Finds the turns in a trace.

A turn is from a person's words (`user`) to `turn_ended`. What its answer needed may stand before
its words, since LiveKit may ask the model before a turn is sure to be over, and behind its end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from caal_node.cli.trace.trace_lines import TraceLine
from caal_node.cli.trace.turn_times import REQUEST, TurnTimes, times_of

BETWEEN_MAX: Final = 1_000
"""Lines between two turns that are kept: those of announcements, of calls over the Tools API."""


@dataclass(slots=True)
class _Draft:
    """A turn that is being read."""

    number: int
    user: TraceLine
    person: TraceLine | None
    early: list[TraceLine]
    """Lines before its words, which may be this turn's."""
    lines: list[TraceLine] = field(default_factory=list[TraceLine])
    open_calls: set[str] = field(default_factory=set[str])

    def add(self, line: TraceLine) -> None:
        self.lines.append(line)
        if line.type == "tool_call_started":
            self.open_calls.add(line.name("call_id"))
        elif line.type == "tool_call_ended":
            self.open_calls.discard(line.name("call_id"))

    def finish(self, behind: Iterable[TraceLine] = ()) -> TurnTimes:
        """Return the turn; `behind` are the lines between it and the next one."""
        lines = [*self.early, *self.lines, *self._own(behind)]
        return times_of(self.number, self.user, self.person, lines)

    def _own(self, behind: Iterable[TraceLine]) -> Iterable[TraceLine]:
        """Yield what of `behind` began in this turn: the end of its voice, and of its requests."""
        end = self.lines[-1].time_s if self.lines else self.user.time_s
        voices = [line for line in self.lines if line.type == "agent_voice"]
        sounds = bool(voices) and voices[-1].flag("sounding")
        for line in behind:
            if line.type == "agent_voice" and sounds and not line.flag("sounding"):
                sounds = False
                yield line
            elif line.type == REQUEST and line.time_s - line.ms("took_ms") < end:
                yield line


class _Session:
    """The turns of one session, of which one is open at most."""

    def __init__(self) -> None:
        self._open: _Draft | None = None
        self._ended: _Draft | None = None
        """The turn before, which may still get lines."""
        self._between: deque[TraceLine] = deque(maxlen=BETWEEN_MAX)
        self._person: TraceLine | None = None

    def read(self, line: TraceLine, number: int) -> tuple[TurnTimes | None, bool]:
        """Take a line; return a turn that is over, and whether one of this number has begun."""
        over, began = None, False
        match line.type:
            case "user" if self._open is None or not self._open.open_calls:
                over = self._begin(line, number)
                began = True
            case "person_spoke":
                self._person = line  # its words are the next line of "user"
            case "turn_ended" if self._open is not None:
                self._open.add(line)
                self._ended, self._open = self._open, None
            case _ if self._open is not None:
                self._open.add(line)
            case _:
                self._between.append(line)
        return over, began

    def finish(self) -> TurnTimes | None:
        """Return the last turn. One that has no end ends with its last line."""
        draft = self._open or self._ended
        return None if draft is None else draft.finish(() if self._open else self._between)

    def _begin(self, user: TraceLine, number: int) -> TurnTimes | None:
        over = self.finish()
        before = self._open or self._ended
        # Where a person breaks in, the model may be asked before the turn that they end is over.
        asked = [line for line in before.lines if line.type == REQUEST] if before else []
        self._open = _Draft(number, user, self._person, [*asked, *self._between])
        self._between.clear()
        self._ended = self._person = None
        return over


def turns_of(lines: Iterable[TraceLine]) -> list[TurnTimes]:
    """Return the turns of a trace, by their numbers, which count from 1 in the whole file.

    Raises:
        ConfigError: a line is not as it should be; also what `lines` raises.
    """
    sessions: dict[str, _Session] = {}
    turns: list[TurnTimes] = []
    begun = 0
    for line in lines:
        session = sessions.setdefault(line.session, _Session())
        over, began = session.read(line, begun + 1)
        begun += began
        if over is not None:
            turns.append(over)
    turns += (last for session in sessions.values() if (last := session.finish()) is not None)
    return sorted(turns, key=lambda turn: turn.number)
