"""The time as a port, so that what waits can be tried without waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol


class ClockTimer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def now(self) -> float:
        """Seconds, from any start, never backwards."""
        ...

    def call_at(self, when: float, callback: Callable[[], None]) -> ClockTimer:
        """Call `callback` once `now()` has reached `when`, unless cancelled before."""
        ...


class LoopClock:
    """The running event loop's own clock."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def now(self) -> float:
        return self._loop.time()

    def call_at(self, when: float, callback: Callable[[], None]) -> ClockTimer:
        return self._loop.call_at(when, callback)
