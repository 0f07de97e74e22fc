"""One server and the one task that owns its connection.

A connection of the SDK must be entered, used and left in the same task, and a remote server that
dies cancels that task. So one task does all three; callers hand it jobs through a queue and wait
for a future. Jobs run side by side in a task group inside the owner. When a connection ends, the
owner goes back to waiting, and the next job connects again.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import anyio
from mcp import Client, MCPError
from pydantic import ValidationError

from mcp_bridge.connect import Wire, unsent
from mcp_bridge.errors import BridgeError, CallTimeout, ServerError, ServerUnavailable
from mcp_bridge.limits import Limits
from mcp_bridge.listing import Listing, exposed, list_tools
from mcp_bridge.results import normalise
from mcp_bridge.servers import ServerConfig
from mcp_bridge.tools import Definition, ToolCallResult

logger = logging.getLogger(__name__)

CLOSE_S: Final = 5.0
"""For leaving politely: some 3 s for a process that must be killed, and room to spare."""

T = TypeVar("T")


class _Job(Generic[T]):
    """Work for the owner. It is over when its future is done; then nobody waits any more."""

    def __init__(self, work: Callable[[Client], Awaitable[T]]) -> None:
        self.work: Final = work
        self.future: Final[asyncio.Future[T]] = asyncio.get_running_loop().create_future()
        self.scope: anyio.CancelScope | None = None
        self.again = False

    def finish(self, value: T) -> None:
        if not self.future.done():
            self.future.set_result(value)

    def fail(self, error: BridgeError) -> None:
        if not self.future.done():
            self.future.set_exception(error)

    def abandon(self) -> None:
        """Stops it; the server is told if it has the request. Does nothing when it is over."""
        self.future.cancel()
        if self.scope is not None:
            self.scope.cancel()


class ServerSession:
    """Start it, use it, close it; `failure` says at any time what is wrong, or None."""

    def __init__(self, config: ServerConfig, limits: Limits) -> None:
        self.config: Final = config
        self.failure: str | None = None
        self.listing = Listing()
        self.recalled = False
        """Whether `listing` is what the server offered some other day, and not asked for since."""
        self.confirming: Final = asyncio.Lock()
        """Held while a recalled list is asked for afresh."""
        self.connect_ms: int | None = None
        """How long the last connection took."""
        self._limits: Final = limits
        self._connect_timeout_s: Final = config.connect_timeout_s or limits.connect_timeout_s
        self._jobs: Final[asyncio.Queue[_Job[Any] | None]] = asyncio.Queue()
        self._running: Final[set[_Job[Any]]] = set()
        self._owner: asyncio.Task[None] | None = None
        self._closing = False
        self._life: anyio.CancelScope | None = None
        """Around a connection from its first step to its last."""
        self._serving: anyio.CancelScope | None = None
        """Around its use: cancelled to leave it in good order."""
        self._lost: MCPError | None = None

    def start(self) -> None:
        self._owner = asyncio.create_task(self._own(), name=f"mcp:{self.config.name}")

    def recall(self, definitions: Sequence[Definition], prefix: str) -> None:
        """Takes these tools for the server's, until it is asked."""
        self.listing = exposed(definitions, self.config, prefix)
        self.recalled = True

    async def refresh(self, prefix: str) -> None:
        """Connects if need be and lists the tools anew. What goes wrong is in `failure`.

        Recalled tools stay where the server cannot be reached: the next call tries again.
        """
        deadline_s = 2 * self._connect_timeout_s
        try:
            self.listing = await self._submit(
                lambda client: list_tools(client, self.config, prefix, self._limits), deadline_s
            )
            self.failure = None
            self.recalled = False
            for note in self.listing.notes:
                logger.warning("%s: %s", self.config.name, note)
        except CallTimeout:
            self.failure = f"did not list its tools within {deadline_s:g} s; see its log"
        except (ServerUnavailable, ServerError) as error:
            self.failure = error.reason
        if self.failure is not None:
            if not self.recalled:
                self.listing = Listing()
            logger.warning("%s: %s", self.config.name, self.failure)

    async def call(
        self, tool: str, arguments: Mapping[str, Any], timeout_s: float | None
    ) -> ToolCallResult:
        """Raises: ServerUnavailable, CallTimeout, ServerError."""

        async def work(client: Client) -> ToolCallResult:
            result = await client.call_tool(tool, dict(arguments))
            return normalise(result, self._limits.max_result_chars)

        return await self._submit(
            work, timeout_s or self.config.timeout_s or self._limits.call_timeout_s
        )

    async def aclose(self) -> None:
        """Ends the connection, the process and the owner. Calls under way fail."""
        if (owner := self._owner) is None:
            return
        self._closing = True
        self._jobs.put_nowait(None)
        if self._life is not None and self._serving is None:
            self._life.cancel()  # still connecting: no use in waiting for that
        await asyncio.wait((owner,), timeout=CLOSE_S)
        if not owner.done() and self._life is not None:
            self._life.cancel()
            await asyncio.wait((owner,), timeout=CLOSE_S)
        if not owner.done():
            logger.error("%s: does not close; abandoned", self.config.name)
            owner.cancel()
        await asyncio.gather(owner, return_exceptions=True)

    async def _submit(self, work: Callable[[Client], Awaitable[T]], timeout_s: float) -> T:
        name = self.config.name
        if self._owner is None or self._owner.done() or self._closing:
            raise ServerUnavailable(name, "is closed")
        if self._jobs.qsize() + len(self._running) >= self._limits.max_waiting:
            raise ServerUnavailable(name, "has too many calls under way; try again later")
        job = _Job(work)
        self._jobs.put_nowait(job)
        try:
            async with asyncio.timeout(timeout_s):
                return await job.future
        except TimeoutError:
            raise CallTimeout(name, f"gave no answer within {timeout_s:g} s") from None
        finally:
            job.abandon()

    async def _own(self) -> None:
        try:
            while not self._closing:
                job = await self._jobs.get()
                if job is not None and not job.future.done():
                    await self._connection(job)
        finally:
            self._fail_all(ServerUnavailable(self.config.name, "is closed"))

    async def _connection(self, first: _Job[Any]) -> None:
        """One connection, from its first job to its end, whatever ends it."""
        self._running.add(first)
        self._lost = None
        wire = Wire(self.config, self._limits.max_result_chars, self._stop_serving)
        began = anyio.current_time()
        ready = False
        error: Exception | None = None
        with anyio.CancelScope(deadline=began + self._connect_timeout_s) as self._life:
            try:
                async with wire.client() as client:
                    self._life.deadline = math.inf
                    ready = True
                    self.connect_ms = round((anyio.current_time() - began) * 1000)
                    self.failure = None
                    logger.info("%s: connected in %d ms", self.config.name, self.connect_ms)
                    await self._serve(client, wire, first)
            except Exception as raised:
                error = raised
        late = self._life.cancelled_caught
        self._life = None
        if self._closing:
            return
        cause = error or self._lost
        if late:
            limit = f"{self._connect_timeout_s:g} s"
            reason = f"was not ready within {limit}; see that it starts, or raise connect_timeout"
        else:
            reason = wire.explain(cause, ready)
        self._after(reason, ready, cause)

    def _after(self, reason: str, ready: bool, cause: Exception | None) -> None:
        """Settles what the connection left behind."""
        self.failure = reason
        # Whoever asked for the first connection tells of its failure.
        logger.log(logging.WARNING if ready else logging.DEBUG, "%s: %s", self.config.name, reason)
        left = [job for job in self._running if not job.future.done()]
        if ready and cause is not None and len(left) == 1 and not left[0].again and unsent(cause):
            self._running.clear()
            left[0].again = True
            self._jobs.put_nowait(left[0])
            return
        failed = ServerUnavailable(self.config.name, reason)
        if ready:
            for job in left:
                job.fail(failed)
            self._running.clear()
        else:
            self._fail_all(failed)  # no point in trying once for each of them

    async def _serve(self, client: Client, wire: Wire, first: _Job[Any]) -> None:
        async with anyio.create_task_group() as tasks:
            self._serving = tasks.cancel_scope
            try:
                job: _Job[Any] | None = first
                while job is not None and wire.closed is None:
                    tasks.start_soon(self._run, client, wire, job)
                    job = await self._jobs.get()
            finally:
                self._serving = None
            tasks.cancel_scope.cancel()

    async def _run(self, client: Client, wire: Wire, job: _Job[Any]) -> None:
        self._running.add(job)
        name = self.config.name
        with anyio.CancelScope() as job.scope:
            try:
                if not job.future.done():
                    job.finish(await job.work(client))
            except MCPError as error:
                if wire.is_over(error):
                    self._lost = error
                    self._stop_serving()  # `_after` settles this job with the others
                else:
                    job.fail(ServerError(name, f"refused the request: {wire.words(error)}"))
            except ValidationError:
                job.fail(ServerError(name, "its answer does not follow the protocol"))
            except Exception as error:
                # The SDK raises a bare RuntimeError where a result misses its output schema.
                schema = isinstance(error, RuntimeError) and "content" in str(error)
                what = "does not fit its own output schema" if schema else "could not be read"
                logger.debug("%s: %s", name, type(error).__name__)
                job.fail(ServerError(name, f"its answer {what}"))
        if job.future.done():
            self._running.discard(job)

    def _stop_serving(self) -> None:
        if self._serving is not None:
            self._serving.cancel()

    def _fail_all(self, error: ServerUnavailable) -> None:
        for job in self._running:
            job.fail(error)
        self._running.clear()
        while not self._jobs.empty():
            # A None may go too: it only wakes the owner, who looks at `_closing` by itself.
            if (job := self._jobs.get_nowait()) is not None:
                job.fail(error)
