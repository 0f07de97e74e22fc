"""A session in a real room: a typed turn runs a tool, and a participant hears and reads of it."""

from __future__ import annotations

import asyncio
import json
import time
import uuid

import pytest
from livekit import rtc
from livekit.agents import Agent, AgentSession, function_tool, room_io

from caal_node.room.cue_player import TRACK_NAME, CueTrack
from caal_node.room.cues import render
from caal_node.room.front_end import TOPIC, Attributes, Transcript
from caal_node.room.presence import Presence, ToolOrigin
from caal_node.testing import ScriptedCall, ScriptedModel
from tests.stand_ins.livekit_server import LiveKit
from tests.stand_ins.room_ear import Ear, likeness

pytestmark = [pytest.mark.livekit, pytest.mark.alone]


class Clerk(Agent):
    def __init__(self) -> None:
        super().__init__(instructions="Help.")
        self.seen = asyncio.Event()

    @function_tool
    async def look_up(self, name: str) -> str:
        """Look somebody up."""
        await self.seen.wait()
        return f"{name} is in"


async def test_a_turn_with_a_tool_is_heard_and_read_in_the_room(livekit: LiveKit) -> None:
    name = f"presence-{uuid.uuid4().hex[:8]}"
    async with Ear(livekit, name, TRACK_NAME, identity="person") as person:
        messages: asyncio.Queue[rtc.TextStreamReader] = asyncio.Queue()
        faces: list[dict[str, str]] = []
        clerk = Clerk()

        async def message() -> dict[str, object]:
            # In the order they began: a later one may be read to its end before.
            return json.loads(await (await messages.get()).read_all())

        def on_stream(reader: rtc.TextStreamReader, identity: str) -> None:
            messages.put_nowait(reader)

        def on_attributes(changed: dict[str, str], participant: rtc.Participant) -> None:
            faces.append({k: v for k, v in participant.attributes.items() if k[:5] == "caal."})
            if participant.attributes.get("caal.tool"):
                clerk.seen.set()

        person.room.register_text_stream_handler(TOPIC, on_stream)
        person.room.on("participant_attributes_changed", on_attributes)

        room = rtc.Room()
        await room.connect(livekit.url, livekit.token(name, "agent", agent=True))
        session: AgentSession[None] = AgentSession(
            llm=ScriptedModel([ScriptedCall("look_up", {"name": "Ada"})], "Ada is in."),
            vad=None,
            turn_handling={"turn_detection": None},
        )
        transcript, attributes = Transcript.of_room(room), Attributes.of_room(room)
        attributes.warmed()
        cues = await CueTrack.publish(room)
        presence = Presence(
            session,
            describe=lambda _: ToolOrigin("agent", "Clerk"),
            listeners=[transcript, attributes],
            sink=cues,
        )
        try:
            await session.start(
                clerk,
                room=room,
                room_options=room_io.RoomOptions(audio_input=False, audio_output=False),
            )
            await person.hears()
            asked = time.perf_counter()
            await person.room.local_participant.send_text("Is Ada in?", topic="lk.chat")
            told: list[dict[str, object]] = []
            async with asyncio.timeout(60):
                while not (told and told[-1]["type"] == "turn_ended"):
                    told.append(await message())
                # The newest state comes beside the messages, and may come after them.
                while not (faces and faces[-1] == {"caal.state": "idle"}):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            turn_s = time.perf_counter() - asked
            heard = await person.until(turn_s + 2.0, asked)
        finally:
            await session.aclose()
            await presence.aclose()
            await transcript.aclose()
            await attributes.aclose()
            await cues.aclose()
            await room.disconnect()

        # On a busy machine the wait may be long enough for ticks.
        told = [m for m in told if m.get("kind") != "tick"]
        assert [m["type"] for m in told] == [
            "user",
            "tool_call_started",
            "cue",
            "tool_call_ended",
            "turn_ended",
        ]
        assert told[0]["text"] == "Is Ada in?"
        assert told[1]["tool"] == "look_up"
        assert told[1]["arguments"] is None
        assert told[3]["outcome"] == "ok"
        assert likeness(heard, render("tool")) > 0.75
        # LiveKit sets an attribute of its own on the same participant; ours stay beside it.
        assert {"caal.state": "tool", "caal.tool": "look_up"} in faces
