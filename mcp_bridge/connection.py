"""One connection to one server, from its first step to its last.

A connection of the SDK must be entered, used and left in the same task, and a remote server that
dies cancels that task. So `run` does all three, and jobs run side by side in a task group inside.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import anyio
from mcp import Client, MCPError
from mcp.client.session import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult
from pydantic import ValidationError

from mcp_bridge.asking import ask
from mcp_bridge.changes import ToolChanges
from mcp_bridge.connect import Wire
from mcp_bridge.errors import ServerError
from mcp_bridge.idle import Idle
from mcp_bridge.job import Job
from mcp_bridge.limits import Limits

logger = logging.getLogger(__name__)

_RUNNING: Final = contextvars.ContextVar[Job[Any]]("mcp_bridge_job")
"""The job whose task this is: what a server asks within an answer is asked of that job's caller."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a connection ended."""

    began: float
    """Seconds of the loop's clock."""
    ready: bool
    """Whether the handshake was done."""
    idle: bool = False
    """It was left because nobody used it."""
    late: bool = False
    """It was not ready in time."""
    cause: Exception | None = None


class Connection:
    """Used once. `running` holds the jobs that it has taken and that are not over."""

    def __init__(
        self,
        name: str,
        jobs: asyncio.Queue[Job[Any] | None],
        limits: Limits,
        *,
        ready: Callable[[Client, int], None],
        relist: Callable[[], Awaitable[None]],
    ) -> None:
        self.running: Final[set[Job[Any]]] = set()
        self._name: Final = name
        self._jobs: Final = jobs
        self._limits: Final = limits
        self._tell_ready: Final = ready
        self._relist: Final = relist
        self._changes: Final = ToolChanges(name)
        self._loop: Final = asyncio.get_running_loop()
        self._idle: Final = Idle(limits.idle_s, self._loop.time())
        self._life: Final = anyio.CancelScope()
        self._serving: anyio.CancelScope | None = None
        """Around its use: cancelled to leave it in good order."""
        self._lost: MCPError | None = None
        self._was_idle = False
        self._clear: Callable[[str], str] = str

    async def run(self, wire: Wire, first: Job[Any], timeout_s: float) -> Ending:
        """Raises nothing but a cancellation."""
        self.running.add(first)
        self._clear = wire.secrets.clear
        began = self._loop.time()
        self._life.deadline = began + timeout_s
        ready = False
        error: Exception | None = None
        with self._life:
            try:
                async with wire.client(self._changes.heard, self._elicit) as client:
                    self._life.deadline = math.inf
                    ready = True
                    self._tell_ready(client, round((self._loop.time() - began) * 1000))
                    await self._serve(client, wire, first)
            except Exception as raised:
                error = raised
        return Ending(
            began,
            ready,
            idle=self._was_idle,
            late=self._life.cancelled_caught and not ready,
            cause=error or self._lost,
        )

    def stop(self) -> None:
        """Ends its use in good order; one that is not ready yet goes on."""
        if self._serving is not None:
            self._serving.cancel()

    def leave(self) -> None:
        """Ends it in good order; one that is not ready yet is given up."""
        (self._serving or self._life).cancel()

    def abort(self) -> None:
        self._life.cancel()

    @property
    def in_use(self) -> bool:
        return any(job.counts and not job.future.done() for job in self.running)

    async def _serve(self, client: Client, wire: Wire, first: Job[Any]) -> None:
        async with anyio.create_task_group() as tasks:
            self._serving = tasks.cancel_scope
            tasks.start_soon(self._changes.follow, self._relist)
            tasks.start_soon(self._changes.listen, client)
            tasks.start_soon(self._watch_idle)
            if first.tool:
                self._changes.note()  # it was away: its tools may be others by now
            try:
                job: Job[Any] | None = first
                while job is not None and wire.closed is None:
                    tasks.start_soon(self._run, client, wire, job)
                    job = await self._jobs.get()
                if job is not None and job not in self.running:
                    self._jobs.put_nowait(job)  # came as the server went: for the next connection
            finally:
                self._serving = None
            tasks.cancel_scope.cancel()

    async def _watch_idle(self) -> None:
        """Leaves once nobody has used the connection for its time."""
        while not self._idle.over(self._loop.time()):
            await asyncio.sleep(self._idle.due() - self._loop.time())
            if self.in_use:
                self._idle.touch(self._loop.time())
        self._was_idle = True
        self.stop()

    async def _run(self, client: Client, wire: Wire, job: Job[Any]) -> None:
        self.running.add(job)
        _RUNNING.set(job)
        with anyio.CancelScope() as job.scope:
            try:
                if not job.future.done():
                    job.finish(await job.work(client))
            except MCPError as error:
                if wire.is_over(error):
                    self._lost = error
                    self.stop()  # whoever called `run` settles this job with the others
                else:
                    refusal = f"refused the request: {wire.words(error)}"
                    job.fail(ServerError(self._name, refusal))
            except ValidationError:
                job.fail(ServerError(self._name, "its answer does not follow the protocol"))
            except Exception as error:
                # The SDK raises a bare RuntimeError where a result misses its output schema.
                schema = isinstance(error, RuntimeError) and "content" in str(error)
                what = "does not fit its own output schema" if schema else "could not be read"
                logger.debug("%s: %s", self._name, type(error).__name__)
                job.fail(ServerError(self._name, f"its answer {what}"))
        job.scope = None
        if job.counts:
            self._idle.touch(self._loop.time())
        if job.future.done():
            self.running.discard(job)

    async def _elicit(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        job = self._asked_in()
        if job is None:
            return await ask(None, self._name, "", params, 0.0, self._clear)
        answer_s = self._limits.answer_s
        if job.hold is not None:
            job.hold(answer_s)
        with anyio.CancelScope() as asking:
            job.future.add_done_callback(lambda _: asking.cancel())
            return await ask(job.elicitor, self._name, job.tool, params, answer_s, self._clear)
        return ElicitResult(action="cancel")

    def _asked_in(self) -> Job[Any] | None:
        """The call that a question belongs to.

        Servers of 2026-07-28 ask within the answer to a call. Older ones ask beside it and do not
        say for which: then it is known only while one host alone has calls under way, as one
        room's question must not be asked in another.
        """
        if (job := _RUNNING.get(None)) is not None:
            return job
        calls = [job for job in self.running if job.tool and not job.future.done()]
        return calls[0] if calls and len({id(job.elicitor) for job in calls}) == 1 else None
