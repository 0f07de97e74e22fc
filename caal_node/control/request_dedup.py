"""The agent's end of requests and answers that travel in parts.

A request is done once, however often it is sent: whoever asks repeats what brought no answer, and
a tool must not run twice for that. Its answer is kept for a while, to be fetched part by part.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

from caal_node.control.chunking import (
    MAX_ANSWER_BYTES,
    MAX_REQUEST_BYTES,
    Page,
    PageRequest,
    PartRequest,
    max_parts,
    pack,
    unpack,
)
from caal_node.control.rpc import Answer, CallFailed, CallRunning
from caal_node.core.errors import CaalError

logger = logging.getLogger(__name__)

ANSWER_S: Final = 1.0
"""How long one call may wait. A third of the server's patience before it repeats the call."""
MAX_RUNNING: Final = 16
"""Requests under way at a time. A person, a script and a workflow are three."""
MAX_OPEN: Final = 8
"""Requests of which parts are still missing; the oldest is dropped for a new one."""
MAX_KEPT: Final = 32
"""Finished answers that can still be fetched."""
MAX_KNOWN: Final = 4096
"""Ids of requests whose answers are gone; they are not done again."""
INLINE_CHARS: Final = 64 * 1024
"""Packing this takes 2 ms; more goes to a thread."""
_MAX_PARTS: Final = max_parts(MAX_REQUEST_BYTES)

GONE: Final = "Its answer is no longer kept; ask anew."
TOO_LARGE: Final = f"The request is larger than {MAX_REQUEST_BYTES} bytes, or not whole."
BUSY: Final = "Too many requests are under way; try again in a moment."


class Deliveries:
    """Takes requests in, has `work` done, hands answers out.

    `work` is given the request's text and gives the answer's; what a CaalError of its
    says is told, and of any other that it went wrong.
    """

    def __init__(self, work: Callable[[str], Awaitable[str]]) -> None:
        self._work: Final = work
        self._open: Final[OrderedDict[str, dict[int, str]]] = OrderedDict()
        self._tasks: Final[OrderedDict[str, asyncio.Task[tuple[str, ...]]]] = OrderedDict()
        self._gone: Final[OrderedDict[str, None]] = OrderedDict()

    async def aclose(self) -> None:
        """Cancel what runs, and wait until it has ended."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def take(self, part: PartRequest) -> Answer:
        """Take one part in. After the last one: the answer's first page, if it is there soon."""
        if part.id in self._tasks or part.id in self._gone:
            return await self.page(PageRequest(part.id, 0))
        if not 0 <= part.number < part.of <= _MAX_PARTS:
            return CallFailed("error", TOO_LARGE)
        parts = self._open.setdefault(part.id, {})
        parts[part.number] = part.data
        while len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)
        if len(parts) < part.of:
            return CallRunning()
        del self._open[part.id]
        if sum(not task.done() for task in self._tasks.values()) >= MAX_RUNNING:
            return CallFailed("busy", BUSY)
        whole = [parts[number] for number in sorted(parts)]
        self._tasks[part.id] = asyncio.create_task(self._do(whole), name="caal-tools")
        self._forget()
        return await self.page(PageRequest(part.id, 0))

    async def page(self, asked: PageRequest) -> Answer:
        """One page of a finished answer, or how far its request is."""
        if (task := self._tasks.get(asked.id)) is None:
            return CallFailed("error", GONE) if asked.id in self._gone else CallFailed("unknown")
        done, _ = await asyncio.wait({task}, timeout=ANSWER_S)
        if not done:
            return CallRunning()
        if task.cancelled():
            return CallFailed("error")
        if (error := task.exception()) is not None:
            return CallFailed(
                "error", str(error) if isinstance(error, _NotWhole | CaalError) else ""
            )
        pages = task.result()
        if not 0 <= asked.number < len(pages):
            return CallFailed("unknown")
        return Page(asked.number, len(pages), pages[asked.number])

    async def _do(self, parts: list[str]) -> tuple[str, ...]:
        try:
            if len(parts) == 1:
                text = unpack(parts, MAX_REQUEST_BYTES)
            else:
                text = await asyncio.to_thread(unpack, parts, MAX_REQUEST_BYTES)
        except ValueError:
            raise _NotWhole(TOO_LARGE) from None
        try:
            answer = await self._work(text)
        except Exception as error:
            # Its text may quote what a tool sent; its type is enough to look further.
            logger.error("a request for tools failed: %s", type(error).__name__)
            raise
        if len(answer) > MAX_ANSWER_BYTES:
            raise _NotWhole(f"The answer is larger than {MAX_ANSWER_BYTES} bytes; ask for less.")
        if len(answer) <= INLINE_CHARS:
            return pack(answer)
        return await asyncio.to_thread(pack, answer)

    def _forget(self) -> None:
        finished = [id_ for id_, task in self._tasks.items() if task.done()]
        for id_ in finished[:-MAX_KEPT]:
            del self._tasks[id_]
            self._gone[id_] = None
        while len(self._gone) > MAX_KNOWN:
            self._gone.popitem(last=False)


class _NotWhole(Exception):
    """What is told to whoever asked."""
