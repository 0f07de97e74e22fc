"""The part of an event loop that tells the time, so that tests can replace it and never wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


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
