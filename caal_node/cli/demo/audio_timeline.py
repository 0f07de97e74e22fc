"""The timeline records what a participant hears: tracks that begin and pause at their own times."""

from __future__ import annotations

import wave
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

SAMPLE_RATE_HZ: Final = 48_000
MAX_S: Final = 900
"""Seconds that are kept at most; 86 MB of samples."""
GAP_S: Final = 0.1
"""A track whose next frame comes this much later than its last one ended has paused."""

Samples = npt.NDArray[np.int16]


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
