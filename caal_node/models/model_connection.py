"""One model on one server: the way it is asked, how that was found out, and who still needs it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Generator
from contextlib import contextmanager

from livekit.agents.utils import aio

from caal_node.models.backends.base import Backend
from caal_node.models.call_threshold import calibrate
from caal_node.models.model_memory import ModelMemory
from caal_node.models.native_call_probe import probe
from caal_node.models.question import Question
from caal_node.models.retry_policy import RetryPolicy, TextStyle
from caal_node.models.strategies import CallThresholds, JsonReplyStrategy
from caal_node.models.warm_up import warm

DIGEST_CHARS = 16
"""Of a head's digest: it tells some twenty heads apart."""
AS_CONFIGURED = "as configured"
FOUND_NATIVE = "it answered a sample request with a structured call"
FOUND_TEXT = "it answered a sample request without a structured call"


class ModelConnection:
    """Owns `backend`. `native_tools` settles how tools are asked for; None finds out by asking.

    `why` is who settled it. `memory` is told what was found out, and what changed on the way.
    """

    def __init__(
        self,
        backend: Backend,
        native_tools: bool | None,
        text: TextStyle = "auto",
        *,
        why: str = AS_CONFIGURED,
        memory: ModelMemory | None = None,
    ) -> None:
        self.backend = backend
        self.retry_policy = RetryPolicy(backend, text)
        self._native_tools = native_tools
        self._memory = memory
        self._kept = native_tools
        self._thinking_kept = False
        if native_tools is False:
            self.retry_policy.leave_native(why)
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

    async def find_strategy(self) -> None:
        """Settle, once, whether the model's own tool calls can be used.

        Raises:
            ModelError: it could not be asked. The next turn tries again.
        """
        if self._finding_out is None or _failed(self._finding_out):
            self._finding_out = asyncio.create_task(self._find_way(), name="caal-find-way")
        await asyncio.shield(self._finding_out)

    async def warm(self, head: Question) -> None:
        """Have the server read `head`, and find out how sure of a call the model has to be.

        Raises:
            ModelError: the server cannot be reached, or has no such model.
        """
        await self.find_strategy()
        way = self.retry_policy.best(head)
        request = way.request(head)
        await warm(self.backend, request)
        if isinstance(way, JsonReplyStrategy):
            digest = hashlib.sha256(repr(request.items).encode()).hexdigest()[:DIGEST_CHARS]
            self.retry_policy.thresholds = await self._bounds(digest, head)

    async def _bounds(self, digest: str, head: Question) -> CallThresholds:
        known = await self._memory.bound(digest) if self._memory else None
        if known is not None:
            return CallThresholds(known, known)
        found = await calibrate(self.backend, head)
        if self._memory is not None:
            await self._memory.keep_bound(digest, found.sure)
        return found

    async def retire(self) -> None:
        """Close it as soon as the replies that are being read have ended."""
        await self._unused.wait()
        await self.aclose()

    async def aclose(self) -> None:
        if self._finding_out is not None:
            await aio.cancel_and_wait(self._finding_out)
        if self._kept is not None and self._kept != self.retry_policy.native:
            await self._remember()  # it has left its own tool calls since
        await self._remember_thinking()
        await self.backend.aclose()

    async def _find_way(self) -> None:
        await self.retry_policy.learn()
        if self._memory is not None and await self._memory.thinks_aloud():
            self._thinking_kept = True
            self.retry_policy.thought_aloud()
        if self._native_tools is not None:
            return
        found = await probe(self.backend)
        if not found.native:
            self.retry_policy.leave_native(FOUND_TEXT)
        if found.thinks_aloud:
            self.retry_policy.thought_aloud()
        await self._remember()

    async def _remember(self) -> None:
        self._kept = self.retry_policy.native
        if self._memory is not None:
            why = self.retry_policy.status.reason or FOUND_NATIVE
            await self._memory.keep("native" if self._kept else "text", why)

    async def _remember_thinking(self) -> None:
        if self._memory is not None and self._thinking_kept != self.retry_policy.thinks_aloud:
            self._thinking_kept = self.retry_policy.thinks_aloud
            await self._memory.keep_thinking(aloud=self._thinking_kept)


def _failed(task: asyncio.Task[None]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
