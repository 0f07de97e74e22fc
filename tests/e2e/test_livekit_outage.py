"""The LiveKit server is killed in the middle of a turn, and started again without its rooms."""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the event types of its rooms and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from livekit import rtc
from livekit.agents import AgentSession

from caal_node.agent import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.core.tool_spec import ToolSpec
from caal_node.models.llm import LLM
from caal_node.room.other_participants import start_and_stay
from tests.stand_ins.conversation import NOWHERE, FakeTier
from tests.stand_ins.livekit_server import KillableServer, find_server
from tests.stand_ins.stand_in_model import Call, StandInModel

pytestmark = pytest.mark.livekit

PATIENCE_S = 40.0
"""For each step; one that takes so long has failed."""
AWAY_S = 1.0


class Person:
    """Somebody in the room who types and reads."""

    def __init__(self) -> None:
        self.room = rtc.Room()
        self.read: asyncio.Queue[str] = asyncio.Queue()
        self._reading: set[asyncio.Task[None]] = set()
        self.room.register_text_stream_handler("lk.transcription", self._on_text)

    def _on_text(self, reader: rtc.TextStreamReader, _: str) -> None:
        task = asyncio.create_task(self._note(reader))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _note(self, reader: rtc.TextStreamReader) -> None:
        self.read.put_nowait(await reader.read_all())

    async def says(self, words: str) -> None:
        await self.room.local_participant.send_text(words, topic="lk.chat")

    async def reads(self) -> str:
        async with asyncio.timeout(PATIENCE_S):
            return await self.read.get()


async def sees(room: rtc.Room, identity: str) -> None:
    """Returns once the room is connected and that participant is in it."""
    async with asyncio.timeout(PATIENCE_S):
        # A reconnection has several events, in no fixed order.
        while not (room.isconnected() and identity in room.remote_participants):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.2)  # for LiveKit's own handlers


async def sees_nobody(room: rtc.Room) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while room.remote_participants:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.02)


async def history(session: AgentSession[None], messages: int) -> list[str | None]:
    """What was said, once so much of it is kept: an answer is read before it is."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            said = [i.text_content for i in session.history.items if i.type == "message"]
            if len(said) >= messages:
                return said
            await asyncio.sleep(0.02)


@pytest.fixture
async def server() -> AsyncIterator[KillableServer]:
    if (binary := find_server()) is None:
        pytest.skip("no livekit-server; tests/conftest.py says how to get one")
    own = KillableServer(binary)
    try:
        await asyncio.to_thread(own.start)
        yield own
    finally:
        await asyncio.to_thread(own.close)


@asynccontextmanager
async def agent_in(room: rtc.Room, model: StandInModel, tier: FakeTier) -> AsyncIterator[Any]:
    settings = load_settings({"CAAL_TOOL_TIMEOUT": "60"}, NOWHERE)
    llm = LLM(model.model, "ollama", model.url, native_tools=True)
    agent = CaalAgent(settings=settings, tiers={"n8n": tier}, warm=False)
    session: AgentSession[None] = AgentSession(
        llm=llm, vad=None, turn_handling={"turn_detection": None}
    )
    try:
        await start_and_stay(session, agent, room)
        session.output.set_audio_enabled(False)  # there is no voice here
        yield session
    finally:
        await session.aclose()
        await llm.aclose()


async def test_a_turn_outlives_the_rooms_server_and_so_does_the_next(
    server: KillableServer,
) -> None:
    begun, back = asyncio.Event(), asyncio.Event()

    async def held(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        begun.set()
        await back.wait()
        return {"forecast": "sunny"}

    script = [Call("get_weather", {"city": "Paris"})], ["It is sunny."], ["I am still here."]
    name, room, person = f"outage-{uuid.uuid4().hex[:8]}", rtc.Room(), Person()
    livekit = server.livekit
    try:
        await room.connect(livekit.url, livekit.token(name, "agent", agent=True))
        async with (
            StandInModel(*script) as model,
            agent_in(room, model, FakeTier(answer=held)) as session,
        ):
            await person.room.connect(livekit.url, livekit.token(name, "ada"))
            await sees(room, "ada")
            await person.says("How is the weather in Paris?")
            async with asyncio.timeout(PATIENCE_S):
                await begun.wait()
            await asyncio.to_thread(server.kill)
            await sees_nobody(room)
            await asyncio.sleep(AWAY_S)
            await asyncio.to_thread(server.start)
            await sees(person.room, "agent")
            await sees(room, "ada")
            back.set()
            assert await person.reads() == "It is sunny."
            await person.says("Are you still there?")
            assert await person.reads() == "I am still here."
            said = await history(session, 4)
            tracks = {track.name for track in room.local_participant.track_publications.values()}
        assert said == [
            "How is the weather in Paris?",
            "It is sunny.",
            "Are you still there?",
            "I am still here.",
        ]
        assert "caal-cues" in tracks
    finally:
        await person.room.disconnect()
        await room.disconnect()
