"""One connection to one server, from its first step to its last.

A connection of the SDK must be entered, used and left in the same task, and a remote server that
dies cancels that task. So `run` does all three, and requests run side by side in a task group
inside.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, Self, TypeAlias, TypeVar

import anyio
from mcp import Client, MCPError
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp_types import ElicitRequestParams, ElicitResult, ToolListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from mcp_bridge.core.elicitation import Elicitor
from mcp_bridge.core.errors import BridgeError, ServerError
from mcp_bridge.core.server_config import Limits
from mcp_bridge.protocol.elicitation_handler import answer_question
from mcp_bridge.transports.server_transport import ServerTransport

# Bounds on a server that fails: how long calls wait, when it is tried again or refused.

Uniform: TypeAlias = Callable[[float, float], float]
"""A function that gives a number between two, as `random.uniform` does."""
CircuitState: TypeAlias = Literal["closed", "open", "half-open"]


_REST_SHARE: Final = 10.0


class Backoff:
    """Gives the seconds to wait, try by try: exponential, with full jitter.

    Full jitter means any time between nothing and the bound, so that hosts which lost one server do
    not return as one. Source:
    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    """

    def __init__(self, first_s: float, longest_s: float, uniform: Uniform = random.uniform) -> None:
        self._first_s: Final = first_s
        self._longest_s: Final = longest_s
        self._uniform: Final = uniform
        self.tries = 0
        """The number of waits that were given since the last reset."""

    def next(self) -> float:
        # Past 2**32 the bound has long been reached, and a float would overflow in the end.
        bound = min(self._longest_s, self._first_s * 2 ** min(self.tries, 32))
        self.tries += 1
        return self._uniform(0.0, bound)

    def reset(self) -> None:
        self.tries = 0


class CircuitBreaker:
    """Refuses calls of a server that only ever fails, until a probe succeeds.

    It is closed; after `threshold` failures in a row it opens. It is half-open, for one probe, ten
    times as long after the last failure as that took to fail, `open_s` at most: a server that hung
    is left alone, and one that refuses at once is tried again when a person asks again. Times are
    seconds of one clock, whichever its owner reads. A failure counts by when its attempt began: ten
    calls that end with one crash are one failure. A probe that ends neither way (its caller went
    away) gives its place to another after `open_s` more.
    """

    def __init__(self, threshold: int, open_s: float) -> None:
        self._threshold: Final = threshold
        self._open_s: Final = open_s
        self._failed_at = float("-inf")
        self._open_until = float("-inf")
        self.failures = 0
        """Failures in a row."""

    def state(self, now: float) -> CircuitState:
        if self.failures < self._threshold:
            return "closed"
        return "open" if now < self._open_until else "half-open"

    def admit(self, now: float) -> float:
        """Gives the seconds until a probe may be made; 0 lets the call through as the probe."""
        state = self.state(now)
        if state == "open":
            return self._open_until - now
        if state == "half-open":
            self._open_until = now + self._open_s
        return 0.0

    def failed(self, began: float, now: float) -> bool:
        """Notes that an attempt which began then has failed; tells whether the breaker is open."""
        if began < self._failed_at:
            return False
        self.failures += 1
        self._failed_at = now
        if self.failures < self._threshold:
            return False
        self._open_until = now + min(self._open_s, _REST_SHARE * (now - began))
        return True

    def succeeded(self) -> None:
        self.failures = 0


class CallDeadline:
    """Bounds how long a caller waits: silence has one bound, the whole call another.

    A server that tells of its progress is not silent, and may take longer than one that says
    nothing; but no progress takes it past the cap, since a server may tell of progress for ever.
    Use it as `async with`; it raises TimeoutError. `note_progress` and `hold` may be called from
    any task.
    """

    def __init__(self, quiet_s: float, cap_s: float) -> None:
        self._loop: Final = asyncio.get_running_loop()
        self._quiet_s: Final = quiet_s
        self._cap_s: Final = max(cap_s, quiet_s)
        self._cap: Final = self._loop.time() + self._cap_s
        self._held_until = 0.0
        self._timeout: Final = asyncio.timeout(quiet_s)
        self._waiting = False

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._waiting = True
        return self

    async def __aexit__(self, *error: object) -> None:
        self._waiting = False
        await self._timeout.__aexit__(*error)  # type: ignore[arg-type]  # as it was given to us

    @property
    def waited_s(self) -> float:
        """The bound that a caller who ran out of time has reached: of silence, or of the whole."""
        return self._cap_s if self._loop.time() >= self._cap else self._quiet_s

    def note_progress(self) -> None:
        """Notes that the server shows that it is at work."""
        self.hold(0.0)

    def hold(self, seconds: float) -> None:
        """Lets the server be silent for so long, as it waits for an answer of ours."""
        now = self._loop.time()
        self._held_until = max(self._held_until, now + seconds)
        if self._waiting and not self._timeout.expired():
            self._timeout.reschedule(min(self._held_until + self._quiet_s, self._cap))


# Follows `tools/list_changed` in both eras: the server says so, and the list is asked for anew.
#
# Up to 2025-11-25 a server sends the notification by itself. Since 2026-07-28 it sends it on a
# stream that the client opens with `subscriptions/listen`; the SDK hands it to the same handler.
# What was sent while nothing listened is lost, so every newly opened stream asks for the list once;
# the first as well, since a list was read before it.

logger = logging.getLogger(__name__)

SETTLE_S: Final = 0.2
"""A server that loads plug-ins says so once for each of them; one list serves them all."""
GAP_S: Final = 2.0
"""The time between two lists, however often a server says that it has changed."""
_FIRST_S: Final = 1.0
_LONGEST_S: Final = 60.0
"""The bounds of the wait before a stream that ended is opened again."""


class ToolChanges:
    """The changes of one connection. `handle_message` is the SDK's handler; the rest runs beside
    the calls.
    """

    def __init__(self, server: str) -> None:
        self._server: Final = server
        self._changed: Final = asyncio.Event()

    def note(self) -> None:
        """Notes that the list may be another."""
        self._changed.set()

    async def handle_message(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.note()

    async def follow(self, relist: Callable[[], Awaitable[None]]) -> None:
        """Runs `relist` after every change, never more often than it has to."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(SETTLE_S)
            self._changed.clear()
            logger.debug("%s: its tools may have changed", self._server)
            await relist()
            await asyncio.sleep(GAP_S)

    async def listen(self, client: Client) -> None:
        """Keeps a stream open where the era needs one and the server has changes to tell."""
        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        if tools is None or not tools.list_changed:
            return
        backoff = Backoff(_FIRST_S, _LONGEST_S)
        while True:
            try:
                async with client.listen(tools_list_changed=True) as stream:
                    self.note()
                    async for _ in stream:
                        backoff.reset()
            except SubscriptionLost:
                pass
            except MCPError as error:
                logger.info("%s: tells of no changes (%d)", self._server, error.code)
                return
            await asyncio.sleep(backoff.next())


T = TypeVar("T")


class PendingRequest(Generic[T]):
    """Work on a connection for a caller. It is over when its future is done: nobody waits then.

    Args:
        work: Does the work with the SDK's client.
        counts: Whether somebody waits for it, so that it counts as use. Our own housekeeping does
            not, and keeps no idle connection open.
        tool: The tool that is called, as its server names it; "" for anything else.
        elicitor: Answers what the server asks during the call.
        hold: Called while the server's question is out, with the seconds that answering may take,
            so that a person who thinks does not use up the caller's time.
    """

    def __init__(
        self,
        work: Callable[[Client], Awaitable[T]],
        *,
        counts: bool = True,
        tool: str = "",
        elicitor: Elicitor | None = None,
        hold: Callable[[float], None] | None = None,
    ) -> None:
        self.work: Final = work
        self.counts: Final = counts
        self.tool: Final = tool
        self.elicitor: Final = elicitor
        self.hold: Final = hold
        self.future: Final[asyncio.Future[T]] = asyncio.get_running_loop().create_future()
        self.scope: anyio.CancelScope | None = None
        """The scope around its run, while it runs. Cancelling one that is over costs 0.1 ms."""
        self.context: Final = contextvars.copy_context()
        """The caller's context, in which it runs: what a caller sets there, such as a trace, is
        known to the SDK, and no other caller's is."""
        self.retried = False
        """Whether it was handed over a second time, as the server cannot have seen it."""
        if not counts:
            self.future.add_done_callback(_read_exception)

    def finish(self, value: T) -> None:
        if not self.future.done():
            self.future.set_result(value)

    def fail(self, error: BridgeError) -> None:
        if not self.future.done():
            self.future.set_exception(error)

    def abandon(self) -> None:
        """Stops it; the server is told if it has the request. This does nothing when it is over."""
        self.future.cancel()
        if self.scope is not None:
            self.scope.cancel()


def _read_exception(future: asyncio.Future[Any]) -> None:
    """Looks at an error that nobody awaits, as asyncio would complain of it otherwise."""
    if not future.cancelled():
        future.exception()


_CURRENT_REQUEST: Final = contextvars.ContextVar[PendingRequest[Any]]("mcp_bridge_request")
"""The request whose task this is. What a server asks within an answer is asked of its caller."""


@dataclass(frozen=True, slots=True)
class ConnectionEnd:
    """How a connection ended."""

    began: float
    """When it began, in seconds of the loop's clock."""
    ready: bool
    """Whether the handshake was done."""
    idle: bool = False
    """Whether it was left because nobody used it."""
    late: bool = False
    """Whether it was not ready in time."""
    cause: Exception | None = None


class Connection:
    """A connection that is used once. `running` holds the requests it took that are not over.

    Args:
        ready: Called after the handshake, with the client and the milliseconds that it took.
        relist: Asks for the server's tools anew, as they may be others.
    """

    def __init__(
        self,
        name: str,
        requests: asyncio.Queue[PendingRequest[Any] | None],
        limits: Limits,
        *,
        ready: Callable[[Client, int], None],
        relist: Callable[[], Awaitable[None]],
    ) -> None:
        self.running: Final[set[PendingRequest[Any]]] = set()
        self._name: Final = name
        self._requests: Final = requests
        self._limits: Final = limits
        self._tell_ready: Final = ready
        self._relist: Final = relist
        self._changes: Final = ToolChanges(name)
        self._loop: Final = asyncio.get_running_loop()
        self._last_used = self._loop.time()
        self._whole_life: Final = anyio.CancelScope()
        self._in_use_scope: anyio.CancelScope | None = None
        """The scope around its use: cancelled to leave the connection in good order."""
        self._lost: MCPError | None = None
        self._was_idle = False
        self._redact: Callable[[str], str] = str

    async def run(
        self, transport: ServerTransport, first: PendingRequest[Any], timeout_s: float
    ) -> ConnectionEnd:
        """Connects within `timeout_s` and serves requests. It raises only a cancellation."""
        self.running.add(first)
        self._redact = transport.secrets.redact_result
        began = self._loop.time()
        self._whole_life.deadline = began + timeout_s
        ready = False
        error: Exception | None = None
        with self._whole_life:
            try:
                async with transport.client(self._changes.handle_message, self._elicit) as client:
                    self._whole_life.deadline = math.inf
                    ready = True
                    self._tell_ready(client, round((self._loop.time() - began) * 1000))
                    await self._serve(client, transport, first)
            except Exception as raised:
                error = raised
        return ConnectionEnd(
            began,
            ready,
            idle=self._was_idle,
            late=self._whole_life.cancelled_caught and not ready,
            cause=error or self._lost,
        )

    def stop(self) -> None:
        """Ends its use in good order; one that is not ready yet goes on."""
        if self._in_use_scope is not None:
            self._in_use_scope.cancel()

    def leave(self) -> None:
        """Ends it in good order; one that is not ready yet is given up."""
        (self._in_use_scope or self._whole_life).cancel()

    def abort(self) -> None:
        self._whole_life.cancel()

    @property
    def in_use(self) -> bool:
        return any(request.counts and not request.future.done() for request in self.running)

    async def _serve(
        self, client: Client, transport: ServerTransport, first: PendingRequest[Any]
    ) -> None:
        async with anyio.create_task_group() as tasks:
            self._in_use_scope = tasks.cancel_scope
            tasks.start_soon(self._changes.follow, self._relist)
            tasks.start_soon(self._changes.listen, client)
            tasks.start_soon(self._leave_when_idle)
            if first.tool:
                self._changes.note()  # it was away: its tools may be others by now
            request: PendingRequest[Any] | None = first
            try:
                while request is not None and transport.closed is None:
                    request.context.run(
                        tasks.start_soon, self._run_request, client, transport, request
                    )
                    request = await self._requests.get()
                if request is not None and request not in self.running:
                    # It came as the server went: it is for the next connection.
                    self._requests.put_nowait(request)
            finally:
                self._in_use_scope = None
            tasks.cancel_scope.cancel()

    async def _leave_when_idle(self) -> None:
        while (left := self._last_used + self._limits.idle_s - self._loop.time()) > 0:
            await asyncio.sleep(left)
            if self.in_use:
                self._last_used = self._loop.time()
        self._was_idle = True
        self.stop()

    async def _run_request(
        self, client: Client, transport: ServerTransport, request: PendingRequest[Any]
    ) -> None:
        self.running.add(request)
        _CURRENT_REQUEST.set(request)
        with anyio.CancelScope() as request.scope:
            try:
                if not request.future.done():
                    request.finish(await request.work(client))
            except MCPError as error:
                if transport.is_over(error):
                    self._lost = error
                    self.stop()  # whoever called `run` settles this request with the others
                else:
                    refusal = f"refused the request: {transport.describe_error(error)}"
                    request.fail(ServerError(self._name, refusal))
            except ValidationError:
                request.fail(ServerError(self._name, "its answer does not follow the protocol"))
            except BridgeError as error:
                request.fail(error)
            except Exception as error:
                logger.debug("%s: %s", self._name, type(error).__name__)
                request.fail(ServerError(self._name, "its answer could not be read"))
        request.scope = None
        if request.counts:
            self._last_used = self._loop.time()
        if request.future.done():
            self.running.discard(request)

    async def _elicit(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        request = self._request_of_question()
        if request is None:
            return await answer_question(None, self._name, "", params, 0.0, self._redact)
        answer_s = self._limits.answer_s
        if request.hold is not None:
            request.hold(answer_s)
        with anyio.CancelScope() as asking:
            request.future.add_done_callback(lambda _: asking.cancel())
            return await answer_question(
                request.elicitor, self._name, request.tool, params, answer_s, self._redact
            )
        return ElicitResult(action="cancel")

    def _request_of_question(self) -> PendingRequest[Any] | None:
        """Finds the call that a question belongs to.

        Servers of 2026-07-28 ask within the answer to a call. Older ones ask beside it and do not
        say for which: then it is known only while one host alone has calls under way, as one
        room's question must not be asked in another.
        """
        if (request := _CURRENT_REQUEST.get(None)) is not None:
            return request
        calls = [request for request in self.running if request.tool and not request.future.done()]
        return calls[0] if calls and len({id(call.elicitor) for call in calls}) == 1 else None
