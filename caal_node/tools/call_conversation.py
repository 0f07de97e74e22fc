"""One call's line back to the conversation: its progress as events, its questions to the person.

A tool's source asks from a task of its own, but LiveKit lets only the tool's task hold the
conversation. So `attend` runs the call beside that task, which asks what comes up meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias, TypeVar

from livekit.agents import RunContext

from caal_node.core.events import ToolProgress
from caal_node.tools.question_task import QuestionTask
from caal_node.tools.table import ToolEntry
from mcp_bridge import Answer, Declined, Question

T = TypeVar("T")
_Asked: TypeAlias = tuple[Question, asyncio.Future[Answer]]


class RoomCallConversation:
    """A `tiers.port.Caller`, for one call."""

    def __init__(
        self,
        entry: ToolEntry,
        context: RunContext[Any],
        redacted: Callable[[str], str],
        on_progress: Callable[[ToolProgress], None] | None,
    ) -> None:
        self._entry: Final = entry
        self._context: Final = context
        self._redacted: Final = redacted
        self._on_progress: Final = on_progress
        self._questions: Final[asyncio.Queue[_Asked | None]] = asyncio.Queue()

    def progressed(self, done: float, total: float | None, message: str) -> None:
        if self._on_progress is None:
            return
        spec, call_id = self._entry.spec, self._context.function_call.call_id
        told = (done, total, self._redacted(message))
        self._on_progress(ToolProgress(call_id, self._entry.exposed, spec.tier, spec.source, *told))

    async def asked(self, question: Question) -> Answer:
        if question.url:
            return Declined()  # nobody can be sent to a page by voice
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._questions.put_nowait((question, answer))
        return await answer

    async def attend(self, call: Coroutine[Any, Any, T]) -> T:
        """Awaits `call`, and asks the person whatever its source asks until it is done."""
        running = asyncio.create_task(call, name=f"caal-call:{self._entry.exposed}")
        running.add_done_callback(lambda _: self._questions.put_nowait(None))
        try:
            while (asked := await self._questions.get()) is not None:
                await self._ask(*asked)
            return await running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _ask(self, question: Question, answer: asyncio.Future[Answer]) -> None:
        if answer.done():
            return  # it has lost its use while another one was asked
        task = QuestionTask(question, self._context.session.current_agent)
        answer.add_done_callback(lambda _: None if task.done() else task.complete(Declined()))
        found = await task
        if not answer.done():
            answer.set_result(found)
