"""Timers in a real room: one that rings is heard, and what nobody heard is told to who comes."""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the types of its sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from livekit import rtc
from livekit.agents import AgentSession, SpeechCreatedEvent, room_io
from livekit.agents.voice import SpeechHandle

from caal_node.agent import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.core.events import CuePlayed, Event, Spoken
from caal_node.room.cue_player import TRACK_NAME
from caal_node.room.cues import render
from caal_node.testing import ScriptedCall, ScriptedModel
from tests.stand_ins.livekit_server import LiveKit
from tests.stand_ins.room_ear import Ear, likeness

pytestmark = pytest.mark.livekit

RINGS_S = 60.0
"""Seconds for all that a test waits for; a few on a machine that is idle."""


@dataclass
class Kitchen:
    """An agent with timers in a real room, and what it said."""

    name: str
    room: rtc.Room
    events: list[Event] = field(default_factory=list[Event])
    speeches: list[SpeechHandle] = field(default_factory=list[SpeechHandle])
    _more: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def note(self, event: Event) -> None:
        async with self._more:
            self.events.append(event)
            self._more.notify_all()

    async def sees_somebody(self) -> None:
        """Wait until the agent knows of a person, which takes seconds where it came first."""
        async with asyncio.timeout(RINGS_S):
            while not self.room.remote_participants:  # noqa: ASYNC110 - LiveKit has no condition
                await asyncio.sleep(0.1)

    async def until_said(self, *words: str) -> None:
        """Wait until some of these words are said."""
        try:
            async with asyncio.timeout(RINGS_S), self._more:
                await self._more.wait_for(
                    lambda: any(some in each for each in self.said() for some in words)
                )
        except TimeoutError:
            raise AssertionError(f"{words} was not said, but: {self.events}") from None

    async def until_heard_out(self) -> None:
        """Wait for the end of what is said now: a yes before it would be too early."""
        async with asyncio.timeout(RINGS_S):
            await self.speeches[-1].wait_for_playout()

    def said(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Spoken)]


@asynccontextmanager
async def kitchen(livekit: LiveKit, folder: Path, model: ScriptedModel) -> AsyncGenerator[Kitchen]:
    table = "[toolsets.timers]\nrequests = true\n"
    (folder / "caal.toml").write_text(table, encoding="utf-8")
    here, name = rtc.Room(), f"kitchen-{uuid.uuid4().hex[:8]}"
    place = Kitchen(name, here)
    agent = CaalAgent(
        settings=load_settings({}, folder / "caal.toml"), tiers={}, warm=False, on_event=place.note
    )
    session: AgentSession[None] = AgentSession(
        llm=model, vad=None, turn_handling={"turn_detection": None}
    )

    def created(event: SpeechCreatedEvent) -> None:
        place.speeches.append(event.speech_handle)

    session.on("speech_created", created)
    await here.connect(livekit.url, livekit.token(place.name, "agent", agent=True))
    try:
        options = room_io.RoomOptions(
            audio_input=False, audio_output=False, close_on_disconnect=False
        )
        await session.start(agent, room=here, room_options=options)
        yield place
    finally:
        await session.aclose()
        await here.disconnect()
        await model.aclose()


async def test_a_timer_rings_in_its_room(livekit: LiveKit, tmp_path: Path) -> None:
    model = ScriptedModel([ScriptedCall("set_timer", {"length": "3 seconds", "name": "pasta"})])
    async with (
        kitchen(livekit, tmp_path, model) as place,
        Ear(livekit, place.name, TRACK_NAME, identity="person") as person,
    ):
        await person.hears()
        await place.sees_somebody()
        asked = time.perf_counter()
        await person.room.local_participant.send_text("Pasta, 3 seconds.", topic="lk.chat")
        await place.until_said("Your pasta timer is done.")
        heard = await person.until(time.perf_counter() - asked + 0.5, asked)
    assert "The pasta timer is set for 3 seconds." in place.said()
    assert CuePlayed("ring") in place.events
    assert likeness(heard, render("ring")) > 0.75


async def test_who_comes_back_is_told_what_rang_meanwhile(livekit: LiveKit, tmp_path: Path) -> None:
    model = ScriptedModel([ScriptedCall("set_reminder", {"text": "the oven", "when": "in 6 s"})])
    async with kitchen(livekit, tmp_path, model) as place:
        async with Ear(livekit, place.name, TRACK_NAME, identity="person") as person:
            await place.sees_somebody()
            await person.room.local_participant.send_text("The oven, 6 s.", topic="lk.chat")
            await place.until_said("I'll remind you")
        await asyncio.sleep(9)  # real seconds, since the server's rooms know no others
        assert not any("oven" in words for words in place.said()[1:])
        async with Ear(livekit, place.name, TRACK_NAME, identity="person"):
            await place.until_said("While I couldn't reach you, you had a reminder at")


async def test_a_request_kept_for_later_is_answered_in_its_room(
    livekit: LiveKit, tmp_path: Path
) -> None:
    kept = {"request": "tell me which timers are set", "when": "in 3 seconds"}
    model = ScriptedModel([ScriptedCall("schedule", kept)], [ScriptedCall("list_timers", {})])
    async with (
        kitchen(livekit, tmp_path, model) as place,
        Ear(livekit, place.name, TRACK_NAME, identity="person") as person,
    ):
        await place.sees_somebody()
        words = "Tell me in 3 seconds which timers are set."
        await person.room.local_participant.send_text(words, topic="lk.chat")
        await place.until_said("Shall I schedule")
        await place.until_heard_out()
        await person.room.local_participant.send_text("yes", topic="lk.chat")
        await place.until_said("I'll do this at")
        await place.until_said("As you asked earlier: tell me which timers are set.")
        await place.until_said("Nothing is set.")
    assert CuePlayed("ring") in place.events
