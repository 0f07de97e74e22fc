"""Which cue when: a state machine fed with what happens, that answers with what to do.

Pure: every method takes the time in seconds, nothing here sleeps or plays. The rules:

- a cue the moment a call is known; the calls of one round of tools share one;
- never over speech. Behind the agent's own words a cue waits, if it still says something then;
  behind the person's it is dropped. Speech that begins cuts a cue that sounds;
- one error cue a round;
- while a person waits for a call: a tick after four seconds without a sound, and every four again.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Final, Literal, TypeAlias

from caal_node.core.events import CueKind, Outcome

Act: TypeAlias = CueKind | Literal["stop"] | None
"""Play this cue, stop the one that sounds, or nothing."""

AGENT_TOOLS: Final = frozenset({"spawn_agent", "delegate", "run_sub_agent"})
"""Tools that hand the work to another agent, by default."""
TICK_EVERY_S: Final = 4.0
"""Seconds of quiet that begin to sound like a dropped line; sooner, the tick nags."""
SPEECH_GAP_S: Final = 0.15
"""Between the agent's last word and a cue: closer, they run into each other at a listener."""
_HEARD_LATER_S: Final = 0.1
"""A cue sounds at a listener this long after it was handed over; until then it can be cut."""
_FAILED: Final[frozenset[Outcome]] = frozenset({"error", "timeout", "refused"})


class CuePolicy:
    """One conversation's cues. `lengths` are the cues' own, in seconds."""

    def __init__(
        self, lengths: Mapping[CueKind, float], agent_tools: Collection[str] = AGENT_TOOLS
    ) -> None:
        self._lengths = dict(lengths)
        self._agent_tools = frozenset(agent_tools)
        self._waited: set[str] = set()
        self._released: set[str] = set()
        self._round_cued = False
        self._round_erred = False
        self._agent_speaks = False
        self._user_speaks = False
        self._owed: CueKind | None = None
        self._due: float | None = None
        self._sounds_until = -math.inf

    @property
    def due(self) -> float | None:
        """When `wake` wants to be called; None: not before something else happens."""
        return self._due

    def call_started(self, now: float, call_id: str, name: str) -> Act:
        self._waited.add(call_id)
        if self._due is None and not self._speech:
            self._due = now + TICK_EVERY_S
        if self._round_cued:
            return None
        self._round_cued = True
        return self._sound(now, "agent" if name in self._agent_tools else "tool")

    def call_released(self, call_id: str) -> None:
        """The call goes on in the background, and the person is told so: nobody waits for it."""
        if call_id in self._waited:
            self._waited.discard(call_id)
            self._released.add(call_id)
            self._settle()

    def call_ended(self, now: float, call_id: str, outcome: Outcome) -> Act:
        if call_id not in self._waited | self._released:
            return None
        self._waited.discard(call_id)
        self._released.discard(call_id)
        self._settle()
        if outcome not in _FAILED or self._round_erred:
            return None
        self._round_erred = True
        return self._sound(now, "error")

    def round_ended(self) -> None:
        """All calls of one reply have their results; the next call is a new round's."""
        self._round_cued = False
        self._round_erred = False

    def abandon(self) -> None:
        """The person went on to something else: what they waited for is no longer news."""
        self._waited.clear()
        self._owed = None
        self._settle()
        self.round_ended()

    def agent_speech_started(self, now: float) -> Act:
        self._agent_speaks = True
        self._owed = None
        return self._hush(now)

    def agent_speech_ended(self, now: float) -> None:
        if self._agent_speaks:
            self._agent_speaks = False
            self._resume(now)

    def user_speech_started(self, now: float) -> Act:
        self._user_speaks = True
        self._owed = None
        return self._hush(now)

    def user_speech_ended(self, now: float) -> None:
        if self._user_speaks:
            self._user_speaks = False
            self._resume(now)

    def wake(self, now: float) -> Act:
        """Call it at `due`, or any time after."""
        if self._due is None or now < self._due:
            return None
        return self._sound(now, self._owed or "tick")

    @property
    def _speech(self) -> bool:
        return self._agent_speaks or self._user_speaks

    def _sound(self, now: float, kind: CueKind) -> Act:
        if self._user_speaks:
            return None
        if self._agent_speaks:
            self._owed = kind
            return None
        self._owed = None
        if kind in ("tool", "agent"):
            # One that waited may sound a round late; it announces that round too.
            self._round_cued = True
        self._due = now + TICK_EVERY_S if self._waited else None
        self._sounds_until = max(self._sounds_until, now) + self._lengths[kind]
        return kind

    def _hush(self, now: float) -> Act:
        self._due = None
        sounds = now < self._sounds_until + _HEARD_LATER_S
        self._sounds_until = -math.inf
        return "stop" if sounds else None

    def _resume(self, now: float) -> None:
        if self._speech:
            return
        if self._owed is not None:
            self._due = now + SPEECH_GAP_S
        elif self._waited:
            self._due = now + TICK_EVERY_S

    def _settle(self) -> None:
        """With nobody waiting, only a failure is still worth a sound."""
        if self._waited:
            return
        if self._owed != "error":
            self._owed = None
        if self._owed is None:
            self._due = None
