"""Asking the agent of a live room, told without LiveKit: the port, the errors, the course."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar, Final, Protocol, Self

from caal_node.control.reports import (
    ControlRequest,
    ModelReport,
    ModelRequest,
    ReloadReport,
    ReloadRequest,
    Report,
)
from caal_node.control.rpc import Answer, CallDone, CallFailed, CallRunning, Page, Request
from caal_node.core.errors import CaalError

DEADLINE_S: Final = 60.0
"""Of a whole reload as the caller sees it: longer than the agent's own."""
READY_S: Final = 5.0
"""An agent that has just joined is given this long to begin listening."""
RETRY_S: Final = 0.25
MAX_NAMED: Final = 10
MAX_LOOKED_AT: Final = 20
"""Rooms that are asked for their agents when none is named."""


class ControlError(CaalError):
    """A request that cannot be done; `str()` is for the caller, `status` is HTTP's."""

    kind = "control"
    status: ClassVar[int] = 500


class RoomUnknown(ControlError):
    status = 404


class SeveralRooms(ControlError):
    status = 409


class ReloadFailed(ControlError):
    """The agent answered, and said that it could not."""

    status = 502


class LiveKitRefused(ControlError):
    """LiveKit or the agent did not take this process's keys, or the server is too old."""

    status = 502


class LiveKitUnreachable(ControlError):
    status = 503


class AgentBusy(ControlError):
    status = 503


class NoAnswer(ControlError):
    status = 504


class RoomsPort(Protocol):
    """The rooms of one LiveKit server. Every method may raise LiveKitUnreachable or -Refused."""

    async def live(self, name: str | None = None) -> Sequence[str]:
        """The names of the rooms that are open, empty ones too; with `name`, that one or none."""
        ...

    async def agents(self, room: str) -> Sequence[str]:
        """The identities of the agents in a room."""
        ...

    async def ask(self, room: str, identity: str, request: Request) -> Answer | None:
        """Send the request; None where nobody of that identity listens."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...


async def choose(rooms: RoomsPort, name: str | None) -> str:
    """The room that is meant: the named one, or the only live one that has an agent.

    Raises:
        RoomUnknown: no live room has that name, or none is live.
        SeveralRooms: none is named, and there is a choice.
    """
    live = await rooms.live(name)
    if not live:
        raise RoomUnknown(f"There is no live room {name!r}." if name else "No room is live.")
    if len(live) == 1:
        return live[0]
    looked_at = live[:MAX_LOOKED_AT]
    peopled = await asyncio.gather(*(rooms.agents(room) for room in looked_at))
    served = [room for room, agents in zip(looked_at, peopled, strict=True) if agents]
    if len(looked_at) == len(live):
        if len(served) == 1:
            return served[0]
        if not served:
            raise RoomUnknown("There is no agent in any live room.")
    some = ", ".join((served or live)[:MAX_NAMED])
    raise SeveralRooms(f"Several rooms are live; name one as room_name: {some}.")


async def reload(
    rooms: RoomsPort, room: str, request: ReloadRequest, deadline_s: float = DEADLINE_S
) -> ReloadReport:
    """Ask the room's agent to reload, and wait for its report.

    Raises:
        NoAnswer: there is no agent, none that listens, or it did not finish in time.
        ReloadFailed: it said that it could not.
    """
    report = await _asked(rooms, room, request, deadline_s)
    if not isinstance(report, ReloadReport):
        raise ReloadFailed("The agent is of another version.")
    return report


async def change_model(
    rooms: RoomsPort, room: str, request: ModelRequest, deadline_s: float = DEADLINE_S
) -> ModelReport:
    """Ask the room's agent to use another model, and wait until it does.

    Raises:
        NoAnswer, ReloadFailed: as `reload`.
    """
    report = await _asked(rooms, room, request, deadline_s)
    if not isinstance(report, ModelReport):
        raise ReloadFailed("The agent is of another version.")
    return report


async def _asked(rooms: RoomsPort, room: str, request: ControlRequest, deadline_s: float) -> Report:
    try:
        async with asyncio.timeout(deadline_s):
            return await _ask_until_done(rooms, room, request)
    except TimeoutError:
        raise NoAnswer(f"The agent did not finish within {deadline_s:g} seconds.") from None


async def _ask_until_done(rooms: RoomsPort, room: str, request: ControlRequest) -> Report:
    loop = asyncio.get_running_loop()
    patience = loop.time() + READY_S
    answering: str | None = None
    while True:
        candidates = [answering] if answering else await rooms.agents(room)
        if not candidates:
            raise NoAnswer(f"There is no agent in room {room!r}.")
        answering = None
        for identity in candidates:
            match await rooms.ask(room, identity, request):
                case CallDone(report):
                    return report
                case CallFailed(reason, detail):
                    why = detail or f"{reason}. See its log."
                    raise ReloadFailed(f"The agent could not do it: {why}")
                case Page():
                    raise ReloadFailed("The agent is of another version.")
                case CallRunning():
                    answering, patience = identity, loop.time() + READY_S
                    break
                case None:
                    continue
        if answering is None:
            if loop.time() > patience:
                raise NoAnswer(f"No agent in room {room!r} answers to control requests.")
            await asyncio.sleep(RETRY_S)
