"""Telling that a call still runs, so that nobody takes a slow workflow for a dead line."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from n8n.calls.streaming import StepCallback

PROGRESS_S: Final = 5.0
"""About as long as a person waits before wondering."""
STEP_GAP_S: Final = 0.25
"""The least time between two steps that are told at once: nobody looks more often, and a run may
stream thousands of them. One in between is told with the next tick, if it is still the last."""
LAST_STEP_S: Final = 1.0
"""How long a step's words wait for the answer to end: a run that still goes on then does something
after them, so they are progress."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A call that has no answer yet."""

    elapsed_s: float
    deadline_s: float
    step: str | None = None
    """What it does, in its author's words: those that a streamed answer has sent so far."""


@contextmanager
def report_progress(
    every_s: float, deadline_s: float, callback: Callable[[Progress], None] | None
) -> Generator[StepCallback | None]:
    """Call `callback` on the event loop every so many seconds while the block runs.

    It is also called at once for a step that the block hands in, if the one before was told
    STEP_GAP_S ago. A step whose words may be the answer waits for LAST_STEP_S.
    """
    if callback is None:
        yield None
        return
    step: str | None = None
    told_at = -math.inf
    loop = asyncio.get_running_loop()
    began = loop.time()

    def tick() -> None:
        nonlocal timer
        timer = loop.call_later(every_s, tick)
        callback(Progress(loop.time() - began, deadline_s, step))

    def on_step(words: str, followed: bool) -> None:
        nonlocal waiting
        if waiting is not None:
            waiting.cancel()
        if followed:
            tell_step(words)
        else:
            waiting = loop.call_later(LAST_STEP_S, tell_step, words)

    def tell_step(words: str) -> None:
        nonlocal step, told_at
        if words == step:
            return
        step = words
        if loop.time() - told_at < STEP_GAP_S:
            return
        told_at = loop.time()
        callback(Progress(loop.time() - began, deadline_s, step))

    waiting: asyncio.TimerHandle | None = None
    timer = loop.call_later(every_s, tick)
    try:
        yield on_step
    finally:
        timer.cancel()
        if waiting is not None:
            waiting.cancel()
