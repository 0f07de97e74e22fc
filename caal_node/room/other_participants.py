"""Keeps a session for its own participant: closed to others in the room, and linked to them again
when they come back.

LiveKit opens this to everyone in the room by default:

- The session host (`AgentSession.start(session_host=...)`): whoever is in the room can read every
  argument and result, the instructions and the history, type as the person whom the agent hears,
  and mute the agent. LiveKit makes the host before it sets up the agent's toolsets and starts it
  after that, so a host that is taken away by then has sent and answered nothing.
- The buffer of what a person says while they connect: anybody may send one for anybody's track.
- The job of a room: it ends when a participant leaves who gave themselves the mark of LiveKit's
  simulator.
"""

# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# LiveKit has no public way to close them. pyproject.toml keeps to versions that were read.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# LiveKit leaves the event types of its rooms and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from livekit import rtc
from livekit.agents import Agent, AgentSession, get_job_context
from livekit.agents.job import DEFAULT_PARTICIPANT_KINDS
from livekit.agents.types import ATTRIBUTE_PUBLISH_ON_BEHALF
from livekit.agents.voice.room_io import RoomOptions
from livekit.agents.voice.room_io._pre_connect_audio import PRE_CONNECT_AUDIO_BUFFER_STREAM

# Waits for a room, since LiveKit starts an agent before its room is connected.


async def connected(room: rtc.Room) -> None:
    """Wait until `room` is connected, without a deadline: the agent's end cancels the wait."""
    if room.isconnected():
        return
    is_connected = asyncio.Event()

    def on_state(state: rtc.ConnectionState) -> None:
        if room.isconnected():
            is_connected.set()

    room.on("connection_state_changed", on_state)
    try:
        await is_connected.wait()
    finally:
        room.off("connection_state_changed", on_state)


# Keeps a session when its person leaves the room, and links it to whoever comes next.
#
# By default LiveKit closes the session when its person leaves. The agent then stays in the room
# without listening, and no other is sent, so a page that is loaded again within the room's
# departure time (20 s by default) gets no answer. A session also listens to one identity only,
# while most pages give a person a new one at every load. The end of the room still ends the job.


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


logger = logging.getLogger("caal_node.room")

CLOSED: Final = (
    "LiveKit's session host is closed, as everyone in the room could use it; "
    "session.start(..., session_host=False) makes none, CAAL_ROOM_SEES=everything keeps it"
)


async def close_to_others(session: AgentSession[Any], *, open_session_host: bool) -> None:
    """Close host and buffer in the room of `session`. If that cannot be done, the session ends."""
    try:
        io = session._room_io
        if io is None:  # the console's host is on this machine alone
            return
        if open_session_host:
            logger.warning(
                "CAAL_ROOM_SEES=everything: everyone in the room can read arguments, "
                "results, instructions and the history, and drive this session"
            )
        else:
            await _close_session_host(session)
        _hear_linked_participant_alone(session, io.room)
    except AttributeError as error:
        # A version of LiveKit that keeps them elsewhere; it would serve them without a word.
        logger.error(
            "this LiveKit's session host cannot be seen (%s), so the session ends; install a "
            "version of livekit-agents that caal-node lists",
            error,
        )
        session.shutdown(drain=False)


async def keep_job_alive(room: rtc.Room) -> None:
    """Once `room` is connected, let nobody who leaves it end the job, but in a simulation."""
    job = get_job_context(required=False)
    if job is None or job.room is not room or job.simulation_context() is not None:
        return
    await connected(room)
    await job.connect()  # it returns once the one that connected has added its listeners
    room.off("participant_disconnected", job._on_simulator_disconnected)


async def _close_session_host(session: AgentSession[Any]) -> None:
    host = session._session_host
    session._session_host = None
    if host is None:
        return
    logger.info(CLOSED)
    # A host that has not started yet would keep its listeners, and a queue that nobody empties.
    host._started = True
    await host.aclose()


def _hear_linked_participant_alone(session: AgentSession[Any], room: rtc.Room) -> None:
    """Drop buffers of speech from anybody but the participant whom the session hears."""
    take = room._byte_stream_handlers.get(PRE_CONNECT_AUDIO_BUFFER_STREAM)
    if take is None or isinstance(take, _FromLinkedParticipant):
        return
    room.unregister_byte_stream_handler(PRE_CONNECT_AUDIO_BUFFER_STREAM)
    room.register_byte_stream_handler(
        PRE_CONNECT_AUDIO_BUFFER_STREAM, _FromLinkedParticipant(session, take)
    )


class _FromLinkedParticipant:
    """Hands LiveKit the streams of the linked participant alone, as LiveKit does with text."""

    def __init__(
        self, session: AgentSession[Any], take: Callable[[rtc.ByteStreamReader, str], None]
    ) -> None:
        self._session = session
        self._take = take
        self._has_warned = False

    def __call__(self, reader: rtc.ByteStreamReader, identity: str) -> None:
        io = self._session._room_io
        linked = None if io is None else io.linked_participant
        if linked is not None and identity != linked.identity:
            if not self._has_warned:  # whoever sends one may send thousands
                logger.warning("speech was sent by somebody whom this session does not hear")
            self._has_warned = True
            reader.close()
            return
        self._take(reader, identity)
