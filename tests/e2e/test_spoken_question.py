"""In a real room an MCP server asks something in the middle of a call: the person hears it, answers
aloud, and the words reach the server.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caal_node.cli.demo.scenes import SAMPLE_RATE_HZ, RoomScene, load_requests
from caal_node.cli.processes.worker import WorkerProcess
from caal_node.core.events import Event, Spoken, ToolCallEnded, TurnEnded, UserSaid
from caal_node.speech import fetch_local
from tests.stand_ins.livekit_server import LiveKit
from tests.stand_ins.mcp_events import events
from tests.stand_ins.room_ear import SOUND_FLOOR
from tests.stand_ins.stand_in_model import Asked, Call, Reply, StandInModel

pytestmark = [pytest.mark.livekit, pytest.mark.speech, pytest.mark.alone]

LIVELY = Path(__file__).parents[1] / "stand_ins" / "changing_mcp_server.py"
TURN_S = 120.0
PAUSE_S = 1.0
QUESTION = "The server live asks: Which room?"


def servers(folder: Path, events_port: int) -> str:
    """Written; its path."""
    env = {"EVENTS_PORT": str(events_port)}
    entry = {"command": sys.executable, "args": [str(LIVELY), "2025-11-25"], "env": env}
    path = folder / "mcp_servers.json"
    path.write_text(json.dumps({"live": {**entry, "connect_timeout": 60}}), encoding="utf-8")
    path.chmod(0o600)
    return str(path)


def reply(asked: Asked) -> Reply:
    """A model's: it calls when it is asked to, then speaks."""
    last = asked.json["messages"][-1]
    if last["role"] == "tool":
        return ["Thanks for that."]
    return [Call("live__ask", {}, id="c1")] if "timer" in last["content"] else ["Hello."]


async def until(scene: RoomScene, kind: type[Event], **wanted: Any) -> list[Event]:
    """Events up to the first of `kind` whose fields are as wanted."""
    seen: list[Event] = []
    try:
        async with asyncio.timeout(TURN_S):
            while True:
                event = await scene.events.get()
                seen.append(event)
                fits = all(getattr(event, name, None) == value for name, value in wanted.items())
                if isinstance(event, kind) and fits:
                    return seen
    except TimeoutError:
        pytest.fail(f"no {kind.__name__} {wanted} in {TURN_S:g} s, but {seen}")


async def until_answered(scene: RoomScene) -> list[Event]:
    """Events up to the call's end, or up to the sentence that asks again."""
    seen: list[Event] = []
    async with asyncio.timeout(TURN_S):
        while not (seen and isinstance(seen[-1], ToolCallEnded)):
            seen.append(await scene.events.get())
            if isinstance(seen[-1], Spoken) and "did not get that" in seen[-1].text:
                break
    return seen


async def until_heard_out(scene: RoomScene, since: int) -> None:
    """Return once something was heard since then, and nothing for a while: as a person answers."""
    pause = int(PAUSE_S * SAMPLE_RATE_HZ)
    async with asyncio.timeout(TURN_S):
        while True:
            loud = np.abs(scene.timeline.since(since).astype(np.int32)) > SOUND_FLOOR
            last = int(np.flatnonzero(loud)[-1]) if loud.any() else None
            if last is not None and scene.timeline.position() - since - last > pause:
                return
            await asyncio.sleep(0.1)  # a track tells nobody that it is silent


async def test_a_servers_question_is_heard_and_answered_aloud(
    livekit: LiveKit, tmp_path: Path
) -> None:
    await asyncio.to_thread(fetch_local, stt="local", tts="local")
    request, answer = (r for r in load_requests() if "timer" in r.words or "Tokyo" in r.words)
    async with events() as found, StandInModel(answer=reply) as model:
        env = {
            "LIVEKIT_URL": livekit.url,
            "LIVEKIT_API_KEY": livekit.key,
            "LIVEKIT_API_SECRET": livekit.secret,
            "OLLAMA_HOST": model.url,
            "CAAL_MODEL": model.model,
            "CAAL_TOOL_CALLS": "native",
            "CAAL_AGENT": "caal_node.agent:CaalAgent",
            "CAAL_MCP_SERVERS": servers(tmp_path, found.port),
        }
        worker = WorkerProcess(tmp_path, env)
        async with RoomScene(
            livekit.url, livekit.key, livekit.secret, worker, room="question"
        ) as scene:
            await scene.speak(request)
            await until(scene, Spoken, text=QUESTION)
            asked_at = scene.timeline.position()
            # Over the question at first: either it is heard, or it is asked for again.
            await scene.speak(answer)
            seen = await until_answered(scene)
            if not isinstance(seen[-1], ToolCallEnded):
                await until_heard_out(scene, scene.timeline.position())
                await scene.speak(answer)
            seen += await until(scene, TurnEnded)
            heard = scene.timeline.since(asked_at - SAMPLE_RATE_HZ)

        (ended,) = [event for event in seen if isinstance(event, ToolCallEnded)]
        assert ended.outcome == "ok"
        last = [asked.json["messages"][-1] for asked in model.chats]
        (result,) = (message for message in last if message["role"] == "tool")
        # Not the recording's own words: a machine too busy to listen in time hears half of them.
        said = [event.text for event in seen if isinstance(event, UserSaid)]
        answered = result["content"].removeprefix("accept ")
        assert answered in said, "what was spoken aloud has reached the server"
        assert answered not in [m["content"] for m in last if m["role"] == "user"], "no request"
        assert "Thanks for that." in [event.text for event in seen if isinstance(event, Spoken)]
        loudness = float(np.sqrt((heard.astype(np.float64) ** 2).mean()))
        assert loudness > 50, "the question and the end are heard"
