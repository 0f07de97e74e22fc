"""A person leaves a real room and comes back, as by loading a page anew, and is answered."""

# pyright: reportUnknownMemberType=false
# LiveKit leaves the event types of its rooms and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from livekit import rtc
from livekit.agents import Agent, AgentSession

from caal_node.room.other_participants import start_and_stay
from caal_node.testing import ScriptedModel
from tests.stand_ins.livekit_server import LiveKit

pytestmark = pytest.mark.livekit

PATIENCE_S = 40.0
"""For each step; one that takes so long has failed."""


@pytest.mark.parametrize("identities", [("ada", "ada"), ("ada-1", "ada-2")])
async def test_a_person_who_loads_the_page_anew_is_answered(
    livekit: LiveKit, identities: tuple[str, str]
) -> None:
    name = f"back-{uuid.uuid4().hex[:8]}"
    room = rtc.Room()
    await room.connect(livekit.url, livekit.token(name, "agent", agent=True))
    session: AgentSession[None] = AgentSession(
        llm=ScriptedModel("One.", "Two."), vad=None, turn_handling={"turn_detection": None}
    )
    said: asyncio.Queue[str | None] = asyncio.Queue()

    def on_item(event: Any) -> None:
        if event.item.type == "message" and event.item.role == "assistant":
            said.put_nowait(event.item.text_content)

    session.on("conversation_item_added", on_item)
    try:
        await start_and_stay(session, Agent(instructions="Help."), room)
        session.output.set_audio_enabled(False)  # there is no voice here
        for identity, answer in zip(identities, ("One.", "Two."), strict=True):
            async with asyncio.timeout(PATIENCE_S):
                assert await _visit(livekit, room, identity, said) == answer
    finally:
        await session.aclose()
        await room.disconnect()


async def _visit(
    livekit: LiveKit, room: rtc.Room, identity: str, said: asyncio.Queue[str | None]
) -> str | None:
    """Comes, types, and leaves when it is answered."""
    came, left, person = asyncio.Event(), asyncio.Event(), rtc.Room()

    def on_came(_: rtc.RemoteParticipant) -> None:
        # The session's own handler was there first.
        asyncio.get_running_loop().call_soon(came.set)

    def on_left(_: rtc.RemoteParticipant) -> None:
        left.set()

    room.on("participant_connected", on_came)
    room.on("participant_disconnected", on_left)
    try:
        await person.connect(livekit.url, livekit.token(room.name, identity))
        await came.wait()
        await person.local_participant.send_text("Hello?", topic="lk.chat")
        return await said.get()
    finally:
        await person.disconnect()
        await left.wait()
        room.off("participant_connected", on_came)
        room.off("participant_disconnected", on_left)
