"""The conversation's events as a text stream of the room: topic `caal.tools`, a JSON a message."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from livekit import rtc

from caal_node.core.events import (
    Event,
    ToolCallEnded,
    ToolCallStarted,
    ToolSourceChanged,
    to_json,
)
from caal_node.room.other_participants import connected

Send = Callable[[str], Awaitable[object]]
Ready = Callable[[], Awaitable[object]]

TOPIC: Final = "caal.tools"
QUEUE_MESSAGES: Final = 256
"""The messages of some turns. A room that takes none for so long is no longer there."""
SEND_DEADLINE_S: Final = 5.0
DRAIN_DEADLINE_S: Final = 3.0

_log = logging.getLogger(__name__)


class Transcript:
    """An event listener that writes the events to the room, one after the other.

    Everyone in the room reads them, so arguments are left out unless `show_arguments` is set.
    Results are in no event at all.

    A task of its own sends them, so that no caller waits. A message that fails or is late is logged
    and skipped. With the queue full a new message is dropped, so that what is sent is a whole
    beginning. Make it on the running event loop. `ready` is awaited before the first message is
    sent, however long it takes, as an agent may speak before its room is connected.
    """

    def __init__(
        self,
        send: Send,
        *,
        show_arguments: bool = False,
        size: int = QUEUE_MESSAGES,
        ready: Ready | None = None,
    ) -> None:
        self._send = send
        self._show_arguments = show_arguments
        self._ready = ready
        self._queue: asyncio.Queue[str] = asyncio.Queue(size)
        self._dropped = False
        self._closed = False
        self._task = asyncio.create_task(self._run(), name="caal-transcript")

    @classmethod
    def of_room(cls, room: rtc.Room, *, show_arguments: bool = False) -> Transcript:
        async def send(text: str) -> None:
            # It is short, and older clients cannot read compressed streams.
            await room.local_participant.send_text(text, topic=TOPIC, compress=False)

        return cls(send, show_arguments=show_arguments, ready=lambda: connected(room))

    def __call__(self, event: Event) -> None:
        if self._closed:
            return
        if isinstance(event, ToolCallStarted) and not self._show_arguments:
            event = dataclasses.replace(event, arguments=None)
        elif isinstance(event, ToolCallEnded) and not self._show_arguments:
            event = dataclasses.replace(event, reason="", result="")
        elif isinstance(event, ToolSourceChanged) and not self._show_arguments:
            event = dataclasses.replace(event, reason="")
        try:
            self._queue.put_nowait(to_json(event))
        except asyncio.QueueFull:
            if not self._dropped:
                _log.warning("transcript: the room takes no messages; they are dropped")
            self._dropped = True

    async def aclose(self, deadline_s: float = DRAIN_DEADLINE_S) -> None:
        """Send what is queued, for at most `deadline_s` seconds, and end the task."""
        self._closed = True
        if self._task.done():
            return
        try:
            async with asyncio.timeout(deadline_s):
                await self._queue.join()
        except TimeoutError:
            _log.warning("transcript: closed with %d messages waiting", self._queue.qsize())
        finally:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        if self._ready is not None:
            await self._ready()  # `aclose` cancels it
        while True:
            text = await self._queue.get()
            try:
                async with asyncio.timeout(SEND_DEADLINE_S):
                    await self._send(text)
            except Exception as error:
                _log.warning("transcript: a message was not sent: %s", type(error).__name__)
            finally:
                self._queue.task_done()
