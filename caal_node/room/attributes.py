"""What the agent does right now, as participant attributes: for a face, not for a record.

`caal.state` is `warming` until the model has read its prompt, `tool` while a call runs, else
`idle`. `caal.tool` names the call that began last, and is not there without one (LiveKit takes an
attribute away that is set to nothing).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from livekit import rtc

from caal_node.core.events import Event, ToolCallEnded, ToolCallStarted
from caal_node.room.connection import connected

STATE: Final = "caal.state"
TOOL: Final = "caal.tool"
SET_DEADLINE_S: Final = 5.0
AGAIN_S: Final = 1.0
"""Until what was not set is tried again. Doubled each time. A newer state is tried at once."""
AGAIN_MAX_S: Final = 30.0
LAST_S: Final = 1.0
"""For the state that an agent leaves behind; a room that is going may never answer."""
SetAttributes = Callable[[dict[str, str]], Awaitable[object]]
Ready = Callable[[], Awaitable[None]]

_log = logging.getLogger(__name__)


class Attributes:
    """A listener of events. Only the newest state is sent; one that was overtaken is not."""

    def __init__(self, set_attributes: SetAttributes, ready: Ready | None = None) -> None:
        """`ready` is awaited before the first state is sent."""
        self._set = set_attributes
        self._ready = ready
        self._running: dict[str, str] = {}
        self._warm = False
        self._sent: dict[str, str] | None = None
        """What the room shows; empty where nobody knows, None where nothing was ever sent."""
        self._changed = asyncio.Event()
        self._changed.set()  # there is a state from the start
        self._task = asyncio.create_task(self._run(), name="caal-attributes")

    @classmethod
    def of_room(cls, room: rtc.Room) -> Attributes:
        # Late: there is no local participant before the room is connected.
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
        """The model is ready, or nobody knows how to make it so."""
        self._warm = True
        self._changed.set()

    async def aclose(self) -> None:
        """End, and leave no call behind: another agent may be in the room after this one."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        resting = {STATE: self._rest(), TOOL: ""}
        if self._sent is None or self._sent == resting:
            return
        try:
            async with asyncio.timeout(LAST_S):
                await self._set(resting)
        except Exception as error:
            _log.debug("the agent's last state was not set: %s", type(error).__name__)

    def _rest(self) -> str:
        return "idle" if self._warm else "warming"

    async def _run(self) -> None:
        if self._ready is not None:
            await self._ready()
        again_s = AGAIN_S
        while True:
            await self._changed.wait()
            self._changed.clear()
            newest = next(reversed(self._running.values()), "")
            values = {STATE: "tool" if newest else self._rest(), TOOL: newest}
            if values == self._sent:
                continue
            self._sent = {}  # one that came too late, or was cancelled, may be set all the same
            try:
                async with asyncio.timeout(SET_DEADLINE_S):
                    await self._set(values)
            except Exception as error:
                kind = type(error).__name__
                _log.warning("the agent's attributes were not set (%s); again soon", kind)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(again_s):
                        await self._changed.wait()
                again_s = min(2 * again_s, AGAIN_MAX_S)
                self._changed.set()
            else:
                self._sent, again_s = values, AGAIN_S
