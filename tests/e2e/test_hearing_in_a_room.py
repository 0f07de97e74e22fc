"""In a real room, with a voice and a real recogniser: "right" does not stop the agent, "stop" does,
and talk of others gets no answer.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caal_node.cli.demo.scenes import RATE_HZ, RoomScene, SpokenRequest
from caal_node.cli.processes.worker import WorkerProcess
from caal_node.core.events import Event, Spoken, TurnEnded, UserSaid
from caal_node.speech import fetch_local, make_tts
from tests.e2e.test_spoken_question import until
from tests.stand_ins.livekit_server import LiveKit
from tests.stand_ins.stand_in_model import Asked, Reply, StandInModel

pytestmark = [pytest.mark.livekit, pytest.mark.speech, pytest.mark.alone]

REQUEST = "Tell me about the history of the lighthouse."
STORY = (
    "The lighthouse was built by fishermen on the northern rocks.",
    "Its keeper lit the lamp every evening for forty years.",
    "Later the light was turned by a clockwork in the cellar.",
    "Today it shines by itself and a museum tells its story.",
)
TALK = "Oh my god, she told her mother about the wedding, and he never even knew."
PATIENCE_S = 12.0
"""Longer than a turn's end and recognition take on a busy machine."""


async def spoken(*texts: str) -> list[SpokenRequest]:
    """The local voice's recordings of these texts."""
    voice = await asyncio.to_thread(make_tts, "local")
    assert voice is not None
    found: list[SpokenRequest] = []
    for text in texts:
        async with voice.synthesize(text) as stream:
            frames = [np.frombuffer(each.frame.data, np.int16) async for each in stream]
        samples = np.concatenate(frames)
        places = (
            np.arange(len(samples) * RATE_HZ // voice.sample_rate) * voice.sample_rate / RATE_HZ
        )
        at_rate = np.interp(places, np.arange(len(samples)), samples).astype(np.int16)
        found.append(SpokenRequest(text, np.concatenate([at_rate, np.zeros(RATE_HZ, np.int16)])))
    await voice.aclose()
    return found


def reply(asked: Asked) -> Reply:
    return [" ".join(STORY)]


def env_of(livekit: LiveKit, model: StandInModel, **more: str) -> dict[str, str]:
    return {
        "LIVEKIT_URL": livekit.url,
        "LIVEKIT_API_KEY": livekit.key,
        "LIVEKIT_API_SECRET": livekit.secret,
        "OLLAMA_HOST": model.url,
        "CAAL_MODEL": model.model,
        "CAAL_TOOL_CALLS": "native",
        "CAAL_AGENT": "caal_node.agent:CaalAgent",
        **more,
    }


async def events_for(scene: RoomScene, seconds: float) -> list[Event]:
    """Everything that happens in the next seconds."""
    seen: list[Event] = []
    try:
        async with asyncio.timeout(seconds):
            while True:
                seen.append(await scene.events.get())
    except TimeoutError:
        return seen


async def test_a_listeners_right_does_not_stop_the_agent_and_a_stop_does(
    livekit: LiveKit, tmp_path: Path
) -> None:
    await asyncio.to_thread(fetch_local, stt="local", tts="local")
    request, right, stop = await spoken(REQUEST, "Right, okay.", "Stop, that is enough.")
    async with StandInModel(answer=reply) as model:
        worker = WorkerProcess(tmp_path, env_of(livekit, model))
        async with RoomScene(
            livekit.url, livekit.key, livekit.secret, worker, room="right"
        ) as scene:
            await scene.speak(request)
            await until(scene, Spoken)
            await asyncio.sleep(1.0)  # real seconds: the voice is heard by now
            await scene.speak(right)
            seen = await until(scene, TurnEnded)
            said: list[Any] = [event.text for event in seen if isinstance(event, Spoken)]
            assert not [event for event in seen if isinstance(event, UserSaid)]
            assert said[-1] == STORY[-1], "the whole story was told"
            await scene.speak(request)
            await until(scene, Spoken)
            await asyncio.sleep(1.0)
            await scene.speak(stop)
            await until(scene, UserSaid)


async def test_talk_of_others_gets_no_answer_and_a_request_does(
    livekit: LiveKit, tmp_path: Path
) -> None:
    await asyncio.to_thread(fetch_local, stt="local", tts="local")
    request, talk = await spoken(REQUEST, TALK)
    async with StandInModel(answer=reply) as model:
        worker = WorkerProcess(tmp_path, env_of(livekit, model, CAAL_ANSWERS="addressed"))
        async with RoomScene(
            livekit.url, livekit.key, livekit.secret, worker, room="talk"
        ) as scene:
            await scene.speak(talk)
            seen = await events_for(scene, PATIENCE_S)
            assert not [event for event in seen if isinstance(event, UserSaid | Spoken)]
            await scene.speak(request)
            await until(scene, Spoken)
