"""Where turns end, by voice activity and by LiveKit's turn detector, on recordings of people.

Run: `python -m tests.bench.end_of_turn FOLDER [NOISE.wav]`. The folder has WAV files of one whole
request each (16 bits, mono). What is counted:

- pauses that people made in their request, of which the longest cuts it off;
- a pause that nobody made: each request is stopped between two words, and the room goes on. Who
  stops there sounds less as if more came than somebody who hesitates, so the truth is better;
- how long an answer has to wait at the real end.

With a noise, all of it is heard through that, 15 dB below the voice.
"""

from __future__ import annotations

import argparse
import itertools
import wave
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from livekit.local_inference import EOT, EOT_MAX_SAMPLES, VAD, VAD_WINDOW_SAMPLES
from numpy.typing import NDArray

from caal_node.factories import END_S, PAUSE_S
from tests.bench.table import print_table

Samples: TypeAlias = NDArray[np.int16]

RATE_HZ: Final = 16_000
LOOK: Final = RATE_HZ // 5
"""Samples of silence after which LiveKit asks its detector."""
ENGLISH: Final = 0.36
"""LiveKit's threshold for English."""
JOINT: Final = RATE_HZ // 10
"""Samples of a gap that belongs to a word."""
SPEAKS, IS_SILENT = 0.5, 0.35
SNR_DB: Final = 15
ROOM: Final = RATE_HZ // 10
"""Samples at a recording's end that are its room alone."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One request: its pauses in seconds, each with the odds that it is the end, and the odds at
    the real end and at a stop between two words."""

    pauses: Sequence[tuple[float, float]]
    at_end: float
    at_stop: float


def read(path: Path) -> Samples:
    with wave.open(str(path)) as file:
        if (file.getnchannels(), file.getsampwidth()) != (1, 2):
            raise SystemExit(f"{path}: not mono with 16 bits")
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        rate = file.getframerate()
    places = np.arange(len(samples) * RATE_HZ // rate) * rate / RATE_HZ
    return np.interp(places, np.arange(len(samples)), samples).astype(np.int16)


def spoken(samples: Samples) -> list[tuple[int, int]]:
    """Return the stretches of speech, as voice activity finds them."""
    vad, found, since = VAD(), list[tuple[int, int]](), -1
    for at in range(0, len(samples) - VAD_WINDOW_SAMPLES, VAD_WINDOW_SAMPLES):
        odds = vad.predict(np.ascontiguousarray(samples[at : at + VAD_WINDOW_SAMPLES]))
        if since < 0 and odds >= SPEAKS:
            since = at
        elif since >= 0 and odds < IS_SILENT:
            if found and since - found[-1][1] < JOINT:
                since = found.pop()[0]
            found.append((since, at))
            since = -1
    return found if since < 0 else [*found, (since, len(samples))]


def heard(samples: Samples, noise: Samples | None) -> Heard | None:
    speech = spoken(samples)
    if not speech:
        return None
    room = np.resize(samples[-ROOM:], LOOK)
    begin, end = speech[0][0], speech[-1][1]
    stop = _between_words(samples, begin + (end - begin) * 4 // 10, begin + (end - begin) * 8 // 10)
    detector = EOT()

    def odds(said: Samples) -> float:
        last = said[-EOT_MAX_SAMPLES:]
        if noise is not None:
            last = _through(last, noise)
        return float(detector.predict(np.ascontiguousarray(last)))

    pauses = [
        ((later - until) / RATE_HZ, odds(samples[: until + LOOK]))
        for (_, until), (later, _) in itertools.pairwise(speech)
        if later - until >= LOOK
    ]
    at_end, at_stop = (odds(np.concatenate([samples[:at], room])) for at in (end, stop))
    return Heard(pauses, at_end, at_stop)


def _between_words(samples: Samples, first: int, last: int) -> int:
    """Return the middle of the 30 quietest milliseconds."""
    step = RATE_HZ // 100
    level = np.abs(samples.astype(float))
    levels = [level[at : at + 3 * step].mean() for at in range(first, last, step)]
    return first + step * int(np.argmin(levels)) + 3 * step // 2


def _through(samples: Samples, noise: Samples) -> Samples:
    beside = np.resize(noise[: 30 * RATE_HZ], len(samples)).astype(float)
    power = np.mean(samples.astype(float) ** 2) / 10 ** (SNR_DB / 10)
    mixed = samples + beside * np.sqrt(power / np.mean(beside**2))
    return np.clip(mixed, -(2**15), 2**15 - 1).astype(np.int16)


def row(
    name: str, found: Sequence[Heard], threshold: float, end_s: float, pause_s: float
) -> Sequence[str]:
    def waits(odds: float) -> float:
        return end_s if odds >= threshold else pause_s

    cut = np.mean([any(length > waits(odds) for length, odds in each.pauses) for each in found])
    stopped = np.mean([waits(each.at_stop) < 1.0 for each in found])
    delay = np.mean([waits(each.at_end) for each in found])
    return [name, f"{100 * cut:.1f} %", f"{100 * stopped:.0f} %", f"{1000 * delay:.0f} ms"]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("noise", type=Path, nargs="?")
    given = options.parse_args()
    noise = None if given.noise is None else read(given.noise)
    recordings = sorted(given.folder.rglob("*.wav"))
    found = [each for path in recordings if (each := heard(read(path), noise)) is not None]
    voice_activity = [
        row(f"voice activity, {s:g} s", found, 0, s, s) for s in (0.3, 0.5, 0.6, 0.8, 1.0)
    ]
    detector = [
        row("v1-mini, LiveKit's delays", found, ENGLISH, 0.3, 2.5),
        row("v1-mini, ours", found, ENGLISH, END_S, PAUSE_S),
    ]
    pauses = sum(len(each.pauses) for each in found)
    print_table(
        f"{len(found)} requests with {pauses} pauses of 0.2 s or more",
        ["turns end by", "cut off in their pauses", "cut off by a stop of 1 s", "wait at the end"],
        [*voice_activity, *detector],
    )


if __name__ == "__main__":
    main()
