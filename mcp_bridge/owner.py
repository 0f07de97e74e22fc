"""The one task that owns a server's connections.

Callers hand jobs to it through a queue and wait for a future. Without a connection it waits for a
job, or for the time to try a lost one again, and then connects: `connection.py` tells what happens
inside.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from mcp import Client

from mcp_bridge.backoff import Backoff, Uniform
from mcp_bridge.breaker import Breaker
from mcp_bridge.connect import Wire, unsent
from mcp_bridge.connection import Connection, Ending
from mcp_bridge.errors import CallTimeout, ServerError, ServerUnavailable
from mcp_bridge.job import Job
from mcp_bridge.limits import Limits
from mcp_bridge.patience import Patience
from mcp_bridge.servers import ServerConfig

logger = logging.getLogger(__name__)

CLOSE_S: Final = 10.0
"""For leaving politely: some 3 s for a process that must be killed, 8 s for one whose supervisor is
stuck, and room to spare."""
STEADY_S: Final = 60.0
"""A connection that lasted so long was a good one: after it, waits begin from the first again."""

T = TypeVar("T")
MakeWire = Callable[[ServerConfig, int, Callable[[], None]], Wire]


class Owner:
    """Start it, hand it jobs, close it.

    Args:
        lists: asks for the server's tools; what a connection that is made again does first.
        relist: asks for them through a job, beside the calls; raises nothing.
        idled: called when a connection was closed because nobody used it.
    """

    def __init__(
        self,
        config: ServerConfig,
        limits: Limits,
        *,
        lists: Callable[[Client], Awaitable[None]],
        relist: Callable[[], Awaitable[None]],
        idled: Callable[[], None],
        make_wire: MakeWire,
        uniform: Uniform,
    ) -> None:
        self.failure: str | None = None
        self.connect_ms: int | None = None
        self.protocol: str | None = None
        self.connect_timeout_s: Final = config.connect_timeout_s or limits.connect_timeout_s
        self._config: Final = config
        self._limits: Final = limits
        self._lists: Final = lists
        self._relist: Final = relist
        self._idled: Final = idled
        self._make_wire: Final = make_wire
        self._jobs: Final[asyncio.Queue[Job[Any] | None]] = asyncio.Queue()
        self._breaker: Final = Breaker(limits.failures, limits.rest_s)
        self._backoff: Final = Backoff(limits.retry_first_s, limits.retry_longest_s, uniform)
        self._retry_at: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._connection: Connection | None = None
        self._closing = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._own(), name=f"mcp:{self._config.name}")

    def admit(self) -> None:
        """Raises: ServerUnavailable, where a call is not even to be tried."""
        wait_s = self._breaker.admit(asyncio.get_running_loop().time())
        if wait_s > 0:
            said = f"{self.failure or 'gives no answer'} ({self._breaker.failures} failures in a "
            said += f"row; not tried for {wait_s:.0f} s more)"
            raise ServerUnavailable(self._config.name, said)

    async def submit(self, job: Job[T], patience: Patience) -> T:
        """Raises: ServerUnavailable, CallTimeout, ServerError."""
        name = self._config.name
        if self._task is None or self._task.done() or self._closing:
            raise ServerUnavailable(name, "is closed")
        running = len(self._connection.running) if self._connection else 0
        if self._jobs.qsize() + running >= self._limits.max_waiting:
            raise ServerUnavailable(name, "has too many calls under way; try again later")
        began = asyncio.get_running_loop().time()
        self._jobs.put_nowait(job)
        try:
            async with patience:
                answer = await job.future
        except TimeoutError:
            job.abandon()
            self._timed_out(began)
            what = "gave no answer" if job.tool else "did not list its tools"
            raise CallTimeout(name, f"{what} within {patience.waited_s:g} s") from None
        except ServerError:
            self._breaker.succeeded()  # it is there, and says no
            raise
        finally:
            job.abandon()
        self._breaker.succeeded()
        self.failure = None
        if job.counts:
            self._backoff.reset()
        return answer

    async def aclose(self) -> None:
        """Ends the connection, the process and the task. Jobs under way fail."""
        if (task := self._task) is None:
            return
        self._closing = True
        self._jobs.put_nowait(None)
        if self._connection is not None:
            self._connection.leave()
        await asyncio.wait((task,), timeout=CLOSE_S)
        if not task.done() and self._connection is not None:
            self._connection.abort()
            await asyncio.wait((task,), timeout=CLOSE_S)
        if not task.done():
            logger.error("%s: does not close; abandoned", self._config.name)
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def _timed_out(self, began: float) -> None:
        """Counts it; a server that leaves every call unanswered is left, and begun afresh."""
        if self._breaker.failed(began, asyncio.get_running_loop().time()):
            self.failure = "leaves every call without an answer"
            if self._connection is not None and not self._connection.in_use:
                self._connection.leave()

    async def _own(self) -> None:
        try:
            while not self._closing:
                job = await self._next()
                if job is not None and not job.future.done():
                    await self._connect(job)
        finally:
            self._fail_waiting(ServerUnavailable(self._config.name, "is closed"))

    async def _next(self) -> Job[Any] | None:
        """The next job; our own, where a lost connection is to be tried again by then."""
        try:
            async with asyncio.timeout_at(self._retry_at):
                return await self._jobs.get()
        except TimeoutError:
            return Job(self._lists, counts=False)
        finally:
            self._retry_at = None

    async def _connect(self, first: Job[Any]) -> None:
        """One connection, from its first job to its end, whatever ends it."""
        self._connection = connection = Connection(
            self._config.name, self._jobs, self._limits, ready=self._ready, relist=self._relist
        )
        wire = self._make_wire(self._config, self._limits.max_result_chars, connection.stop)
        left: list[Job[Any]] = []
        try:
            ending = await connection.run(wire, first, self.connect_timeout_s)
            left = [job for job in connection.running if not job.future.done()]
            if ending.idle:
                logger.info("%s: closed, as nobody used it", self._config.name)
                self._idled()
            elif not self._closing:
                left = self._ended(ending, wire, left)
        finally:
            self._connection = None
            # Why is known by now, unless we are closing.
            reason = "is closed" if self._closing else self.failure or "went away"
            for job in left:
                job.fail(ServerUnavailable(self._config.name, reason))

    def _ready(self, client: Client, connect_ms: int) -> None:
        self.connect_ms = connect_ms
        self.protocol = client.protocol_version
        self.failure = None
        logger.info("%s: connected in %d ms", self._config.name, connect_ms)

    def _ended(self, ending: Ending, wire: Wire, left: list[Job[Any]]) -> list[Job[Any]]:
        """Settles what follows when a connection ends by itself. Gives the jobs that failed."""
        now = asyncio.get_running_loop().time()
        self.failure = reason = self._reason(ending, wire)
        # Whoever asked for the first connection tells of its failure.
        level = logging.WARNING if ending.ready else logging.DEBUG
        logger.log(level, "%s: %s", self._config.name, reason)
        again = ending.ready and ending.cause is not None and unsent(ending.cause)
        if again and len(left) == 1 and not left[0].again:
            left[0].again = True
            self._jobs.put_nowait(left[0])
            return []
        if ending.ready or any(job.counts for job in left):
            self._breaker.failed(ending.began, now)  # our own tries must not use up a caller's
        if ending.ready and now - ending.began >= STEADY_S:
            self._backoff.reset()
        heals = ending.late or wire.may_heal(ending.cause, ending.ready)
        if heals and self._backoff.tries < self._limits.retries:
            self._retry_at = now + self._backoff.next()
        if not ending.ready:
            # No point in trying once for each of them.
            self._fail_waiting(ServerUnavailable(self._config.name, reason))
        return left

    def _reason(self, ending: Ending, wire: Wire) -> str:
        if ending.late:
            limit = f"{self.connect_timeout_s:g} s"
            return f"was not ready within {limit}; see that it starts, or raise connect_timeout"
        if self.failure and ending.ready and ending.cause is None and wire.closed is None:
            return self.failure  # we left it ourselves
        return wire.explain(ending.cause, ending.ready)

    def _fail_waiting(self, error: ServerUnavailable) -> None:
        while not self._jobs.empty():
            # A None may go too: it only wakes the task, which looks at `_closing` by itself.
            if (job := self._jobs.get_nowait()) is not None:
                job.fail(error)
