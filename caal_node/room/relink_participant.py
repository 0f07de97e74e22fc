"""A session that outlives a person's page: who comes back is heard, and who comes next too.

LiveKit's own default closes the session when its person leaves. The agent is then in the room
still, deaf, and no other is sent: a page that is loaded anew within the room's departure time (20 s
by default) finds nobody. And a session listens to one identity, while most pages give a person a
new one at every load. The room's own end still ends the job.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# LiveKit leaves the event types of its rooms and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
from typing import Any

from livekit import rtc
from livekit.agents import Agent, AgentSession
from livekit.agents.job import DEFAULT_PARTICIPANT_KINDS
from livekit.agents.types import ATTRIBUTE_PUBLISH_ON_BEHALF
from livekit.agents.voice.room_io import RoomOptions


async def start_and_stay(session: AgentSession[Any], agent: Agent, room: rtc.Room) -> None:
    """Start `session` in `room`, for as long as the room is there."""
    _listen_to_the_next(session, room)
    await session.start(agent, room=room, room_options=RoomOptions(close_on_disconnect=False))


def _listen_to_the_next(session: AgentSession[Any], room: rtc.Room) -> None:
    """Until the session ends, link it to whoever is there when its own person is not."""
    loop = asyncio.get_running_loop()

    def link() -> None:
        try:
            linked = session.room_io
        except RuntimeError:  # it ended, or has not begun
            return
        if linked.linked_participant is None and (person := _person(room)) is not None:
            linked.set_participant(person.identity)

    def moved(_: rtc.RemoteParticipant) -> None:
        loop.call_soon(link)  # behind LiveKit's own handler, which links who comes back

    def leave(_: Any) -> None:
        room.off("participant_connected", moved)
        room.off("participant_disconnected", moved)

    room.on("participant_connected", moved)
    room.on("participant_disconnected", moved)
    session.on("close", leave)


def _person(room: rtc.Room) -> rtc.RemoteParticipant | None:
    """Somebody whom LiveKit would listen to, were they the first: no agent, no agent's avatar."""
    if not room.isconnected():
        return None
    us = room.local_participant.identity
    for one in room.remote_participants.values():
        avatar = one.attributes.get(ATTRIBUTE_PUBLISH_ON_BEHALF) == us
        if one.kind in DEFAULT_PARTICIPANT_KINDS and not avatar:
            return one
    return None
