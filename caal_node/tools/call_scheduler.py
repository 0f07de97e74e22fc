"""The calls under way: those that conflict run one after the other, in the model's order, and those
that are taken back end.

LiveKit starts all calls of one reply at once. Each joins the queue as it comes, and then waits for
the earlier calls that it conflicts with (`mcp_bridge.core.call_conflicts`); it overtakes all
others. So no two calls in conflict run at once, and none starts later than it would if all ran one
by one.

The agent's own tools wait, and are waited for, among the calls of one reply alone: one may hold a
conversation of its own (an `AgentTask`), in which others are called. They wait without a deadline,
as LiveKit gives them none.

"Turn on the lamp" and, while the model still reads that, "never mind": LiveKit breaks a reply off
only once there are words of whoever speaks, and runs its calls until then. So a call that writes
waits here until nobody speaks, and is not made if there were words for the agent. One that has
begun goes on, whatever is said: nobody knows how much of it is done, and `undo` is for that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from livekit.agents import RunContext

from caal_node.core.errors import SpokenOver, ToolTimeout
from caal_node.core.tool_spec import name_reads, tool_reads
from caal_node.language.requests import takes_back
from caal_node.tools.call_middleware import SpokenWords, ToolCallRequest
from caal_node.tools.source import Arguments
from caal_node.tools.table import ToolEntry
from mcp_bridge.core.call_conflicts import CallAccess, conflict, mentioned_paths, resolved_path

logger = logging.getLogger("caal_node.tools")

WAIT_S: Final = 60.0
"""Seconds to wait for earlier calls: three that each take all the time they have. Nobody listens
for longer."""
RESOLVE_S: Final = 1.0
"""Seconds for following the links of a path. A slower disk (a network's that is away) is not waited
for; the call then counts as one that uses its whole source."""


class CallScheduler:
    """The queue of one agent's calls that run or wait, in their order."""

    def __init__(self, *, wait_s: float = WAIT_S) -> None:
        self._wait_s: Final = wait_s
        self._queue: Final[list[_ScheduledCall]] = []

    def turn(
        self,
        entry: ToolEntry,
        arguments: Arguments,
        context: RunContext[Any] | None = None,
        *,
        own: bool = False,
    ) -> _ScheduledCall:
        """Return the turn of a call; `own` is for those that run as LiveKit runs them."""
        wait_s = None if own else self._wait_s
        return _ScheduledCall(self._queue, entry, arguments, wait_s, context)

    def __call__(self, entry: ToolEntry, arguments: Arguments, call_id: str) -> _ScheduledCall:
        return self.turn(entry, arguments)


class _ScheduledCall:
    """One call's turn. Leaving it lets later calls go on."""

    def __init__(
        self,
        queue: list[_ScheduledCall],
        entry: ToolEntry,
        arguments: Arguments,
        wait_s: float | None,
        context: RunContext[Any] | None,
    ) -> None:
        self.entry: Final = entry
        self.ended: Final = asyncio.Event()
        self._context: Final = context
        self._queue: Final = queue
        self._arguments: Final = arguments
        self._wait_s: Final = wait_s
        self._access: CallAccess | None = None

    def __enter__(self) -> None:
        self._queue.append(self)

    def __exit__(self, *_: object) -> None:
        self._queue.remove(self)
        self.ended.set()

    async def come(self) -> None:
        """Wait for the earlier calls that this one conflicts with.

        Raises:
            ToolTimeout: one of them did not end.
        """
        earlier = [e for e in self._queue[: self._queue.index(self)] if self._heeds(e)]
        if not earlier:
            return
        try:
            async with asyncio.timeout(self._wait_s):
                await self._wait_for([call for call in earlier if await self._conflicts(call)])
        except TimeoutError:
            message = f"{self.entry.exposed} was not called, as an earlier call has not ended."
            raise ToolTimeout(message) from None

    async def _wait_for(self, calls: list[_ScheduledCall]) -> None:
        if running := [call for call in calls if not call.ended.is_set()]:
            names = ", ".join(call.entry.exposed for call in running)
            logger.info("tool %s waits for %s", self.entry.exposed, names)
        for call in running:
            await call.ended.wait()

    def _heeds(self, other: _ScheduledCall) -> bool:
        is_own = self._wait_s is None or other._wait_s is None
        if not is_own:
            return True
        one, two = self._context, other._context
        return one is not None and two is not None and one.speech_handle is two.speech_handle

    async def _conflicts(self, other: _ScheduledCall) -> bool:
        return conflict(await other.access(), await self.access())

    async def access(self) -> CallAccess:
        """Return what the call uses, found out when another call asks: alone, it needs no plan."""
        if self._access is None:
            self._access = await _access(self.entry, self._arguments)
        return self._access


async def _access(entry: ToolEntry, arguments: Arguments) -> CallAccess:
    writes = not _only_reads(entry)
    used = mentioned_paths(arguments, writes=writes)
    source = f"{entry.spec.tier} {entry.spec.source}"
    if not used.paths:
        return CallAccess(source, writes)
    try:
        async with asyncio.timeout(RESOLVE_S):
            paths = await asyncio.to_thread(lambda: tuple(map(resolved_path, used.paths)))
    except TimeoutError:
        return CallAccess(source, writes)
    return CallAccess(source, writes, paths, used.whole)


def _only_reads(entry: ToolEntry) -> bool:
    """Say whether the call is known to change nothing.

    An MCP server says so itself. Methods and workflows are the owner's own: their effect is
    believed, and so are their names: `get_weather` reads, `get_and_delete` does not.
    """
    if entry.spec.read_only is not None or entry.spec.tier == "mcp":
        return entry.spec.read_only is True
    return entry.spec.effect == "read" or name_reads(entry.spec.name)


# The calls of one agent that are under way, and what becomes of them when they are taken back.

SPOKEN_OVER: Final = (
    "The call was not made, as the person spoke on before it began. Make it again if they still "
    "want it."
)
TAKEN_BACK: Final = "The person took this back, so it was not done. Do not make the call again."


@dataclass(eq=False, slots=True)
class CallUnderWay:
    """A call under way."""

    task: asyncio.Task[Any]
    is_of_conversation: bool
    reads: bool
    has_begun: bool = False
    """Whether it waits for nothing any more but the owner's rules and its tool."""
    is_taken_back: bool = False


class OpenCalls:
    """The calls under way, of the conversation and of the control API."""

    def __init__(self) -> None:
        self.hearing: SpokenWords | None = None
        """It knows whether the person speaks; None where nothing is heard."""
        self._calls: Final[set[CallUnderWay]] = set()

    @contextmanager
    def opened(self, call: ToolCallRequest) -> Generator[CallUnderWay]:
        """Keep a call while it is under way in this task.

        Raises:
            SpokenOver: it was taken back.
        """
        task, spec = asyncio.current_task(), call.entry.spec
        assert task is not None
        reads = spec.read_only is True or tool_reads(call.entry.exposed, spec.effect)
        said = call.context is not None and call.caller.origin != "api"
        under_way = CallUnderWay(task, said, reads)
        self._calls.add(under_way)
        try:
            yield under_way
        except asyncio.CancelledError:
            if not under_way.is_taken_back:
                raise
            task.uncancel()
            raise SpokenOver(TAKEN_BACK) from None
        finally:
            self._calls.discard(under_way)

    async def begin(self, call: CallUnderWay) -> None:
        """Let a call begin, one that writes only once the person has been heard out.

        Raises:
            SpokenOver: there are words that the model has not answered.
        """
        waits = call.is_of_conversation and not call.reads
        if waits and self.hearing is not None and await self.hearing.heard_out():
            raise SpokenOver(SPOKEN_OVER)
        call.has_begun = True

    def note_said(self, words: str) -> None:
        """Take back what is under way if `words`, a whole turn, only do that.

        Calls that only read end, and so do those that have not begun.
        """
        if not takes_back(words):
            return
        for call in self._calls:
            if call.is_of_conversation and (call.reads or not call.has_begun):
                call.is_taken_back = True
                call.task.cancel()

    def cancel(self) -> None:
        """Cancel all of them. LiveKit lets them go on when a reply is interrupted."""
        for call in self._calls:
            call.task.cancel()
