"""Calls an owner's callback, plain or async, in the order of its events."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

Callback: TypeAlias = Callable[..., Awaitable[None] | None]

CALLBACK_S: Final = 10.0
"""Seconds that an async callback may take; the next one waits for it."""
MAX_WAITING: Final = 1_000
"""Calls that wait behind a slow callback: the events of an hour's talk. More are left out."""

_log = logging.getLogger(__name__)


class CallbackQueue:
    """Makes one call after the other, and awaits what a callback returns before the next one.

    A plain function is called at once, on the event loop, unless an async one before it still
    runs. The conversation waits for neither. A callback that fails or takes too long is logged.
    """

    def __init__(self) -> None:
        self._waiting: Final[deque[tuple[Callback, tuple[Any, ...]]]] = deque()
        self._running: asyncio.Task[None] | None = None

    def call(self, callback: Callback, *args: Any) -> None:
        """Call `callback` now, or when those before it have ended."""
        if self._running is not None:
            if len(self._waiting) < MAX_WAITING:
                self._waiting.append((callback, args))
            else:
                _log.error("a callback is too slow; what came meanwhile is not told")
            return
        if (result := _called(callback, args)) is not None:
            self._running = asyncio.create_task(self._run(result), name="caal-callbacks")

    async def done(self) -> None:
        """Wait until every call that was asked for has ended."""
        if self._running is not None:
            await asyncio.wait([self._running])

    async def aclose(self) -> None:
        """Wait for what is under way, as long as one callback may take, then drop the rest."""
        if (running := self._running) is not None:
            await asyncio.wait([running], timeout=CALLBACK_S)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        self._waiting.clear()

    async def _run(self, first: Awaitable[None]) -> None:
        try:
            await _ended(first)
            while self._waiting:
                callback, args = self._waiting.popleft()
                if (result := _called(callback, args)) is not None:
                    await _ended(result)
        finally:
            self._running = None


def _called(callback: Callback, args: tuple[Any, ...]) -> Awaitable[None] | None:
    """Call it, and return what is to be awaited of it."""
    try:
        result = callback(*args)
    except Exception:
        _log.exception("a callback failed")
        return None
    return result if inspect.isawaitable(result) else None


async def _ended(result: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(CALLBACK_S):
            await result
    except TimeoutError:
        _log.exception("a callback did not end within %g seconds", CALLBACK_S)
    except Exception:
        _log.exception("a callback failed")
