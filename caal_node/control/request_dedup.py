"""The agent's end of requests and answers that travel in chunks.

A request is acted on once, however often it is sent: the control process repeats what brought no
answer, and a tool must not run twice for that. The answer is kept for a while, to be fetched chunk
by chunk. The server gives up on an RPC after 3 s and then repeats it, so no RPC waits for the work:
it starts the work or finds it by its id, waits a moment, and says how far it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, Literal

from caal_node.control.rpc import (
    MAX_ANSWER_BYTES,
    MAX_REQUEST_BYTES,
    AnswerChunk,
    FetchChunk,
    RequestFailed,
    RpcAnswer,
    SendChunk,
    StillRunning,
    expanded_chars,
    join,
    max_chunks,
    run_beside_loop,
    split,
)
from caal_node.core.errors import CaalError, NotAllowed

logger = logging.getLogger(__name__)

ANSWER_S: Final = 1.0
"""One RPC waits this long for the work: a third of the time after which the server repeats it."""
MAX_RUNNING: Final = 16
"""This many requests run at a time. A person, a script and a workflow are three."""
MAX_INCOMPLETE: Final = 8
"""This many requests may lack chunks; the oldest is dropped for a new one."""
MAX_KEPT: Final = 32
"""This many finished answers can still be fetched."""
MAX_FORGOTTEN: Final = 4096
"""This many ids are known whose answers are gone; those requests are not acted on again."""
_MAX_CHUNKS: Final = max_chunks(MAX_REQUEST_BYTES)

GONE: Final = "Its answer is no longer kept; ask anew."
TOO_LARGE: Final = f"The request is larger than {MAX_REQUEST_BYTES} bytes, or not whole."
ANSWER_TOO_LARGE: Final = f"The answer is larger than {MAX_ANSWER_BYTES} bytes; ask for less."
BUSY: Final = "Too many requests are under way; try again in a moment."


class CannotAnswer(Exception):
    """The handler gives no answer, for a reason that the caller may read."""

    def __init__(self, reason: Literal["error", "timeout", "busy"], detail: str = "") -> None:
        super().__init__(detail or reason)
        self.failure: Final = RequestFailed(reason=reason, detail=detail)


class RequestDeduplicator:
    """Collects the chunks of requests, has each request handled once, and hands out the answers.

    `handle` takes a request's text and returns the answer's. The caller reads what a CannotAnswer
    or CaalError of `handle` says; of any other exception, only that something went wrong.
    """

    def __init__(self, handle: Callable[[str], Awaitable[str]]) -> None:
        self._handle: Final = handle
        self._incomplete: Final[OrderedDict[str, dict[int, str]]] = OrderedDict()
        self._tasks: Final[OrderedDict[str, asyncio.Task[tuple[str, ...] | RequestFailed]]] = (
            OrderedDict()
        )
        self._forgotten: Final[OrderedDict[str, None]] = OrderedDict()

    async def aclose(self) -> None:
        """Cancel what runs, and wait until it has ended."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def receive(self, chunk: SendChunk) -> RpcAnswer:
        """Take one chunk in. After the last one, return the answer's first chunk if it is ready."""
        if chunk.id in self._tasks or chunk.id in self._forgotten:
            return await self.fetch(FetchChunk(id=chunk.id, number=0))
        if not 0 <= chunk.number < chunk.of <= _MAX_CHUNKS:
            return RequestFailed(reason="error", detail=TOO_LARGE)
        chunks = self._incomplete.setdefault(chunk.id, {})
        chunks[chunk.number] = chunk.data
        while len(self._incomplete) > MAX_INCOMPLETE:
            self._incomplete.popitem(last=False)
        if len(chunks) < chunk.of:
            return StillRunning()
        del self._incomplete[chunk.id]
        if sum(not task.done() for task in self._tasks.values()) >= MAX_RUNNING:
            return RequestFailed(reason="busy", detail=BUSY)
        ordered = [chunks[number] for number in sorted(chunks)]
        self._tasks[chunk.id] = asyncio.create_task(self._run(ordered), name="caal-control")
        self._forget_oldest()
        return await self.fetch(FetchChunk(id=chunk.id, number=0))

    async def fetch(self, request: FetchChunk) -> RpcAnswer:
        """Return one chunk of a finished answer, or how far its request is."""
        if (task := self._tasks.get(request.id)) is None:
            if request.id in self._forgotten:
                return RequestFailed(reason="error", detail=GONE)
            return RequestFailed(reason="unknown")
        done, _ = await asyncio.wait({task}, timeout=ANSWER_S)
        if not done:
            return StillRunning()
        if task.cancelled():
            return RequestFailed(reason="error")
        if isinstance(chunks := task.result(), RequestFailed):
            return chunks
        if not 0 <= request.number < len(chunks):
            return RequestFailed(reason="unknown")
        return AnswerChunk(number=request.number, of=len(chunks), data=chunks[request.number])

    async def _run(self, chunks: list[str]) -> tuple[str, ...] | RequestFailed:
        try:
            text = await run_beside_loop(
                lambda: join(chunks, MAX_REQUEST_BYTES), chars=expanded_chars(chunks)
            )
        except ValueError:
            return RequestFailed(reason="error", detail=TOO_LARGE)
        try:
            answer = await self._handle(text)
        except CannotAnswer as why:
            return why.failure
        except NotAllowed as error:
            return RequestFailed(reason="refused", detail=str(error))
        except CaalError as error:
            logger.error("a control request failed: %s", error)
            return RequestFailed(reason="error", detail=str(error))
        except Exception as error:
            # Its text may quote what a server sent; its type is enough to look further.
            logger.error("a control request failed: %s", type(error).__name__)
            return RequestFailed(reason="error")
        if len(answer) > MAX_ANSWER_BYTES:
            return RequestFailed(reason="error", detail=ANSWER_TOO_LARGE)
        return await run_beside_loop(lambda: split(answer), chars=len(answer))

    def _forget_oldest(self) -> None:
        finished = [id_ for id_, task in self._tasks.items() if task.done()]
        for id_ in finished[:-MAX_KEPT]:
            del self._tasks[id_]
            self._forgotten[id_] = None
        while len(self._forgotten) > MAX_FORGOTTEN:
            self._forgotten.popitem(last=False)
