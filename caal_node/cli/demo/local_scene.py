"""The demo without a room: the same session, tools and speech, on a loop inside this process."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the event types of its rooms, models and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, Self

from caal_node.cli.chosen_agent import chosen_agent
from caal_node.cli.demo.audio_timeline import AudioTimeline
from caal_node.cli.demo.local_audio import LoopCues, LoopInput, LoopOutput
from caal_node.cli.demo.microphone import Microphone
from caal_node.cli.demo.spoken_requests import SpokenRequest
from caal_node.config.settings import load_settings
from caal_node.core.errors import CaalError
from caal_node.core.events import Event
from caal_node.factories import make_voice, voice_session
from caal_node.models.llm import LLM

WARM_S: Final = 150.0
"""Seconds for the model to read the prompt's head, cold, on two cores."""


class LoopScene:
    """A `Scene`. `env` and `folder` are what the room's worker would have been given."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        self._env, self._folder = env, folder
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self.timeline = AudioTimeline(asyncio.get_running_loop().time)
        settings = load_settings(self._env, self._folder / "caal.toml")
        # In this thread, as LiveKit's plugins register themselves only in the main one.
        voice = make_voice(settings)
        session = voice_session(settings, voice)
        source, loudspeaker = LoopInput(), LoopOutput(self.timeline)
        self._open.push_async_callback(loudspeaker.aclose)
        session.input.audio, session.output.audio = source, loudspeaker
        agent = chosen_agent(
            settings,
            None,
            on_event=self.events.put_nowait,
            cue_sink=LoopCues(self.timeline),
        )
        await session.start(agent)
        model = session.llm
        if isinstance(model, LLM):
            self._open.push_async_callback(model.aclose)
        self._open.push_async_callback(session.aclose)
        try:
            async with asyncio.timeout(WARM_S):
                await agent.warmed()
        except TimeoutError:
            await self._open.aclose()
            raise CaalError(f"the model was not ready after {WARM_S:g} s") from None
        self._microphone = Microphone(source.push, self.timeline.track())
        self._microphone.on()
        self._open.push_async_callback(self._microphone.aclose)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def speak(self, request: SpokenRequest) -> None:
        await self._microphone.say(request)
