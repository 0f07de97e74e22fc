"""The time as an interface, so that code with timers can be tested without waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol


class ClockTimer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def now(self) -> float:
        """Return the time in seconds. It starts anywhere and never goes back."""
        ...

    def call_at(self, when: float, callback: Callable[[], None]) -> ClockTimer:
        """Call `callback` once `now()` has reached `when`, unless the timer is cancelled first."""
        ...


class LoopClock:
    """The running event loop's own clock."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def now(self) -> float:
        return self._loop.time()

    def call_at(self, when: float, callback: Callable[[], None]) -> ClockTimer:
        return self._loop.call_at(when, callback)
