"""Work that is done once for all who wait for it, however many they are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

Request = TypeVar("Request")
Result = TypeVar("Result")


class TooManyRequests(Exception):
    """More different requests wait for the next run than it may have."""


class SharedRun(Generic[Request, Result]):
    """Runs `work` on all the requests that came while the run before it went on.

    Whoever comes during a run waits for the next: what they were sent for may have appeared after
    this one had looked. Equal requests are one, and a run has `most` of them. A run goes on when
    those who wait for it give up.
    """

    def __init__(self, work: Callable[[tuple[Request, ...]], Awaitable[Result]], most: int) -> None:
        self._work: Final = work
        self._most: Final = most
        self._one_at_a_time: Final = asyncio.Lock()
        self._requests: dict[Request, None] = {}
        self._next: asyncio.Task[Result] | None = None
        self._runs: Final[set[asyncio.Task[Result]]] = set()

    @property
    def is_idle(self) -> bool:
        return not self._runs

    async def result(self, request: Request) -> Result:
        """Return what the next run gives.

        Raises:
            TooManyRequests: as many others wait for it.
            Exception: what the work raises.
        """
        if request not in self._requests and len(self._requests) >= self._most:
            raise TooManyRequests
        self._requests[request] = None
        if self._next is None:
            self._next = asyncio.create_task(self._run(), name="caal-shared-run")
            self._runs.add(self._next)
            self._next.add_done_callback(self._ended)
        return await asyncio.shield(self._next)

    async def aclose(self) -> None:
        """Cancel what runs and waits, and wait until it has ended."""
        for run in (runs := list(self._runs)):
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)

    async def _run(self) -> Result:
        async with self._one_at_a_time:
            requests, self._requests, self._next = tuple(self._requests), {}, None
            return await self._work(requests)

    def _ended(self, run: asyncio.Task[Result]) -> None:
        self._runs.discard(run)
        if not run.cancelled():
            run.exception()  # it may be that nobody waits for it any more
