"""Without a room, the demo runs the same session, tools and speech inside this process."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the event types of its rooms, models and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, Self

import numpy as np
from livekit import rtc
from livekit.agents.utils import aio
from livekit.agents.voice import io

from caal_node.cli.chosen_agent import chosen_agent
from caal_node.cli.demo.audio import SAMPLE_RATE_HZ, AudioTimeline, Microphone, SpokenRequest
from caal_node.config.settings import load_settings
from caal_node.core.errors import CaalError
from caal_node.core.events import Event
from caal_node.factories import make_voice, voice_session
from caal_node.models.llm import LLM
from caal_node.room.cues import Samples

WARM_S: Final = 150.0
"""Seconds for the model to read the prompt's head, cold, on two cores."""


class LocalScene:
    """A `DemoScene`. `env` and `folder` are what a room's worker would have been given."""

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
        source, loudspeaker = LocalMicrophone(), LocalLoudspeaker(self.timeline)
        self._open.push_async_callback(loudspeaker.aclose)
        session.input.audio, session.output.audio = source, loudspeaker
        agent = chosen_agent(
            settings,
            None,
            on_event=self.events.put_nowait,
            cue_sink=LocalCues(self.timeline),
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
        self._microphone.start()
        self._open.push_async_callback(self._microphone.aclose)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def speak(self, request: SpokenRequest) -> None:
        await self._microphone.say(request)


class LocalMicrophone(io.AudioInput):
    """Gives the session the frames that are pushed into it."""

    def __init__(self) -> None:
        super().__init__(label="demo-loop")
        self._frames: asyncio.Queue[rtc.AudioFrame] = asyncio.Queue()

    async def push(self, frame: rtc.AudioFrame) -> None:
        self._frames.put_nowait(frame)

    async def __anext__(self) -> rtc.AudioFrame:
        return await self._frames.get()


class LocalLoudspeaker(io.AudioOutput):
    """Writes the session's speech onto the timeline, at the pace at which it would be heard."""

    def __init__(self, timeline: AudioTimeline) -> None:
        super().__init__(
            label="demo-loop",
            capabilities=io.AudioOutputCapabilities(pause=False),
            sample_rate=SAMPLE_RATE_HZ,
        )
        self._timeline = timeline
        self._frames: asyncio.Queue[rtc.AudioFrame | None] = asyncio.Queue()
        self._player = asyncio.create_task(self._play(), name="demo-loudspeaker")
        self._played_s = 0.0

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        self._frames.put_nowait(frame)

    def flush(self) -> None:
        super().flush()
        self._frames.put_nowait(None)

    def clear_buffer(self) -> None:
        """Drop what was not heard yet, as somebody has barged in."""
        heard = False
        while not self._frames.empty():
            heard |= self._frames.get_nowait() is not None
        if heard or self._played_s:
            self._finished(interrupted=True)

    async def aclose(self) -> None:
        await aio.cancel_and_wait(self._player)

    async def _play(self) -> None:
        writer, due = self._timeline.track(), 0.0
        loop = asyncio.get_running_loop()
        while True:
            frame = await self._frames.get()
            if frame is None:
                if self._played_s:
                    self._finished(interrupted=False)
                continue
            if not self._played_s:
                self.on_playback_started(created_at=time.time())
                writer, due = self._timeline.track(), loop.time()
            self._played_s += frame.duration
            due += frame.duration
            await asyncio.sleep(due - loop.time())
            writer.write(np.frombuffer(frame.data, dtype=np.int16))

    def _finished(self, *, interrupted: bool) -> None:
        played, self._played_s = self._played_s, 0.0
        self.on_playback_finished(playback_position=played, interrupted=interrupted)


class LocalCues:
    """A `CueSink` that writes onto the timeline."""

    DELAY_S: Final = 0.04
    """A room adds this between the call and the sound, and the recording is to be true to one."""

    def __init__(self, timeline: AudioTimeline) -> None:
        self._timeline = timeline

    def play(self, samples: Samples) -> None:
        at = self._timeline.position() + int(self.DELAY_S * SAMPLE_RATE_HZ)
        self._timeline.add(at, samples)

    def stop(self) -> None:
        """A cue is written whole at once; 150 ms of it are not worth taking back."""

    async def aclose(self) -> None:
        """Nothing to close."""
