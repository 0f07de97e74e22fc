"""The documented worker runs as it is pasted: in a real room, with speech on this machine."""

from __future__ import annotations

import asyncio
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from caal_node.cli.demo.scenes import RoomScene, SpokenRequest, load_requests
from caal_node.cli.processes.worker import WorkerProcess
from caal_node.core.events import Event, Spoken, ToolCallEnded, TurnEnded
from caal_node.speech import fetch_local
from tests.stand_ins.livekit_server import LiveKit
from tests.stand_ins.stand_in_model import Asked, Call, Reply, StandInModel

pytestmark = [pytest.mark.livekit, pytest.mark.speech, pytest.mark.alone]

PAGE = Path(__file__).parents[2] / "docs" / "livekit.md"
TURN_S = 120.0


def pasted() -> str:
    """The block of the page that is a whole program."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (program,) = (block for block in blocks if "cli.run_app" in block)
    return program


def reply(asked: Asked) -> Reply:
    last = asked.json["messages"][-1]
    if last["role"] == "tool":
        return [last["content"]]
    return [Call("set_timer", {"minutes": 5})] if "timer" in last["content"] else ["Hello."]


async def turn(scene: RoomScene, request: SpokenRequest) -> list[Event]:
    await scene.speak(request)
    events: list[Event] = []
    async with asyncio.timeout(TURN_S):
        while not (events and isinstance(events[-1], TurnEnded)):
            events.append(await scene.events.get())
    return events


async def test_the_documented_worker_hears_a_request_runs_its_tool_and_is_heard(
    livekit: LiveKit, tmp_path: Path
) -> None:
    await asyncio.to_thread(fetch_local, stt="local", tts="local")
    (tmp_path / "agent.py").write_text(pasted(), encoding="utf-8")
    request = load_requests("spare")[0]  # "Set a timer for five minutes."
    async with StandInModel(answer=reply) as model:
        env = {
            "LIVEKIT_URL": livekit.url,
            "LIVEKIT_API_KEY": livekit.key,
            "LIVEKIT_API_SECRET": livekit.secret,
            "OLLAMA_HOST": model.url,
            "CAAL_MODEL": model.model,
            "CAAL_TOOL_CALLS": "native",
        }
        worker = WorkerProcess(tmp_path, env, program=("agent.py", "dev", "--no-reload"))
        async with RoomScene(
            livekit.url, livekit.key, livekit.secret, worker, room="pasted"
        ) as scene:
            began = scene.timeline.position()
            events = await turn(scene, request)
            if not any(isinstance(event, ToolCallEnded) for event in events):
                # A machine too busy to listen cuts a request in two; a person says it again.
                warnings.warn(f"said twice: {events} came of the first", stacklevel=1)
                began = scene.timeline.position()
                events = await turn(scene, request)
            heard = scene.timeline.since(began)
    (ended,) = [event for event in events if isinstance(event, ToolCallEnded)]
    assert (ended.tool, ended.tier, ended.outcome) == ("set_timer", "agent", "ok")
    assert "The timer runs for 5 minutes." in [e.text for e in events if isinstance(e, Spoken)]
    assert float(np.sqrt((heard.astype(np.float64) ** 2).mean())) > 50, "the answer is heard"
    log = worker.log.read_text(encoding="utf-8", errors="replace")
    assert "livekit.cloud" not in log, "nothing that is heard leaves this machine"
    assert "Traceback" not in log
