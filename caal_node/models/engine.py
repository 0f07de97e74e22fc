"""One model on one server: the way it is asked, how that was found out, and who still needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from livekit.agents.utils import aio

from caal_node.models.ladder import Ladder, TextStyle
from caal_node.models.port import Backend
from caal_node.models.probe import calls_natively


class Engine:
    """Owns `backend`. `native_tools` settles how tools are asked for; None finds out by asking."""

    def __init__(
        self, backend: Backend, native_tools: bool | None, text: TextStyle = "auto"
    ) -> None:
        self.backend = backend
        self.ladder = Ladder(backend, text)
        self._native_tools = native_tools
        if native_tools is False:
            self.ladder.leave_native("as configured")
        self._finding_out: asyncio.Task[None] | None = None
        self._users = 0
        self._unused = asyncio.Event()
        self._unused.set()

    @contextmanager
    def in_use(self) -> Generator[None]:
        """While a reply is read from it; `retire` waits for the end."""
        self._users += 1
        self._unused.clear()
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._unused.set()

    async def find_way(self) -> None:
        """Settle, once, whether the model's own tool calls can be used.

        Raises:
            ModelError: it could not be asked. The next turn tries again.
        """
        if self._finding_out is None or _failed(self._finding_out):
            self._finding_out = asyncio.create_task(self._find_way(), name="caal-find-way")
        await asyncio.shield(self._finding_out)

    async def retire(self) -> None:
        """Close it as soon as the replies that are being read have ended."""
        await self._unused.wait()
        await self.aclose()

    async def aclose(self) -> None:
        if self._finding_out is not None:
            await aio.cancel_and_wait(self._finding_out)
        await self.backend.aclose()

    async def _find_way(self) -> None:
        await self.ladder.learn()
        if self._native_tools is None and not await calls_natively(self.backend):
            self.ladder.leave_native("it answered a sample request without a structured call")


def _failed(task: asyncio.Task[None]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
