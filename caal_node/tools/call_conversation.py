"""What one call says to the conversation: its progress as events, its questions to the person.

A tool's source asks from a task of its own, but LiveKit lets only the tool's task hold the
conversation. So `run` runs the call beside that task, which asks what comes up meanwhile.
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
_OpenQuestion: TypeAlias = tuple[Question, asyncio.Future[Answer]]


class RoomCallConversation:
    """The `CallConversation` of one call that a model has made in a LiveKit session."""

    def __init__(
        self,
        entry: ToolEntry,
        context: RunContext[Any],
        redact: Callable[[str], str],
        on_progress: Callable[[ToolProgress], None] | None,
    ) -> None:
        self._entry: Final = entry
        self._context: Final = context
        self._redact: Final = redact
        self._on_progress: Final = on_progress
        self._questions: Final[asyncio.Queue[_OpenQuestion | None]] = asyncio.Queue()
        """None says that the call has ended."""

    def report_progress(self, done: float, total: float | None, message: str) -> None:
        """Emit a progress event."""
        if self._on_progress is None:
            return
        spec, call_id = self._entry.spec, self._context.function_call.call_id
        progress = done, total, self._redact(message)
        self._on_progress(
            ToolProgress(call_id, self._entry.exposed, spec.tier, spec.source, *progress)
        )

    async def ask(self, question: Question) -> Answer:
        """Hand the question to the tool's task, and wait for the person's answer."""
        if question.url:
            return Declined()  # nobody can be sent to a page by voice
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._questions.put_nowait((question, answer))
        return await answer

    async def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run `call` to its end, and ask the person whatever its source asks meanwhile."""
        running = asyncio.create_task(call, name=f"caal-call:{self._entry.exposed}")
        running.add_done_callback(lambda _: self._questions.put_nowait(None))
        try:
            while (asked := await self._questions.get()) is not None:
                await self._ask_person(*asked)
            return await running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _ask_person(self, question: Question, answer: asyncio.Future[Answer]) -> None:
        if answer.done():
            return  # nobody needed it any more while another question was asked
        task = QuestionTask(question, self._context.session.current_agent)
        answer.add_done_callback(lambda _: None if task.done() else task.complete(Declined()))
        given = await task
        if not answer.done():
            answer.set_result(given)
