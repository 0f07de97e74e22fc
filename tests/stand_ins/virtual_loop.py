"""An event loop whose time passes only where nothing else is left to do.

For code that waits by asyncio's own means (timeouts, sleeps): a test of an hour takes a moment,
and a wait that nothing can end fails at once.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    """Moves the time on in place of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("nothing is left that could end this wait")
        self.now += max(timeout, 0.0)
        return []


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end in virtual time. It may use no sockets, threads or processes."""
    selector = _Selector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(work)
