"""In a real room, what LiveKit writes down of a person's words is redacted as the owner wants."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from livekit import rtc
from livekit.agents import AgentSession, UserInputTranscribedEvent, room_io

from caal_node.agent import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.testing import ScriptedModel
from tests.stand_ins.livekit_server import LiveKit

pytestmark = pytest.mark.livekit

RULES = """\
[redaction]
personal = ["email"]
patterns = {customer = 'KD-\\d{6}'}
"""
HEARD_S = 20.0


async def test_a_caption_of_a_persons_words_has_placeholders(
    livekit: LiveKit, tmp_path: Path
) -> None:
    (tmp_path / "caal.toml").write_text(RULES, encoding="utf-8")
    settings = load_settings({"CAAL_CUES": "off"}, tmp_path / "caal.toml")
    agent = CaalAgent(settings=settings, tiers={}, warm=False)
    captions: asyncio.Queue[str] = asyncio.Queue()
    reading: set[asyncio.Task[None]] = set()

    def on_caption(reader: rtc.TextStreamReader, _: str) -> None:
        async def read() -> None:
            captions.put_nowait(await reader.read_all())

        reading.add(asyncio.create_task(read()))

    name = f"captions-{uuid.uuid4().hex[:8]}"
    person, here, model = rtc.Room(), rtc.Room(), ScriptedModel("Fine.")
    person.register_text_stream_handler("lk.transcription", on_caption)
    session: AgentSession[Any] = AgentSession(
        llm=model, vad=None, turn_handling={"turn_detection": None}
    )
    try:
        async with asyncio.timeout(HEARD_S):
            await person.connect(livekit.url, livekit.token(name, "ann"))
            await here.connect(livekit.url, livekit.token(name, "agent", agent=True))
            options = room_io.RoomOptions(audio_input=False, audio_output=False)
            await session.start(agent, room=here, room_options=options)
            said = "I am KD-123456, ann@example.org. Call me."
            session.emit(
                "user_input_transcribed", UserInputTranscribedEvent(transcript=said, is_final=True)
            )
            caption = await captions.get()
    finally:
        await session.aclose()
        await here.disconnect()
        await person.disconnect()
        await model.aclose()
    assert caption == "I am [customer], [email]. Call me."
