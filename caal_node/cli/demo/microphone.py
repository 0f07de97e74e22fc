"""The microphone is never off: it sends spoken requests, and silence between, in real time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import numpy as np
from livekit import rtc
from livekit.agents.utils import aio

from caal_node.cli.demo.audio_timeline import SAMPLE_RATE_HZ, Samples, TrackWriter
from caal_node.cli.demo.spoken_requests import RATE_HZ, SpokenRequest

FRAME_SAMPLES: Final = RATE_HZ // 50
"""A frame is 20 ms, as a room's own packet is."""
_SILENCE: Final = np.zeros(FRAME_SAMPLES, dtype=np.int16)


class Microphone:
    """Gives `push` one frame every 20 ms, and writes what is spoken to the track `heard`.

    Without the silence a listener would hear no end of speech.
    """

    def __init__(
        self, push: Callable[[rtc.AudioFrame], Awaitable[None]], heard: TrackWriter
    ) -> None:
        self._push = push
        self._heard = heard
        self._queue: asyncio.Queue[Samples | asyncio.Event] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="demo-microphone")

    async def say(self, request: SpokenRequest) -> None:
        """Send the request, and return once its last frame has been sent."""
        said = asyncio.Event()
        padded = np.pad(request.samples, (0, -request.samples.size % FRAME_SAMPLES))
        for frame in padded.reshape(-1, FRAME_SAMPLES):
            self._queue.put_nowait(frame)
        self._queue.put_nowait(said)
        await said.wait()

    async def aclose(self) -> None:
        if self._task is not None:
            await aio.cancel_and_wait(self._task)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            samples, spoken = self._next()
            if spoken:
                self._heard.write(_at_48_khz(samples))
            await self._push(rtc.AudioFrame(samples.tobytes(), RATE_HZ, 1, FRAME_SAMPLES))
            # A stall is not made up for.
            due = max(due + FRAME_SAMPLES / RATE_HZ, loop.time() - 1.0)
            await asyncio.sleep(due - loop.time())

    def _next(self) -> tuple[Samples, bool]:
        while not self._queue.empty():
            item = self._queue.get_nowait()
            if not isinstance(item, asyncio.Event):
                return item, True
            item.set()
        return _SILENCE, False


def _at_48_khz(samples: Samples) -> Samples:
    ratio = SAMPLE_RATE_HZ // RATE_HZ
    at = np.arange(samples.size * ratio) / ratio
    return np.interp(at, np.arange(samples.size), samples).astype(np.int16)
