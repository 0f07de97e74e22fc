"""In a real room a front end's button says yes to a call: its own person's, and nobody else's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from livekit import rtc

from caal_node.cli.processes.worker import WorkerProcess
from caal_node.core.events import (
    ConfirmationAsked,
    ConfirmationEnded,
    Event,
    from_json,
)
from caal_node.room.front_end import STATE
from tests.stand_ins.livekit_server import LiveKit
from tests.stand_ins.stand_in_model import Asked, Call, Reply, StandInModel

pytestmark = [pytest.mark.livekit, pytest.mark.alone]

ROOM = "button"
WAIT_S = 120.0
"""Seconds for the agent to come, or an event; some on an idle machine."""
AGENT = '''
from livekit.agents import function_tool
from caal_node import CaalAgent, effect

class Home(CaalAgent):
    @function_tool
    @effect("destructive")
    async def unlock_door(self, door: str) -> str:
        """Unlock a door."""
        return f"unlocked {door}"
'''


def reply(asked: Asked) -> Reply:
    last = asked.json["messages"][-1]
    if last["role"] == "tool":
        return ["They are open."]
    return [Call("unlock_door", {"door": door}, id=door) for door in ("front", "back")]


class Guest:
    """A participant who reads the room's events, types, and has a button."""

    def __init__(self) -> None:
        self.room = rtc.Room()
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        self.agent_is_ready = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self.room.register_text_stream_handler("caal.tools", self._on_text)
        self.room.on("participant_attributes_changed", self._look)
        self.room.on("participant_connected", self._look)

    def _look(self, *_: Any) -> None:
        if any(p.attributes.get(STATE) == "idle" for p in self.room.remote_participants.values()):
            self.agent_is_ready.set()

    def _on_text(self, reader: rtc.TextStreamReader, _: str) -> None:
        async def read() -> None:
            self.events.put_nowait(from_json(await reader.read_all()))

        self._tasks.add(task := asyncio.create_task(read()))
        task.add_done_callback(self._tasks.discard)

    async def until(self, kind: type[Event]) -> Any:
        async with asyncio.timeout(WAIT_S):
            while not isinstance(event := await self.events.get(), kind):
                pass
        return event

    async def press(self, asked: ConfirmationAsked, **changed: Any) -> None:
        names = {"call_id": asked.call_id, "arguments_hash": asked.arguments_hash}
        await self.send(json.dumps({**names, "yes": True, **changed}), "caal.confirm")

    async def send(self, text: str, topic: str) -> None:
        await self.room.local_participant.send_text(text, topic=topic)


@asynccontextmanager
async def joined(livekit: LiveKit, identity: str) -> AsyncGenerator[Guest]:
    guest = Guest()
    await guest.room.connect(livekit.url, livekit.token(ROOM, identity))
    try:
        yield guest
    finally:
        await guest.room.disconnect()


async def test_the_button_of_the_person_who_is_asked_confirms(
    livekit: LiveKit, tmp_path: Path
) -> None:
    (tmp_path / "home.py").write_text(AGENT, encoding="utf-8")
    async with StandInModel(answer=reply) as model:
        env = {
            "LIVEKIT_URL": livekit.url,
            "LIVEKIT_API_KEY": livekit.key,
            "LIVEKIT_API_SECRET": livekit.secret,
            "OLLAMA_HOST": model.url,
            "CAAL_MODEL": model.model,
            "CAAL_TOOL_CALLS": "native",
            "CAAL_AGENT": "home:Home",
            "CAAL_STT": "none",
            "CAAL_TTS": "none",
            "CAAL_VAD": "none",
        }
        async with WorkerProcess(tmp_path, env), joined(livekit, "owner") as owner:
            async with asyncio.timeout(WAIT_S):
                await owner.agent_is_ready.wait()
            async with joined(livekit, "guest") as guest:
                await owner.send("unlock the door", "lk.chat")
                asked: ConfirmationAsked = await owner.until(ConfirmationAsked)
                assert asked.words == "Shall I unlock door: front?"
                await guest.press(asked)
                await guest.send("yes", "lk.chat")
                await owner.press(asked, arguments_hash="0" * 32)
                # What a guest sends arrives before what the owner sends now, and counts nothing.
                await owner.send("Yes, we are watching the match", "lk.chat")
                await owner.press(asked)
                first: ConfirmationEnded = await owner.until(ConfirmationEnded)
                other: ConfirmationAsked = await owner.until(ConfirmationAsked)
                while (
                    other.call_id == asked.call_id
                ):  # words that were no answer had it asked again
                    other = await owner.until(ConfirmationAsked)
                assert other.words == "Shall I unlock door: back?"
                await owner.press(other, arguments_hash=asked.arguments_hash)
                await owner.press(other, yes=False)
                second: ConfirmationEnded = await owner.until(ConfirmationEnded)
    assert (first.answer, first.by, first.call_id) == ("yes", "button", asked.call_id)
    assert (second.answer, second.by, second.call_id) == ("no", "button", other.call_id)
