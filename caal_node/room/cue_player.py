"""Plays what the cue policy decides, and wakes the policy at the time that it asks for.

A room's track, local speakers and a recorder implement `CueSink`, which plays the sounds. Tests
replace the `Clock`, and never wait.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from caal_node.core.events import CuePlayed
from caal_node.room.cue_policy import CueAction, CuePolicy
from caal_node.room.cues import CueSet, Samples

_log = logging.getLogger(__name__)


class ClockTimer(Protocol):
    """A timer, as `asyncio.TimerHandle` is one."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """A clock with timers, as `asyncio.AbstractEventLoop` is one."""

    def time(self) -> float:
        """Return the time in seconds. It starts anywhere and never goes back."""
        ...

    def call_at(self, when: float, callback: Callable[[], None]) -> ClockTimer:
        """Call `callback` once `time()` has reached `when`, unless the timer is cancelled first."""
        ...


class CueSink(Protocol):
    """Plays short sounds, one after the other, and can stop at once."""

    def play(self, samples: Samples) -> None:
        """Play `samples` now, or after the sound that is still playing. It never blocks."""
        ...

    def stop(self) -> None:
        """Stop the sound, and drop all that was not heard yet."""
        ...

    async def aclose(self) -> None: ...


class SilentCueSink:
    """A sink without sound, with which the cues are still reported as events."""

    def play(self, samples: Samples) -> None:
        """Play nothing."""

    def stop(self) -> None:
        """Do nothing, as nothing plays."""

    async def aclose(self) -> None:
        """Do nothing, as nothing is open."""


class LateCueSink:
    """A sink that can be used before its room is connected.

    It is silent until `ready` gives it the sink that plays its sounds.
    """

    def __init__(self) -> None:
        self._sink: CueSink | None = None

    def ready(self, sink: CueSink) -> None:
        self._sink = sink

    def play(self, samples: Samples) -> None:
        if self._sink is not None:
            self._sink.play(samples)

    def stop(self) -> None:
        if self._sink is not None:
            self._sink.stop()

    async def aclose(self) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            await sink.aclose()


class CuePlayer:
    """Plays cues. `perform` returns the cue that it plays; `on_timed_cue` gets those of the timer.

    Without a `sink` no cue is played. A sink that fails is logged, and nothing else stops.
    """

    def __init__(
        self,
        policy: CuePolicy,
        *,
        sink: CueSink | None,
        cues: CueSet,
        clock: Clock,
        on_timed_cue: Callable[[CuePlayed | None], None],
    ) -> None:
        self._policy = policy
        self._sink = sink
        self._cues = cues
        self._clock = clock
        self._on_timed_cue = on_timed_cue
        self._timer: ClockTimer | None = None
        self._timer_due: float | None = None

    def perform(self, action: CueAction = None) -> CuePlayed | None:
        """Do what the policy decided, after each event, and return the cue that is played."""
        played = self._play_or_stop(action)
        self._reschedule()
        return played

    def close(self) -> None:
        """Stop the sound and the timer. No task runs, so there is nothing to await."""
        self._policy.abandon()
        self.perform("stop")

    def _play_or_stop(self, action: CueAction) -> CuePlayed | None:
        if self._sink is None or action is None:
            return None
        try:
            if action == "stop":
                self._sink.stop()
                return None
            self._sink.play(self._cues[action])
        except Exception:
            _log.exception("a cue failed: %s", action)
            return None
        return CuePlayed(action)

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
        self._on_timed_cue(self.perform(self._policy.wake(self._clock.time())))
