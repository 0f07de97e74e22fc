"""The demo's sound: recorded requests, a microphone that speaks them, and a recording of all."""

from __future__ import annotations

import asyncio
import json
import wave
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from livekit import rtc
from livekit.agents.utils import aio

RATE_HZ: Final = 16_000

SAMPLE_RATE_HZ: Final = 48_000
MAX_S: Final = 900
"""Seconds that are kept at most; 86 MB of samples."""
GAP_S: Final = 0.1
"""A track whose next frame comes this much later than its last one ended has paused."""
Samples = npt.NDArray[np.int16]
FRAME_SAMPLES: Final = RATE_HZ // 50
"""A frame is 20 ms, as a room's own packet is."""
_SILENCE: Final = np.zeros(FRAME_SAMPLES, dtype=np.int16)


@dataclass(frozen=True, slots=True)
class SpokenRequest:
    """A recording: `words` is what was spoken, `samples` are mono at RATE_HZ."""

    words: str
    samples: npt.NDArray[np.int16]

    @property
    def seconds(self) -> float:
        return self.samples.size / RATE_HZ


def load_requests(which: str = "requests") -> list[SpokenRequest]:
    """Return the requests of one of the lists, in the order in which they are asked."""
    folder = resources.files("caal_node.cli.demo") / "requests"
    rows = json.loads((folder / "requests.json").read_text(encoding="utf-8"))[which]
    loaded: list[SpokenRequest] = []
    for row in rows:
        with (folder / row["file"]).open("rb") as raw, wave.open(raw) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), dtype=np.int16)
        loaded.append(SpokenRequest(row["words"], samples))
    return loaded


class AudioTimeline:
    """Adds sounds up on one clock; `now` returns seconds from any start."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._began = now()
        self._sum: npt.NDArray[np.int32] = np.zeros(SAMPLE_RATE_HZ * 60, dtype=np.int32)
        self._end = 0

    def track(self) -> TrackWriter:
        """Return a new track, whose frames follow each other unless it pauses."""
        return TrackWriter(self)

    def position(self) -> int:
        """Return how many samples have passed since the beginning."""
        return int((self._now() - self._began) * SAMPLE_RATE_HZ)

    def add(self, at: int, samples: Samples) -> None:
        """Mix `samples` in from sample `at` on; what would lie past the recording is dropped."""
        end = at + samples.size
        if at < 0 or end > MAX_S * SAMPLE_RATE_HZ:
            return
        if end > self._sum.size:
            self._sum = np.concatenate([self._sum, np.zeros(max(end, self._sum.size), np.int32)])
        self._sum[at:end] += samples
        self._end = max(self._end, end)

    def since(self, at: int) -> Samples:
        """Return everything that was heard from sample `at` on."""
        return np.clip(self._sum[at : self._end], -32768, 32767).astype(np.int16)

    def write(self, path: Path) -> float:
        """Save the recording as 16-bit mono WAV, and return its length in seconds."""
        mixed = self.since(0)
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(SAMPLE_RATE_HZ)
            file.writeframes(mixed.tobytes())
        return self._end / SAMPLE_RATE_HZ


class TrackWriter:
    """Writes one track's frames in order: where the last one ended, or where it is heard."""

    def __init__(self, timeline: AudioTimeline) -> None:
        self._timeline = timeline
        self._next: int | None = None

    def write(self, samples: Samples) -> None:
        heard = self._timeline.position() - samples.size
        if self._next is None or heard - self._next > GAP_S * SAMPLE_RATE_HZ:
            self._next = heard
        self._timeline.add(self._next, samples)
        self._next += samples.size


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
