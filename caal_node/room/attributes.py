"""Shows what the agent does right now as participant attributes, for a front end to display.

`caal.state` is `warming` until the model has read its prompt, `tool` while a call runs, else
`idle`. `caal.tool` names the call that began last, and does not exist without one (LiveKit removes
an attribute that is set to the empty text).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from livekit import rtc

from caal_node.core.events import Event, ToolCallEnded, ToolCallStarted
from caal_node.room.other_participants import connected

STATE: Final = "caal.state"
TOOL: Final = "caal.tool"
SET_DEADLINE_S: Final = 5.0
AGAIN_S: Final = 1.0
"""Seconds until a failed state is sent again, doubled each time. A newer state is sent at once."""
AGAIN_MAX_S: Final = 30.0
LAST_S: Final = 1.0
"""Seconds for the last state of an agent. A room that is closing may never answer."""
SetAttributes = Callable[[dict[str, str]], Awaitable[object]]
Ready = Callable[[], Awaitable[None]]

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
