"""Ctrl-C ends what goes on, and not the program."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self, TypeVar

T = TypeVar("T")


def _nothing() -> None:
    """Nobody is at work."""


class CtrlC:
    """Counts how often Ctrl-C is pressed, and interrupts the work of `during`."""

    def __init__(self) -> None:
        self.presses = 0
        self._act: Callable[[], None] = _nothing

    @classmethod
    @contextmanager
    def taken(cls) -> Generator[Self]:
        """Take Ctrl-C over from Python. This has to be the main thread, in its event loop."""
        taken = cls()
        loop = asyncio.get_running_loop()

        def handle(_: int, __: FrameType | None) -> None:
            taken.presses += 1  # at once: whoever looks next has to know
            loop.call_soon_threadsafe(taken._interrupt)

        # Not by the loop's own signal handlers, which Windows has not.
        before = signal.signal(signal.SIGINT, handle)
        try:
            yield taken
        finally:
            signal.signal(signal.SIGINT, before)

    async def during(
        self, work: Coroutine[Any, Any, T], first: Callable[[], None] = _nothing
    ) -> T | None:
        """Do `work`; return what came of it, or None where Ctrl-C has ended it.

        A press calls `first` and cancels the work, which may still end in good order.
        """
        task = asyncio.ensure_future(work)

        def act() -> None:
            first()
            task.cancel()

        self._act = act
        try:
            return await task
        except asyncio.CancelledError:
            if not self.presses:
                raise
            return None
        finally:
            self._act = _nothing

    def _interrupt(self) -> None:
        self._act()
