"""Decides which cue is played when: a state machine that takes events and returns actions.

It is pure: every method takes the time in seconds, and nothing here sleeps or plays. The rules are:

- A cue is played as soon as a call is known. The calls of one round of tools share one.
- The agent's voice waits for a cue that is heard, and for the gap behind it.
- No cue is played over speech. A cue waits for the end of the agent's words, if it still has a
  meaning then; during the person's words it is dropped. Speech that begins stops a cue.
- A round has at most one error cue. A reply that the model fails to give has one as well.
- An announcement, such as a timer's, comes when nobody speaks, and then its cue is played
  (`announcer.py`). Speech that begins stops it, too.
- While a person waits for a call, a tick is played after every four seconds of silence; while a
  call waits for the person's answer, none is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Final, Literal, TypeAlias

from caal_node.config.setting_tables import AGENT_TOOLS
from caal_node.core.events import CueKind, Outcome

CueAction: TypeAlias = CueKind | Literal["stop"] | None
"""Play this cue, stop the one that is playing, or (None) do nothing."""

TICK_EVERY_S: Final = 4.0
"""Seconds of silence after which people think that the line is broken. Sooner, ticks annoy."""
SPEECH_GAP_S: Final = 0.15
"""Seconds between the agent's last word and a cue. With less, a listener hears them as one."""
_DELIVERY_S: Final = 0.1
"""Seconds from playing a cue until a listener hears it. Until then it can be stopped."""
_FAILED: Final[frozenset[Outcome]] = frozenset({"error", "timeout", "refused"})


class CuePolicy:
    """The cues of one conversation. `lengths` are the lengths of the cues in seconds."""

    def __init__(
        self, lengths: Mapping[CueKind, float], agent_tools: Collection[str] = AGENT_TOOLS
    ) -> None:
        self._lengths = dict(lengths)
        self._agent_tools = frozenset(agent_tools)
        self._awaited_calls: set[str] = set()
        self._background_calls: set[str] = set()
        self._round_has_cue = False
        self._round_has_error_cue = False
        self._agent_speaks = False
        self._user_speaks = False
        self._person_is_asked = False
        self._waiting_cue: CueKind | None = None
        self._due: float | None = None
        self._plays_until = -math.inf

    @property
    def due(self) -> float | None:
        """The time at which `wake` has to be called, or None where it need not be."""
        return self._due

    def call_started(self, now: float, call_id: str, name: str) -> CueAction:
        self._awaited_calls.add(call_id)
        if self._due is None and not self._anyone_speaks:
            self._due = self._next_tick(now)
        if self._round_has_cue:
            return None
        self._round_has_cue = True
        return self._play(now, "agent" if name in self._agent_tools else "tool")

    def call_released(self, call_id: str) -> None:
        """Note that a call goes on in the background, so that nobody waits for it any more."""
        if call_id in self._awaited_calls:
            self._awaited_calls.discard(call_id)
            self._background_calls.add(call_id)
            self._drop_unneeded()

    def call_ended(self, now: float, call_id: str, outcome: Outcome) -> CueAction:
        if call_id not in self._awaited_calls | self._background_calls:
            return None
        self._awaited_calls.discard(call_id)
        self._background_calls.discard(call_id)
        self._drop_unneeded()
        if outcome not in _FAILED or self._round_has_error_cue:
            return None
        self._round_has_error_cue = True
        return self._play(now, "error")

    def reply_failed(self, now: float) -> CueAction:
        """Note that the model gave no reply. A sentence is on its way, so no cue waits for it."""
        return None if self._agent_speaks else self._play(now, "error")

    def turn_done(self, now: float) -> CueAction:
        """Play the sound that ends a turn in place of an answer, apart from the one before it."""
        if now < self._plays_until + SPEECH_GAP_S and not self._anyone_speaks:
            self._waiting_cue, self._due = "done", self._plays_until + SPEECH_GAP_S
            return None
        return self._play(now, "done")

    def announced(self, now: float, kind: CueKind) -> CueAction:
        """Play the cue of an announcement, whose time somebody else has chosen."""
        self._plays_until = max(self._plays_until, now) + self._lengths[kind]
        return kind

    def round_ended(self) -> None:
        """Note that all calls of a reply have their results. The next call begins a new round."""
        self._round_has_cue = False
        self._round_has_error_cue = False

    def abandon(self) -> None:
        """Forget the calls and the waiting cue, as the person has gone on to something else."""
        self._awaited_calls.clear()
        self._waiting_cue = None
        self._drop_unneeded()
        self.round_ended()

    def question_began(self) -> None:
        """Note that a call asks the person something: now it is the call that waits."""
        self._person_is_asked = True
        self._due = None
        self._waiting_cue = None

    def question_ended(self, now: float) -> None:
        """Note that the person is not asked any more, so that they wait for the call again."""
        self._person_is_asked = False
        self._schedule_after_speech(now)

    def agent_speech_started(self, now: float) -> CueAction:
        self._agent_speaks = True
        self._waiting_cue = None
        return self._silence(now)

    def agent_speech_ended(self, now: float) -> None:
        if self._agent_speaks:
            self._agent_speaks = False
            self._schedule_after_speech(now)

    def user_speech_started(self, now: float) -> CueAction:
        self._user_speaks = True
        self._waiting_cue = None
        return self._silence(now)

    def user_speech_ended(self, now: float) -> None:
        if self._user_speaks:
            self._user_speaks = False
            self._schedule_after_speech(now)

    def quiet_in_s(self, now: float) -> float:
        """Return the seconds until the last cue, and the gap behind it, are over."""
        return max(0.0, self._plays_until + SPEECH_GAP_S - now)

    def wake(self, now: float) -> CueAction:
        """Return the cue that is due. It is called at `due` or later."""
        if self._due is None or now < self._due:
            return None
        return self._play(now, self._waiting_cue or "tick")

    @property
    def user_speaks(self) -> bool:
        return self._user_speaks

    @property
    def _anyone_speaks(self) -> bool:
        return self._agent_speaks or self._user_speaks

    def _play(self, now: float, kind: CueKind) -> CueAction:
        if self._user_speaks:
            return None
        if self._agent_speaks:
            self._waiting_cue = kind
            return None
        self._waiting_cue = None
        if kind in ("tool", "agent"):
            # A cue that waited may be played in the next round, which it announces as well.
            self._round_has_cue = True
        self._due = self._next_tick(now)
        self._plays_until = max(self._plays_until, now) + self._lengths[kind]
        return kind

    def _silence(self, now: float) -> CueAction:
        self._due = None
        is_playing = now < self._plays_until + _DELIVERY_S
        self._plays_until = -math.inf
        return "stop" if is_playing else None

    def _schedule_after_speech(self, now: float) -> None:
        if self._anyone_speaks:
            return
        if self._waiting_cue is not None:
            self._due = now + SPEECH_GAP_S
        else:
            self._due = self._next_tick(now)

    def _next_tick(self, now: float) -> float | None:
        """Return the time of the next tick; None where nobody waits for a call."""
        waits = self._awaited_calls and not self._person_is_asked
        return now + TICK_EVERY_S if waits else None

    def _drop_unneeded(self) -> None:
        """Drop what is due if nobody waits for a call, except the cues that end one."""
        if self._awaited_calls:
            return
        if self._waiting_cue not in ("error", "done"):
            self._waiting_cue = None
        if self._waiting_cue is None:
            self._due = None
