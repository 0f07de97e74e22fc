"""This is what the control API needs of a LiveKit server's rooms, and what can go wrong there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar, Final, Protocol, Self

from caal_node.control.rpc import RpcAnswer, RpcRequest
from caal_node.core.errors import CaalError

MAX_NAMED: Final = 10
"""This many rooms are named to a caller who has to choose."""
MAX_LOOKED_AT: Final = 20
"""This many rooms are asked for their agents when none is named."""


class ControlError(CaalError):
    """A request cannot be done; `str()` is for the caller, `status` is HTTP's."""

    kind = "control"
    status: ClassVar[int] = 500


class RoomUnknown(ControlError):
    status = 404


class SeveralRooms(ControlError):
    status = 409


class AgentFailed(ControlError):
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


class RoomServer(Protocol):
    """The rooms of one LiveKit server. Every method may raise LiveKitUnreachable or -Refused."""

    async def live(self, name: str | None = None) -> Sequence[str]:
        """Return the names of the open rooms, empty ones too; with `name`, that one or none."""
        ...

    async def agents(self, room: str) -> Sequence[str]:
        """Return the identities of the agents in a room."""
        ...

    async def ask(self, room: str, identity: str, request: RpcRequest) -> RpcAnswer | None:
        """Send the request, and return its answer; None where nobody of that identity listens."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...


async def choose_room(rooms: RoomServer, name: str | None) -> str:
    """Return the room that is meant: the named one, or the only live one that has an agent.

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
    agents = await asyncio.gather(*(rooms.agents(room) for room in looked_at))
    with_agent = [room for room, there in zip(looked_at, agents, strict=True) if there]
    if len(looked_at) == len(live):
        if len(with_agent) == 1:
            return with_agent[0]
        if not with_agent:
            raise RoomUnknown("There is no agent in any live room.")
    named = ", ".join((with_agent or live)[:MAX_NAMED])
    raise SeveralRooms(f"Several rooms are live; name one as room_name: {named}.")
