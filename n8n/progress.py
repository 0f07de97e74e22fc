"""Telling that a call still runs, so that nobody takes a slow workflow for a dead line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

PROGRESS_S: Final = 5.0
"""About as long as a person waits before wondering."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A call that has no answer yet. Seconds."""

    elapsed_s: float
    deadline_s: float
    step: str | None = None
    """What it does, in its author's words: those that a streamed answer has sent so far."""


@contextmanager
def told_every(
    seconds: float, deadline_s: float, tell: Callable[[Progress], None] | None
) -> Generator[Callable[[str], None] | None]:
    """While the block runs, `tell` is called on the event loop every so many seconds, and at once
    for the words of a step that the block hands in."""
    if tell is None:
        yield None
        return
    step: str | None = None
    loop = asyncio.get_running_loop()
    began = loop.time()

    def tick() -> None:
        nonlocal timer
        timer = loop.call_later(seconds, tick)
        tell(Progress(loop.time() - began, deadline_s, step))

    def at_step(words: str) -> None:
        nonlocal step
        step = words
        tell(Progress(loop.time() - began, deadline_s, step))

    timer = loop.call_later(seconds, tick)
    try:
        yield at_step
    finally:
        timer.cancel()
