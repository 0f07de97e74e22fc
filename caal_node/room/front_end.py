"""Shows front ends what the agent does: its state as attributes, its events as a text stream."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from livekit import rtc

from caal_node.core.events import (
    Event,
    QuestionAsked,
    TimersChanged,
    ToolCallEnded,
    ToolCallStarted,
    ToolSourceChanged,
    to_json,
)
from caal_node.room.other_participants import connected

# The agent's state now, as participant attributes.
#
# `caal.state` is `warming` until the model has read its prompt, `tool` while a call runs, else
# `idle`. `caal.tool` names the call that began last, and does not exist without one (LiveKit
# removes an attribute that is set to the empty text).

STATE: Final = "caal.state"
TOOL: Final = "caal.tool"
SET_DEADLINE_S: Final = 5.0
AGAIN_S: Final = 1.0
"""Seconds until a failed state is sent again, doubled each time. A newer state is sent at once."""
AGAIN_MAX_S: Final = 30.0
LAST_S: Final = 1.0
"""Seconds for the last state of an agent. A room that is closing may never answer."""
SetAttributes = Callable[[dict[str, str]], Awaitable[object]]
Ready = Callable[[], Awaitable[object]]

_log = logging.getLogger(__name__)


class Attributes:
    """An event listener that sends the newest state. Older ones that were not sent are skipped."""

    def __init__(self, set_attributes: SetAttributes, ready: Ready | None = None) -> None:
        """`ready` is awaited before the first state is sent."""
        self._set = set_attributes
        self._ready = ready
        self._running: dict[str, str] = {}
        self._warm = False
        self._sent: dict[str, str] | None = None
        """The state that the room shows: {} where it is unknown, None where none was ever sent."""
        self._changed = asyncio.Event()
        self._changed.set()  # the first state is sent at once
        self._task = asyncio.create_task(self._run(), name="caal-attributes")

    @classmethod
    def of_room(cls, room: rtc.Room) -> Attributes:
        # The participant is read late, as it does not exist before the room is connected.
        return cls(
            lambda values: room.local_participant.set_attributes(values), lambda: connected(room)
        )

    def __call__(self, event: Event) -> None:
        match event:
            case ToolCallStarted():
                self._running[event.call_id] = event.tool
            case ToolCallEnded():
                self._running.pop(event.call_id, None)
            case _:
                return
        self._changed.set()

    def warmed(self) -> None:
        """Note that the warm-up is over, whether or not the model is ready."""
        self._warm = True
        self._changed.set()

    async def aclose(self) -> None:
        """End the task and clear the tool, as another agent may follow in this room."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        last = {STATE: self._idle_state(), TOOL: ""}
        if self._sent is None or self._sent == last:
            return
        try:
            async with asyncio.timeout(LAST_S):
                await self._set(last)
        except Exception as error:
            _log.debug("the agent's last state was not set: %s", type(error).__name__)

    def _idle_state(self) -> str:
        return "idle" if self._warm else "warming"

    async def _run(self) -> None:
        if self._ready is not None:
            await self._ready()
        retry_s = AGAIN_S
        while True:
            await self._changed.wait()
            self._changed.clear()
            newest = next(reversed(self._running.values()), "")
            values = {STATE: "tool" if newest else self._idle_state(), TOOL: newest}
            if values == self._sent:
                continue
            self._sent = {}  # a state that fails or is cancelled may be set all the same
            try:
                async with asyncio.timeout(SET_DEADLINE_S):
                    await self._set(values)
            except Exception as error:
                kind = type(error).__name__
                _log.warning("the agent's attributes were not set (%s); again soon", kind)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(retry_s):
                        await self._changed.wait()
                retry_s = min(2 * retry_s, AGAIN_MAX_S)
                self._changed.set()
            else:
                self._sent, retry_s = values, AGAIN_S


# The events as a text stream of the room: topic `caal.tools`, a JSON a message.

Send = Callable[[str], Awaitable[object]]

TOPIC: Final = "caal.tools"
PAGE: Final = "caal.page"
"""The topic on which one person's page reads them with arguments and results, and the attribute
that marks such a person. Only who made their token for the room can have set it."""
QUEUE_MESSAGES: Final = 256
"""The messages of some turns. A room that takes none for so long is no longer there."""
SEND_DEADLINE_S: Final = 5.0
DRAIN_DEADLINE_S: Final = 3.0


class Transcript:
    """An event listener that writes the events to the room, one after the other.

    Everyone in the room reads them, so arguments, results, reasons, what a server asks and what
    timers are set are left out unless `show_arguments` is set.

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

    @classmethod
    def of_page(
        cls, room: rtc.Room, person: Callable[[], rtc.RemoteParticipant | None]
    ) -> Transcript:
        """Write all of the events to the page of the one person who is heard, if they have one."""

        async def send(text: str) -> None:
            linked = person()
            if linked is not None and linked.attributes.get(PAGE):
                identities = [linked.identity]
                await room.local_participant.send_text(
                    text, topic=PAGE, destination_identities=identities, compress=False
                )

        return cls(send, show_arguments=True, ready=lambda: connected(room))

    def __call__(self, event: Event) -> None:
        if self._closed:
            return
        shown = event if self._show_arguments else _for_everyone(event)
        if shown is None:
            return
        try:
            self._queue.put_nowait(to_json(shown))
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


def _for_everyone(event: Event) -> Event | None:
    """Return what everyone in the room may see of an event; None for nothing."""
    match event:
        case ToolCallStarted():
            return dataclasses.replace(event, arguments=None)
        case ToolCallEnded():
            return dataclasses.replace(event, reason="", result="")
        case ToolSourceChanged():
            return dataclasses.replace(event, reason="")
        case QuestionAsked():
            return dataclasses.replace(event, message="", fields=())
        case TimersChanged():
            return None
        case _:
            return event
