"""The calls of one agent that are under way, and what becomes of them when they are taken back.

"Turn on the lamp" and, while the model still reads that, "never mind": LiveKit breaks a reply off
only once there are words of whoever speaks, and runs its calls until then. So a call that writes
waits here until nobody speaks, and is not made if there were words for the agent. One that has
begun goes on, whatever is said: nobody knows how much of it is done, and `undo` is for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from caal_node.core.errors import SpokenOver
from caal_node.core.tool_spec import tool_reads
from caal_node.language.requests import takes_back
from caal_node.tools.call_middleware import SpokenWords, ToolCallRequest

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
