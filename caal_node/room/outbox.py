"""Messages to a room, sent in order by one task, so that whoever has news never waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

Send = Callable[[str], Awaitable[object]]
Ready = Callable[[], Awaitable[object]]

QUEUE_MESSAGES: Final = 256
"""Some turns' worth. A room that takes none for so long is gone."""
SEND_DEADLINE_S: Final = 5.0
DRAIN_DEADLINE_S: Final = 3.0

_log = logging.getLogger(__name__)


class Outbox:
    """Sends texts one after the other. A failed or late one is logged and left behind.

    With the queue full a new message is dropped, so that what is sent stays a whole beginning.
    Make it on the running event loop. `ready` is awaited before the first message is sent, however
    long it takes: what an agent says as it comes must not be lost, though no room is there yet.
    """

    def __init__(
        self, send: Send, *, name: str, size: int = QUEUE_MESSAGES, ready: Ready | None = None
    ) -> None:
        self._send = send
        self._ready = ready
        self._name = name
        self._queue: asyncio.Queue[str] = asyncio.Queue(size)
        self._dropped = 0
        self._closed = False
        self._task = asyncio.create_task(self._run(), name=f"caal-{name}")

    def put(self, text: str) -> None:
        if self._closed:
            return
        try:
            self._queue.put_nowait(text)
        except asyncio.QueueFull:
            self._dropped += 1
            if self._dropped == 1:
                _log.warning("%s: the room takes no messages; they are dropped", self._name)

    async def aclose(self, deadline_s: float = DRAIN_DEADLINE_S) -> None:
        """Send what is queued, for at most `deadline_s` seconds, and end the task."""
        self._closed = True
        if self._task.done():
            return
        try:
            async with asyncio.timeout(deadline_s):
                await self._queue.join()
        except TimeoutError:
            _log.warning("%s: closed with %d messages waiting", self._name, self._queue.qsize())
        finally:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        if self._ready is not None:
            await self._ready()  # ended by `aclose`
        while True:
            text = await self._queue.get()
            try:
                async with asyncio.timeout(SEND_DEADLINE_S):
                    await self._send(text)
            except Exception as error:
                _log.warning("%s: a message was not sent: %s", self._name, type(error).__name__)
            finally:
                self._queue.task_done()
