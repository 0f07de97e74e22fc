"""A guest and an owner in real rooms: what rules see of them is what their tokens say."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from pathlib import Path

import pytest
from livekit import api, rtc
from livekit.agents import AgentSession, function_tool, room_io

from caal_node.agent import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.core.events import Event, ToolCallEnded, TurnEnded
from caal_node.testing import ScriptedCall, ScriptedModel
from tests.stand_ins.livekit_server import LiveKit

pytestmark = pytest.mark.livekit

TURN_S = 60.0
RULES = """\
[tools]
mode = "open"

[[tools.rules]]
tools = ["unlock_*"]
rooms = ["nursery-*"]
then = "deny"

[[tools.rules]]
tools = ["unlock_*"]
attributes = {role = "guest"}
then = "deny"

[[tools.rules]]
tools = ["unlock_*"]
participants = ["ann"]
then = "allow"

[[tools.rules]]
tools = ["unlock_*"]
then = "deny"
"""
UNLOCK = ScriptedCall("unlock_door", {"door": "front"})


class House(CaalAgent):
    def __init__(self, folder: Path, **options: object) -> None:
        path = folder / "caal.toml"
        path.write_text(RULES, encoding="utf-8")
        self.unlocked: list[str] = []
        settings = load_settings({"CAAL_CUES": "off"}, path)
        super().__init__(settings=settings, tiers={}, warm=False, **options)  # type: ignore[arg-type]

    @function_tool
    async def unlock_door(self, door: str) -> str:
        """Unlock a door."""
        self.unlocked.append(door)
        return "open"

    @function_tool
    async def get_weather(self) -> str:
        """Say what the weather is."""
        return "sunny"


async def one_turn(
    livekit: LiveKit,
    folder: Path,
    *,
    room: str,
    identity: str,
    role: str,
    model: ScriptedModel,
) -> tuple[House, list[Event]]:
    """Let one person, with a token as a server makes it, type one sentence to the agent."""
    events: list[Event] = []
    over = asyncio.Event()

    def note(event: Event) -> None:
        events.append(event)
        if isinstance(event, TurnEnded):
            over.set()

    name = f"{room}-{uuid.uuid4().hex[:8]}"
    token = (
        api.AccessToken(livekit.key, livekit.secret)
        .with_identity(identity)
        .with_attributes({"role": role})
        .with_grants(api.VideoGrants(room_join=True, room=name))
        .with_ttl(timedelta(minutes=10))
        .to_jwt()
    )
    person, here = rtc.Room(), rtc.Room()
    agent = House(folder, on_event=note)
    session: AgentSession[None] = AgentSession(
        llm=model, vad=None, turn_handling={"turn_detection": None}
    )
    try:
        async with asyncio.timeout(TURN_S):
            await person.connect(livekit.url, token)
            await here.connect(livekit.url, livekit.token(name, "agent", agent=True))
            options = room_io.RoomOptions(audio_input=False, audio_output=False)
            await session.start(agent, room=here, room_options=options)
            await person.local_participant.send_text("Open the front door.", topic="lk.chat")
            await over.wait()
    finally:
        await session.aclose()
        await here.disconnect()
        await person.disconnect()
        await model.aclose()
    return agent, events


@pytest.mark.parametrize(
    ("identity", "role", "opened", "line"),
    [
        ("ann", "owner", ["front"], "line 14"),
        ("ann", "guest", [], "line 9"),
        ("bob", "owner", [], "line 19"),
    ],
)
async def test_the_door_opens_for_its_owner_alone(
    livekit: LiveKit, tmp_path: Path, identity: str, role: str, opened: list[str], line: str
) -> None:
    model = ScriptedModel([UNLOCK], "So be it.")
    agent, events = await one_turn(
        livekit, tmp_path, room="hall", identity=identity, role=role, model=model
    )
    assert agent.unlocked == opened
    (ended,) = [event for event in events if isinstance(event, ToolCallEnded)]
    (decision,) = ended.decisions
    assert decision.line == f"{tmp_path / 'caal.toml'}, {line}"
    assert ended.outcome == ("ok" if opened else "refused")
    refused = "this person may not use it" in str(model.requests[1].items)
    assert refused is not bool(opened)


async def test_what_a_room_forbids_to_all_its_model_does_not_see(
    livekit: LiveKit, tmp_path: Path
) -> None:
    model = ScriptedModel([ScriptedCall("get_weather")], "It is sunny.")
    agent, _ = await one_turn(
        livekit, tmp_path, room="nursery", identity="ann", role="owner", model=model
    )
    shown = [{tool["function"]["name"] for tool in asked.tools} for asked in model.requests]
    assert shown == [{"get_weather"}, {"get_weather"}]
    assert agent.unlocked == []
