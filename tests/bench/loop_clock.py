"""What holds an event loop: how late it is, and which of its steps took how much CPU time.

Lateness is what a person hears, and also holds what the machine gave to other programs and what
threads of this process did with the interpreter's lock. A step's CPU time is this loop's alone, so
it stays the same on a busy machine.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import events
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final
from unittest.mock import patch

BEAT_S: Final = 0.001


@dataclass(slots=True)
class Held:
    late_ms: float = 0.0
    """The longest that a beat came later than asked."""
    step_ms: float = 0.0
    """CPU time of the longest step."""
    step: str = ""
    """What ran in it."""


async def watched(work: Callable[[], Awaitable[object]]) -> Held:
    """Run `work` and watch the loop meanwhile."""
    held = Held()
    run: Callable[[Any], None] = events.Handle._run  # pyright: ignore[reportPrivateUsage]

    def timed(handle: Any) -> None:
        began = time.thread_time()
        run(handle)
        took = (time.thread_time() - began) * 1000
        if took > held.step_ms:
            held.step_ms, held.step = took, _name(handle._callback)

    with patch.object(events.Handle, "_run", timed):
        beating = asyncio.create_task(_beat(held))
        try:
            await asyncio.sleep(0)  # this step began before the watch, so the work gets its own
            await work()
            # What the work left for the loop to do belongs to it.
            await asyncio.sleep(50 * BEAT_S)
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
    return replace(held)  # the last step goes on behind this, with what the caller does


async def _beat(held: Held) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(BEAT_S)
        held.late_ms = max(held.late_ms, (time.perf_counter() - began - BEAT_S) * 1000)


def _name(callback: Any) -> str:
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return f"{owner.get_name()}: {owner.get_coro().__qualname__}"  # pyright: ignore[reportOptionalMemberAccess]
    return str(getattr(callback, "__qualname__", callback))[:60]
