"""A request that a caller hands to the task that owns the connection, and how long he waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, Self, TypeVar

import anyio
from mcp import Client

from mcp_bridge.core.elicitation import Elicitor
from mcp_bridge.core.errors import BridgeError

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
