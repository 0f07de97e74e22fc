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


@contextmanager
def told_every(
    seconds: float, deadline_s: float, tell: Callable[[Progress], None] | None
) -> Generator[None]:
    """While the block runs, `tell` is called on the event loop every so many seconds."""
    if tell is None:
        yield
        return
    loop = asyncio.get_running_loop()
    began = loop.time()

    def tick() -> None:
        nonlocal timer
        timer = loop.call_later(seconds, tick)
        tell(Progress(loop.time() - began, deadline_s))

    timer = loop.call_later(seconds, tick)
    try:
        yield
    finally:
        timer.cancel()
