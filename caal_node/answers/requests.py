"""The requests to the model for one answer."""

from __future__ import annotations

from collections.abc import AsyncIterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Final, Protocol, Self

from livekit.agents import llm

from caal_node.models.question import Question


class AskedModel(Protocol):
    """The model of a turn."""

    @property
    def natively(self) -> bool:
        """Whether it is asked with its server's own tool calls by now."""
        ...

    def ask(self, question: Question) -> AbstractAsyncContextManager[AsyncIterable[llm.ChatChunk]]:
        """Send `question` once the context is entered; leaving it ends the request."""
        ...


class Requests:
    """Asks one question after the other, as many servers answer one request at a time."""

    def __init__(self, model: AskedModel) -> None:
        self.model: Final = model
        self._open: Final = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._open.aclose()

    async def reply(self, question: Question) -> AsyncIterable[llm.ChatChunk]:
        """Ask `question`, and return the reply; the request before is ended."""
        await self._open.aclose()
        return await self._open.enter_async_context(self.model.ask(question))
