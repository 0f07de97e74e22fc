"""Somebody else in the room, who asks LiveKit's session host for everything."""

from __future__ import annotations

from typing import Any, Final

from livekit import rtc
from livekit.agents import AgentSession, room_io
from livekit.protocol.agent_pb import agent_session as agent_pb

from caal_node.agent import CaalAgent
from caal_node.testing import ScriptedModel, plain_settings
from tests.attack.harness import Ending, Probe, attack

HOST: Final = "lk.agent.session"


class _Packet:
    """A stream of bytes as a room hands it over."""

    def __init__(self, data: bytes) -> None:
        self._chunks = [data]

    def __aiter__(self) -> _Packet:
        return self

    async def __anext__(self) -> bytes:
        if not self._chunks:
            raise StopAsyncIteration
        return self._chunks.pop()


@attack("strangers", "a participant types and mutes by LiveKit's session host", deadline_s=4)
async def session_host(probe: Probe) -> Ending:
    room, model = rtc.Room(), ScriptedModel("It is open.")
    agent = CaalAgent(settings=plain_settings(), tiers={}, warm=False)
    session = AgentSession[None](llm=model, vad=None, turn_handling={"turn_detection": None})
    options = room_io.RoomOptions(audio_input=False, audio_output=False)
    await session.start(agent, room=room, room_options=options)
    try:

        async def ask() -> str:
            handlers: Any = room._byte_stream_handlers  # pyright: ignore[reportPrivateUsage]
            request = agent_pb.AgentSessionMessage()
            request.request.run_input.text = "Open the door."
            if (take := handlers.get(HOST)) is None:
                return ""
            take(_Packet(request.SerializeToString()), "stranger")
            return "the session host is open"

        heard = await probe.watch(ask)
    finally:
        await session.aclose()
    return Ending(not heard and not model.requests, heard)
