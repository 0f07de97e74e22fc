"""Synthesises the cues: short sounds made of sines with numpy.

They are mono, 48 kHz, int16, as the room's audio source takes them, so that nothing is resampled.
Every cue begins and ends on a zero sample under a raised cosine (an abrupt end clicks), has no DC,
and keeps its frequencies between 300 and 1200 Hz, where small speakers and hearing are at their
best.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from caal_node.core.events import CueKind

Samples: TypeAlias = npt.NDArray[np.int16]
"""Mono samples at SAMPLE_RATE_HZ."""
_Wave: TypeAlias = npt.NDArray[np.float64]

SAMPLE_RATE_HZ: Final = 48_000
"""The rate of Opus. Any other would be resampled before it is sent."""
PEAK_MAX_DBFS: Final = -12.0
"""No cue is louder, even from a file: speech has about this level, and a cue must not startle."""

_LEVEL_DBFS: Final = -14.0
_LEVELS_DBFS: Final[Mapping[CueKind, float]] = {
    "tick": -24.0,  # a third of the others' amplitude, as it repeats and says nothing new
    "ring": PEAK_MAX_DBFS,  # it is to be heard in the next room
}
_EDGE_MS: Final = 12
"""Rise and fall time of a note. Below 10 ms they sound like clicks."""
_TICK_EDGE_MS: Final = 20
_FILE_EDGE_MS: Final = 10
"""The shortest time without a click, so that a user's sound is changed least."""

_TOOL_HZ: Final = (660.0, 880.0)
_AGENT_HZ: Final = (523.25, 659.26, 783.99)
"""C5, E5, G5 in equal temperament, A4 = 440 Hz."""
_ERROR_HZ: Final = (520.0, 340.0)
"""The first and last frequency. Below 300 Hz a phone's speaker is silent."""
_DONE_HZ: Final = (400.0, 800.0)
"""It rises where the error falls, and glides where the tool cue has two notes."""
_TICK_HZ: Final = 660.0
_RING_HZ: Final = (622.25, 830.61)
"""D sharp 5 and G sharp 5 in quick turns, as a bell's clapper: no other cue goes up and down."""

_TOOL_NOTE_MS: Final = 75
_AGENT_NOTE_MS: Final = 83
_ERROR_MS: Final = 150
_DONE_MS: Final = 120
_TICK_MS: Final = 60
_RING_NOTE_MS: Final = 45
_RING_NOTES: Final = 8
"""Notes of one of the ring's two bursts."""
_RING_GAP_MS: Final = 160


@dataclass(frozen=True, slots=True)
class CueSet:
    """The sound of each kind of cue."""

    sounds: Mapping[CueKind, Samples]

    @classmethod
    def of(cls, replaced: Mapping[CueKind, Samples] | None = None) -> CueSet:
        """Make the synthesised set, with `replaced` in place of some."""
        return cls({kind: render(kind) for kind in get_args(CueKind)} | dict(replaced or {}))

    def __getitem__(self, kind: CueKind) -> Samples:
        return self.sounds[kind]

    def lengths(self) -> dict[CueKind, float]:
        """Return each cue's length in seconds."""
        return {kind: sound.size / SAMPLE_RATE_HZ for kind, sound in self.sounds.items()}


def render(kind: CueKind) -> Samples:
    """Synthesise a cue: tool rises in two notes, agent is an arpeggio, error falls and done
    rises in a glide, tick is short and soft, and ring trills twice, as a kitchen timer does."""
    match kind:
        case "tool":
            notes = [_tone(hz, hz, _TOOL_NOTE_MS, _EDGE_MS) for hz in _TOOL_HZ]
        case "agent":
            notes = [_tone(hz, hz, _AGENT_NOTE_MS, _EDGE_MS) for hz in _AGENT_HZ]
        case "error":
            notes = [_tone(*_ERROR_HZ, _ERROR_MS, _EDGE_MS)]
        case "done":
            notes = [_tone(*_DONE_HZ, _DONE_MS, _EDGE_MS)]
        case "tick":
            notes = [_tone(_TICK_HZ, _TICK_HZ, _TICK_MS, _TICK_EDGE_MS)]
        case "ring":
            trill = [_tone(hz, hz, _RING_NOTE_MS, _EDGE_MS) for hz in _RING_HZ]
            burst = trill * (_RING_NOTES // len(_RING_HZ))
            notes = [*burst, np.zeros(SAMPLE_RATE_HZ * _RING_GAP_MS // 1000), *burst]
    level = _LEVELS_DBFS.get(kind, _LEVEL_DBFS)
    return _to_int16(np.concatenate(notes) * _amplitude(level))


def conform(sound: _Wave) -> Samples:
    """Give a recorded sound (-1..1) the silent ends, the zero DC and the peak of a cue."""
    shaped = _without_dc(sound, _edges(sound.size, _FILE_EDGE_MS))
    loudest = float(np.max(np.abs(shaped), initial=0.0))
    limit = _amplitude(PEAK_MAX_DBFS)
    return _to_int16(shaped * (limit / loudest) if loudest > limit else shaped)


def _tone(start_hz: float, end_hz: float, length_ms: int, edge_ms: int) -> _Wave:
    count = SAMPLE_RATE_HZ * length_ms // 1000
    # The phase is the sum of the frequency, so that a glide is one unbroken wave.
    phase = np.cumsum(np.linspace(start_hz, end_hz, count)) / SAMPLE_RATE_HZ
    return _without_dc(np.sin(2 * np.pi * phase), _edges(count, edge_ms))


def _edges(count: int, edge_ms: int) -> _Wave:
    """Make a window of ones that rises from zero and falls to zero as a raised cosine."""
    rise = min(SAMPLE_RATE_HZ * edge_ms // 1000, count // 2)
    window = np.ones(count)
    slope = 0.5 - 0.5 * np.cos(np.pi * np.arange(rise) / max(rise, 1))
    window[:rise] = slope
    window[count - rise :] = slope[::-1]
    return window


def _without_dc(wave: _Wave, window: _Wave) -> _Wave:
    """Apply `window` to `wave`, and remove the mean so that the ends stay zero."""
    weight = float(window.sum())
    mean = float((wave * window).sum()) / weight if weight else 0.0
    return (wave - mean) * window


def _amplitude(dbfs: float) -> float:
    return float(10.0 ** (dbfs / 20.0))


def _to_int16(wave: _Wave) -> Samples:
    # Truncation rounds towards zero; rounding up would raise a peak over its limit.
    return np.trunc(wave * 32767.0).astype(np.int16)
