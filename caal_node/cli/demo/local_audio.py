"""A microphone and a loudspeaker inside one process, in real time, for LiveKit's session."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import numpy as np
from livekit import rtc
from livekit.agents.utils import aio
from livekit.agents.voice import io

from caal_node.cli.demo.audio_timeline import SAMPLE_RATE_HZ, AudioTimeline
from caal_node.room.cues import Samples


class LoopInput(io.AudioInput):
    """Frames that `push` is given, to the session."""

    def __init__(self) -> None:
        super().__init__(label="demo-loop")
        self._frames: asyncio.Queue[rtc.AudioFrame] = asyncio.Queue()

    async def push(self, frame: rtc.AudioFrame) -> None:
        self._frames.put_nowait(frame)

    async def __anext__(self) -> rtc.AudioFrame:
        return await self._frames.get()


class LoopOutput(io.AudioOutput):
    """The session's speech, onto the timeline at the pace at which it would be heard."""

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
        """Barge-in: what was not heard yet never is."""
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


class LoopCues:
    """A `CueSink` on the timeline."""

    LATER_S: Final = 0.04
    """What a room adds between the call and the sound, so that the recording is true to one."""

    def __init__(self, timeline: AudioTimeline) -> None:
        self._timeline = timeline

    def play(self, samples: Samples) -> None:
        at = self._timeline.position() + int(self.LATER_S * SAMPLE_RATE_HZ)
        self._timeline.add(at, samples)

    def stop(self) -> None:
        """A cue is written whole at once; 150 ms of it are not worth taking back."""

    async def aclose(self) -> None:
        """Nothing to close."""
