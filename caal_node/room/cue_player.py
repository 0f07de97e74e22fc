"""The policy's hands: plays what it decides, and asks it again when it wants to be asked."""

from __future__ import annotations

import logging
from collections.abc import Callable

from caal_node.core.events import CuePlayed
from caal_node.room.clock import Clock, ClockTimer
from caal_node.room.cue_policy import Act, CuePolicy
from caal_node.room.cue_sink import CueSink
from caal_node.room.cues import CueSet

_log = logging.getLogger(__name__)


class CuePlayer:
    """`tell` hears of cues that come by time; the others are returned by `act`.

    Without a `sink` nothing sounds. A sink that fails is logged, and stops nothing else.
    """

    def __init__(
        self,
        policy: CuePolicy,
        *,
        sink: CueSink | None,
        cues: CueSet,
        clock: Clock,
        tell: Callable[[CuePlayed | None], None],
    ) -> None:
        self._policy = policy
        self._sink = sink
        self._cues = cues
        self._clock = clock
        self._tell = tell
        self._timer: ClockTimer | None = None
        self._timer_due: float | None = None

    def act(self, act: Act = None) -> CuePlayed | None:
        """Do what the policy said; due after every word to it. Returns the cue that sounds."""
        played = self._perform(act)
        self._reschedule()
        return played

    def close(self) -> None:
        """Fall silent and forget what was due. Nothing here runs on, so nothing is awaited."""
        self._policy.abandon()
        self.act("stop")

    def _perform(self, act: Act) -> CuePlayed | None:
        if self._sink is None or act is None:
            return None
        try:
            if act == "stop":
                self._sink.stop()
                return None
            self._sink.play(self._cues[act])
        except Exception:
            _log.exception("a cue failed: %s", act)
            return None
        return CuePlayed(act)

    def _reschedule(self) -> None:
        due = self._policy.due
        if due == self._timer_due:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if due is None else self._clock.call_at(due, self._wake)
        self._timer_due = due

    def _wake(self) -> None:
        self._timer = self._timer_due = None
        self._tell(self.act(self._policy.wake(self._clock.now())))
