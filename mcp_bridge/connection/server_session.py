"""One server as its users see it: its tools, its calls, and what is wrong with it."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import httpx2
from mcp import Client
from mcp_types import CallToolResult

from mcp_bridge.connection.connection import (
    Backoff,
    CallDeadline,
    CircuitBreaker,
    Connection,
    ConnectionEnd,
    PendingRequest,
    Uniform,
)
from mcp_bridge.core.elicitation import Elicitor
from mcp_bridge.core.errors import CallTimeout, ServerError, ServerStarting, ServerUnavailable
from mcp_bridge.core.sanitize import clean_text, one_line
from mcp_bridge.core.server_config import Limits, ServerConfig, ServerSecrets
from mcp_bridge.core.tools import (
    CallProgressed,
    CallRoute,
    EventSink,
    ServerStatus,
    State,
    ToolCallResult,
    ToolDefinition,
    ToolInfo,
)
from mcp_bridge.protocol.tool_listing import ToolListing, list_tools
from mcp_bridge.protocol.tool_results import normalise
from mcp_bridge.security.programs import package_runner
from mcp_bridge.security.schema_check import faults_of
from mcp_bridge.transports.server_transport import ServerTransport, is_unsent

# The one task that owns a server's connections.
#
# Callers hand requests to it through a queue and wait for a future. Without a connection it waits
# for a request, or for the time to try a lost connection again, and then connects. What happens
# inside a connection is in `connection.py`.

logger = logging.getLogger(__name__)

CLOSE_S: Final = 10.0
"""The time for leaving politely: some 3 s for a process that must be killed, 8 s for one whose
supervisor is stuck, and room to spare."""
STEADY_S: Final = 60.0
"""A connection that lasted so long was a good one: after it, waits begin from the first again."""

T = TypeVar("T")
MakeTransport: TypeAlias = Callable[[ServerConfig, int, Callable[[], None]], ServerTransport]
"""A function that takes the configuration, the cap of a result's characters, and what to call when
the connection ends by itself."""


class ConnectionActor:
    """Owns the connections of one server. Start it, hand it requests, close it.

    Args:
        list_tools: Asks for the server's tools; a connection that is made again does it first.
        relist: Asks for the tools through a request, beside the calls; it raises nothing.
        idled: Called when a connection was closed because nobody used it.
        turned: Called when the server is down from now on, or is not any more.
    """

    def __init__(
        self,
        config: ServerConfig,
        limits: Limits,
        *,
        list_tools: Callable[[Client], Awaitable[None]],
        relist: Callable[[], Awaitable[None]],
        idled: Callable[[], None],
        turned: Callable[[], None],
        make_transport: MakeTransport,
        uniform: Uniform,
    ) -> None:
        self._failure: str | None = None
        self.connect_ms: int | None = None
        """How long the last connection took."""
        self.protocol: str | None = None
        """The version that the last connection speaks, for example `2026-07-28`."""
        self.waiting: str | None = None
        """What a first start may be taking its time for, and what to do; None while it does not."""
        self.connect_timeout_s: Final = config.connect_timeout_s or limits.connect_timeout_s
        self._runner = package_runner(config.command, config.args)
        """The package runner that may have to download the server; "" where none has to."""
        if config.connect_timeout_s:
            self._runner = ""  # whoever wrote it knows how long to wait
        self._config: Final = config
        self._limits: Final = limits
        self._list_tools: Final = list_tools
        self._relist: Final = relist
        self._idled: Final = idled
        self._turned: Final = turned
        self._make_transport: Final = make_transport
        self._requests: Final[asyncio.Queue[PendingRequest[Any] | None]] = asyncio.Queue()
        self._circuit: Final = CircuitBreaker(limits.failures, limits.rest_s)
        self._backoff: Final = Backoff(limits.retry_first_s, limits.retry_longest_s, uniform)
        self._retry_at: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._connection: Connection | None = None
        self._transport: ServerTransport | None = None
        self._closing = False

    @property
    def failure(self) -> str | None:
        """What is wrong and how to fix it, on one line; None while nothing is."""
        return self._failure

    @failure.setter
    def failure(self, failure: str | None) -> None:
        before, self._failure = self._failure, failure
        if (before is None) != (failure is None):
            self._turned()

    @property
    def session_id(self) -> str | None:
        """The id of the last connection's HTTP session."""
        return self._transport.session_id if self._transport is not None else None

    @property
    def start_timeout_s(self) -> float:
        """How long the next connection may take to be ready."""
        return self._limits.first_start_s if self._runner else self.connect_timeout_s

    @property
    def is_first_start(self) -> bool:
        """Whether a package runner may have to download the server yet."""
        return bool(self._runner)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"mcp:{self._config.name}")

    def admit(self) -> None:
        """Raises: ServerUnavailable, where a call is not even to be tried."""
        wait_s = self._circuit.admit(asyncio.get_running_loop().time())
        if wait_s > 0:
            said = f"{self.failure or 'gives no answer'} ({self._circuit.failures} failures in a "
            said += f"row; not tried for {wait_s:.0f} s more)"
            raise ServerUnavailable(self._config.name, said)

    async def submit(self, request: PendingRequest[T], deadline: CallDeadline) -> T:
        """Hands a request to the task and waits for its result.

        Raises: ServerUnavailable, CallTimeout, ServerError.
        """
        name = self._config.name
        if self._task is None or self._task.done() or self._closing:
            raise ServerUnavailable(name, "is closed")
        running = len(self._connection.running) if self._connection else 0
        if self._requests.qsize() + running >= self._limits.max_waiting:
            raise ServerUnavailable(name, "has too many calls under way; try again later")
        began = asyncio.get_running_loop().time()
        self._requests.put_nowait(request)
        try:
            async with deadline:
                answer = await request.future
        except TimeoutError:
            request.abandon()
            if not self.is_first_start:  # else it is not the server that keeps us waiting
                self._timed_out(began)
            what = "gave no answer" if request.tool else "did not list its tools"
            raise CallTimeout(name, f"{what} within {deadline.waited_s:g} s") from None
        except ServerError:
            self._circuit.succeeded()  # it is there, and says no
            raise
        finally:
            request.abandon()
        self._circuit.succeeded()
        self.failure = None
        if request.counts:
            self._backoff.reset()
        return answer

    async def aclose(self) -> None:
        """Ends the connection, the process and the task. Requests under way fail."""
        if (task := self._task) is None:
            return
        self._closing = True
        self._requests.put_nowait(None)
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
        """Counts the failure. A server that answers no call at all is left and begun afresh."""
        if self._circuit.failed(began, asyncio.get_running_loop().time()):
            self.failure = "leaves every call without an answer"
            if self._connection is not None and not self._connection.in_use:
                self._connection.leave()

    async def _run(self) -> None:
        try:
            while not self._closing:
                request = await self._next()
                if request is not None and not request.future.done():
                    await self._connect(request)
        finally:
            self._fail_waiting(ServerUnavailable(self._config.name, "is closed"))

    async def _next(self) -> PendingRequest[Any] | None:
        """Gives the next request; our own, where a lost connection is to be tried again by then."""
        try:
            async with asyncio.timeout_at(self._retry_at):
                return await self._requests.get()
        except TimeoutError:
            return PendingRequest(self._list_tools, counts=False)
        finally:
            self._retry_at = None

    async def _connect(self, first: PendingRequest[Any]) -> None:
        """Runs one connection, from its first request to its end, whatever ends it."""
        self._connection = connection = Connection(
            self._config.name, self._requests, self._limits, ready=self._ready, relist=self._relist
        )
        self._transport = transport = self._make_transport(
            self._config, self._limits.max_result_chars, connection.stop
        )
        left: list[PendingRequest[Any]] = []
        allowed_s, loop = self.start_timeout_s, asyncio.get_running_loop()
        patience = loop.call_later(self.connect_timeout_s, self._ask_for_patience)
        try:
            end = await connection.run(transport, first, allowed_s)
            left = [request for request in connection.running if not request.future.done()]
            if end.idle:
                logger.info("%s: closed, as nobody used it", self._config.name)
                self._idled()
            elif not self._closing:
                left = self._settle(end, transport, left, allowed_s)
        finally:
            patience.cancel()
            self._connection = self.waiting = None
            # Why is known by now, unless we are closing.
            reason = "is closed" if self._closing else self.failure or "went away"
            for request in left:
                request.fail(ServerUnavailable(self._config.name, reason))

    def _ready(self, client: Client, connect_ms: int) -> None:
        self.connect_ms = connect_ms
        self.protocol = client.protocol_version
        self.failure = self.waiting = None
        self._runner = ""  # what it starts is here now
        logger.info("%s: connected in %d ms", self._config.name, connect_ms)

    def _ask_for_patience(self) -> None:
        """Says what is waited for, once a package runner has taken longer than a start takes."""
        if self._runner:
            self.waiting = (
                f"is being started for the first time; {self._runner} may still be downloading it "
                f"(up to {self._limits.first_start_s:g} s): try again in a minute"
            )
            logger.warning("%s: %s", self._config.name, self.waiting)

    def _settle(
        self,
        end: ConnectionEnd,
        transport: ServerTransport,
        left: list[PendingRequest[Any]],
        allowed_s: float,
    ) -> list[PendingRequest[Any]]:
        """Decides what follows when a connection ends by itself. Gives the requests that failed."""
        now = asyncio.get_running_loop().time()
        self.failure = reason = self._reason(end, transport, allowed_s)
        # Whoever asked for the first connection tells of its failure.
        level = logging.WARNING if end.ready else logging.DEBUG
        logger.log(level, "%s: %s", self._config.name, reason)
        unsent = end.ready and end.cause is not None and is_unsent(end.cause)
        if unsent and len(left) == 1 and not left[0].retried:
            left[0].retried = True
            self._requests.put_nowait(left[0])
            return []
        if end.ready or any(request.counts for request in left):
            self._circuit.failed(end.began, now)  # our own tries must not use up a caller's
        if end.ready and now - end.began >= STEADY_S:
            self._backoff.reset()
        heals = end.late or transport.may_heal(end.cause, end.ready)
        if heals and self._backoff.tries < self._limits.retries:
            self._retry_at = now + self._backoff.next()
        if not end.ready:
            # No point in trying once for each of them.
            self._fail_waiting(ServerUnavailable(self._config.name, reason))
        return left

    def _reason(self, end: ConnectionEnd, transport: ServerTransport, allowed_s: float) -> str:
        if end.late:
            return transport.explain_late(allowed_s)
        if self.failure and end.ready and end.cause is None and transport.closed is None:
            return self.failure  # we left it ourselves
        return transport.explain_end(end.cause, end.ready)

    def _fail_waiting(self, error: ServerUnavailable) -> None:
        while not self._requests.empty():
            # A None may go too: it only wakes the task, which looks at `_closing` by itself.
            if (request := self._requests.get_nowait()) is not None:
                request.fail(error)


Progress: TypeAlias = Callable[[float, float | None, str], None]
"""A function that takes what is done, a total that may not be known, and the server's words."""
PROGRESS_GAP_S: Final = 0.25
"""The time between two events of a call; nobody looks more often."""
_WORD_S: Final = 0.5
"""So much later than the usual time for a start whoever calls is told what it waits for."""
_PROGRESS_SHOWN_CHARS: Final = 200
_PROGRESS_CHARS: Final = 4_096
"""So much of a message that tells of progress is looked at."""


class ServerSession:
    """Start it, use it, close it. Several managers may use one; it knows nothing of their names.

    Args:
        auth: Signs a remote server's requests; one for all connections, since it holds the tokens.
    """

    def __init__(
        self,
        config: ServerConfig,
        limits: Limits,
        *,
        auth: httpx2.Auth | None = None,
        make_transport: MakeTransport | None = None,
        uniform: Uniform = random.uniform,
    ) -> None:
        self.config: Final = config
        self.listing = ToolListing()
        self.recalled = False
        """Whether `listing` is what the server offered some other time, and not asked for since."""
        self.listed = False
        """Whether the server itself was asked, and answered, at least once."""
        self.watchers: Final[list[Callable[[str], None]]] = []
        """Functions that are called with the server's name when `listing` has become another, and
        when the server is down from then on or is not any more."""
        self._secrets: Final = ServerSecrets(config)
        self._limits: Final = limits
        self._confirming: Final = asyncio.Lock()
        self._actor: Final = ConnectionActor(
            config,
            limits,
            list_tools=self._list_tools,
            relist=self._relist,
            idled=self._idled,
            turned=self._tell,
            make_transport=make_transport
            or partial(ServerTransport, auth=auth, secrets=self._secrets),
            uniform=uniform,
        )

    @property
    def failure(self) -> str | None:
        """What is wrong, or what a first start takes its time for, and how to fix it, on one
        line; None while nothing is."""
        return self._actor.failure or self._actor.waiting

    @property
    def route(self) -> CallRoute:
        """The way that calls take now."""
        return CallRoute(self.config.transport, self._actor.protocol, self._actor.session_id)

    def status(
        self, config: ServerConfig, held: int = 0, added: int = 0, notes: Sequence[str] = ()
    ) -> ServerStatus:
        """Gives the status for a manager that uses the session with `config`, holds back so many of
        its tools, offers so many new ones, and has `notes` on them.
        """
        waiting = self._actor.waiting
        return ServerStatus(
            name=config.name,
            state=self._state(),
            transport=config.transport,
            tools=len(self.listing.definitions) - held,
            connect_ms=self._actor.connect_ms,
            error=self._actor.failure,
            notes=(*((waiting,) if waiting else ()), *notes, *self.listing.notes, *config.remarks),
            held=held,
            added=added,
            protocol=self._actor.protocol,
            shared=config.share,
        )

    def _state(self) -> State:
        if self._actor.failure:
            return "down"
        if self.recalled:
            return "idle"
        return "ready" if self.listed else "starting"

    def start(self) -> None:
        self._actor.start()

    def recall(self, definitions: Sequence[ToolDefinition]) -> None:
        """Takes these tools for the server's, until it is asked."""
        self.listing = ToolListing(tuple(definitions))
        self.recalled = True

    async def refresh(self, *, patient: bool = True) -> None:
        """Connects if need be and lists the tools anew. What goes wrong is in `failure`.

        Recalled tools stay where the server cannot be reached: the next call tries again.

        Args:
            patient: Whether a first start may take its time. Who is not, leaves it to go on.
        """
        try:
            await self._ask_for_tools(counts=True, patient=patient)
        except (CallTimeout, ServerUnavailable, ServerError) as error:
            if self._actor.waiting:
                return  # it is neither here nor down
            self._actor.failure = error.reason
            logger.warning("%s: %s", self.config.name, error.reason)
            if not self.recalled:
                self._take(ToolListing())

    async def confirm(self) -> None:
        """Connects an idle server and takes its list of today for the remembered one.

        Raises: ServerUnavailable; ServerStarting, while the server may be downloaded.
        """
        async with self._confirming:
            if not self.recalled:
                return  # another call has done it meanwhile
            self._actor.admit()
            if self._actor.waiting is None:
                await self.refresh(patient=False)
            if self._actor.waiting is not None:
                raise ServerStarting(self.config.name, self._actor.waiting)
            if self.failure is not None:
                raise ServerUnavailable(self.config.name, self.failure)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        timeout_s: float,
        on_progress: Progress | None = None,
        elicitor: Elicitor | None = None,
    ) -> ToolCallResult:
        """Calls a tool by its name at the server.

        Raises: ServerUnavailable, CallTimeout, ServerError.
        """
        self._actor.admit()
        deadline = CallDeadline(timeout_s, self._limits.call_cap_s)

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            deadline.note_progress()
            if on_progress is not None:
                said = (message or "")[:_PROGRESS_CHARS]
                on_progress(progress, total, self._secrets.redact_result(said))

        async def work(client: Client) -> ToolCallResult:
            result = await client.call_tool(tool, dict(arguments), progress_callback=progressed)
            self._check_answer(tool, result)
            return normalise(result, self._limits.max_result_chars, self._secrets.redact_result)

        request = PendingRequest(work, tool=tool, elicitor=elicitor, hold=deadline.hold)
        return await self._actor.submit(request, deadline)

    async def aclose(self) -> None:
        """Ends the connection, the process and their task. Calls under way fail."""
        await self._actor.aclose()

    def _check_answer(self, tool: str, result: CallToolResult) -> None:
        """Raises: ServerError, where a structured answer is not what the tool said it would be."""
        schema = self.listing.output_schemas.get(tool)
        if schema is None or result.is_error:
            return
        name = f"{self.config.name}: {one_line(tool, 80)}"
        missing = "structured_content" not in result.model_fields_set
        if missing or faults_of(schema, result.structured_content, name):
            raise ServerError(self.config.name, "its answer does not fit its own output schema")

    async def _ask_for_tools(self, *, counts: bool, patient: bool = True) -> None:
        """Raises: ServerUnavailable, CallTimeout, ServerError."""
        actor = self._actor
        deadline_s = actor.start_timeout_s + actor.connect_timeout_s
        if actor.is_first_start and not patient:
            deadline_s = actor.connect_timeout_s + _WORD_S
        request = PendingRequest(self._list_tools, counts=counts)
        await self._actor.submit(request, CallDeadline(deadline_s, deadline_s))

    async def _list_tools(self, client: Client) -> None:
        listing = await list_tools(client, self._limits, self._secrets.redact_result)
        self._actor.failure = None
        self.recalled = False
        self.listed = True
        for note in listing.notes:
            logger.warning("%s: %s", self.config.name, note)
        self._take(
            replace(listing, definitions=tuple(filter(self._is_offered, listing.definitions)))
        )

    def _is_offered(self, tool: ToolDefinition) -> bool:
        return self.config.offers(tool.name)

    def _take(self, listing: ToolListing) -> None:
        before = self.listing
        # The same object for the same tool: nobody has to compare schemas of megabytes again.
        known = {tool.digest: tool for tool in before.definitions}
        found = tuple(known.get(tool.digest, tool) for tool in listing.definitions)
        same = [t.digest for t in found] == [t.digest for t in before.definitions]
        self.listing = replace(listing, definitions=before.definitions if same else found)
        if not same or listing.notes != before.notes:
            self._tell()

    def _tell(self) -> None:
        for watcher in list(self.watchers):
            watcher(self.config.name)

    async def _relist(self) -> None:
        """Asks beside the calls, when the tools may be others. The old ones stay if that fails."""
        try:
            await self._ask_for_tools(counts=False)
        except (CallTimeout, ServerUnavailable, ServerError) as error:
            logger.warning("%s: its changed tools: %s", self.config.name, error.reason)

    def _idled(self) -> None:
        self.recalled = self.listed


def progress_reporter(
    tool: ToolInfo, sink: EventSink | None, now: Callable[[], float] = time.monotonic
) -> Progress | None:
    """Gives a function that tells `sink` of one call's progress; None without a sink.

    The first report passes, and whatever reaches the total.
    """
    if sink is None:
        return None
    last_at, furthest = -math.inf, -math.inf

    def report(done: float, total: float | None, message: str) -> None:
        nonlocal last_at, furthest
        at = now()
        if not math.isfinite(done) or done <= furthest:
            return  # the protocol has it grow
        total = total if total is not None and math.isfinite(total) else None
        if at - last_at < PROGRESS_GAP_S and done != total:
            return
        last_at, furthest = at, done
        words = " ".join(clean_text(message[:1000], _PROGRESS_SHOWN_CHARS).split())
        sink(CallProgressed(tool.name, tool.server, done, total, words))

    return report
