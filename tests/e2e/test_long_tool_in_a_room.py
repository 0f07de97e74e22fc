"""In a real room a tool takes twenty seconds. Somebody speaks meanwhile, is answered, and hears the
tool's result when it is there. With `-s` it prints what happened when.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from caal_node.cli.demo.scenes import SAMPLE_RATE_HZ, RoomScene
from caal_node.cli.processes.worker import WorkerProcess
from caal_node.core.events import (
    Event,
    Spoken,
    ToolCallEnded,
    ToolCallStarted,
)
from caal_node.core.prompt_files import sentence
from caal_node.speech import fetch_local
from tests.e2e.test_hearing_in_a_room import env_of, spoken
from tests.stand_ins.livekit_server import LiveKit
from tests.stand_ins.room_ear import SOUND_FLOOR
from tests.stand_ins.stand_in_model import Asked, Call, Reply, StandInModel

pytestmark = [pytest.mark.livekit, pytest.mark.speech, pytest.mark.alone]

SERVER = '''
import anyio
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("archive")


@server.tool()
async def look_up(topic: str, context: Context) -> str:
    """Looks a topic up in the archive of old newspapers."""
    await anyio.sleep(10)
    await context.report_progress(1, 2, "reading the papers of 1904")
    await anyio.sleep(10)
    return "It was lit for the first time in 1904."


server.run()
'''
REQUEST = "Look up the history of the lighthouse."
MEANWHILE = "What is the capital of France?"
RESULT = "The lighthouse was lit for the first time in 1904."
ANSWER = "It is Paris."
TURN_S = 90.0
SILENCE_MAX_S = 6.0
"""After four seconds a sound follows; the rest is for a busy machine."""


def reply(asked: Asked) -> Reply:
    """A model's: it looks things up when it is asked to, and answers what it knows."""
    messages = asked.json["messages"]
    if any("1904" in message["content"] for message in messages):
        return [RESULT]
    if "France" in messages[-1]["content"]:
        return [ANSWER]
    return [Call("archive__look_up", {"topic": "lighthouse"}, id="c1")]


def servers(folder: Path) -> str:
    """Written; its path."""
    code = folder / "archive.py"
    code.write_text(SERVER, encoding="utf-8")
    entry = {"command": sys.executable, "args": [str(code)], "connect_timeout": 60}
    path = folder / "mcp_servers.json"
    path.write_text(json.dumps({"archive": entry}), encoding="utf-8")
    path.chmod(0o600)
    return str(path)


async def heard_meanwhile(
    livekit: LiveKit, folder: Path
) -> tuple[list[tuple[float, Event]], float]:
    """Return the events with their seconds since the request, and the longest silence until the
    person speaks again."""
    await asyncio.to_thread(fetch_local, stt="local", tts="local")
    request, meanwhile = await spoken(REQUEST, MEANWHILE)
    found: list[tuple[float, Event]] = []
    news = asyncio.Condition()
    async with StandInModel(answer=reply) as model:
        env = env_of(livekit, model, CAAL_MCP_SERVERS=servers(folder))
        worker = WorkerProcess(folder, env)
        async with (
            RoomScene(livekit.url, livekit.key, livekit.secret, worker, room="long") as scene,
            asyncio.timeout(TURN_S),
            asyncio.TaskGroup() as tasks,
        ):
            clock = asyncio.get_running_loop().time
            since = clock()

            async def listen() -> None:
                while True:
                    event = await scene.events.get()
                    async with news:
                        found.append((clock() - since, event))
                        news.notify_all()

            async def until(kind: type[Event], text: str | None = None) -> None:
                def there() -> bool:
                    events = [event for _, event in found if isinstance(event, kind)]
                    return any(text in (None, getattr(event, "text", None)) for event in events)

                async with news:
                    await news.wait_for(there)

            listening = tasks.create_task(listen())
            await scene.speak(request)
            await until(ToolCallStarted)
            began = scene.timeline.position()
            await asyncio.sleep(6.0)  # real seconds, as a person's
            heard = scene.timeline.since(began)
            await scene.speak(meanwhile)
            await until(Spoken, RESULT)
            listening.cancel()
    loud = np.flatnonzero(np.abs(heard.astype(np.int32)) > SOUND_FLOOR)
    gaps = np.diff(np.concatenate([[0], loud, [len(heard)]]))
    return found, float(gaps.max()) / SAMPLE_RATE_HZ


async def test_a_long_tools_result_is_heard_after_what_was_asked_meanwhile(
    livekit: LiveKit, tmp_path: Path
) -> None:
    found, silence_s = await heard_meanwhile(livekit, tmp_path)
    for at_s, event in found:
        print(f"{at_s:5.1f}", event)
    print(f"the longest silence: {silence_s:.1f} s")
    calls = [event for _, event in found if isinstance(event, ToolCallStarted)]
    (ended,) = [event for _, event in found if isinstance(event, ToolCallEnded)]
    assert len(calls) == 1
    assert ended.outcome == "ok"
    said = [event.text for _, event in found if isinstance(event, Spoken)]
    assert said == [sentence("waiting"), ANSWER, RESULT]
    assert silence_s < SILENCE_MAX_S
