"""Keeps a session when its person leaves the room, and links it to whoever comes next.

By default LiveKit closes the session when its person leaves. The agent then stays in the room
without listening, and no other is sent, so a page that is loaded again within the room's departure
time (20 s by default) gets no answer. A session also listens to one identity only, while most pages
give a person a new one at every load. The end of the room still ends the job.
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


async def start_and_stay(
    session: AgentSession[Any], agent: Agent, room: rtc.Room, *, open_session_host: bool = False
) -> None:
    """Start `session` in `room` for as long as the room exists."""
    _link_to_next_person(session, room)
    # Without a voice the room has text alone; with an output for sound, `session.say` would raise.
    speaks = bool(agent.tts or session.tts)
    options = RoomOptions(close_on_disconnect=False, audio_output=speaks)
    await session.start(agent, room=room, room_options=options, session_host=open_session_host)


def _link_to_next_person(session: AgentSession[Any], room: rtc.Room) -> None:
    """Until the session ends, link it to another participant whenever its own has left."""
    loop = asyncio.get_running_loop()

    def link() -> None:
        try:
            linked = session.room_io
        except RuntimeError:  # the session has ended, or has not begun
            return
        if linked.linked_participant is None and (person := _find_person(room)) is not None:
            linked.set_participant(person.identity)

    def on_change(_: rtc.RemoteParticipant) -> None:
        loop.call_soon(link)  # after LiveKit's own handler, which links a person who comes back

    def detach(_: Any) -> None:
        room.off("participant_connected", on_change)
        room.off("participant_disconnected", on_change)

    room.on("participant_connected", on_change)
    room.on("participant_disconnected", on_change)
    session.on("close", detach)


def _find_person(room: rtc.Room) -> rtc.RemoteParticipant | None:
    """Return a participant that LiveKit would link to first: no agent and no agent's avatar."""
    if not room.isconnected():
        return None
    own_identity = room.local_participant.identity
    for participant in room.remote_participants.values():
        is_avatar = participant.attributes.get(ATTRIBUTE_PUBLISH_ON_BEHALF) == own_identity
        if participant.kind in DEFAULT_PARTICIPANT_KINDS and not is_avatar:
            return participant
    return None
