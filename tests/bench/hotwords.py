"""Whether names reach the agent: spoken requests with the names of a household, heard by Whisper.

Run: `python -m tests.bench.hotwords [--flite VOICE ...]`. `named_requests.json` has sixty requests
with a name each and forty without any; all names are told to the recogniser, or none.
The last thirty of the sixty were never looked at while this was built. Names that a voice would
read by English rules are written for it as they sound, the second spelling for flite.

The voices are piper's, and those of `flite` that are asked for, where it is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import re
import subprocess
import time
import unicodedata
import wave
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from livekit import rtc

from caal_node.language.hotwords import TERMS_MAX, hotwords
from caal_node.speech import make_stt, make_tts
from caal_node.speech.local_models import WhisperSTT
from tests.bench.table import print_table

BUILT_ON: Final = 30
"""So many of the requests with names were looked at."""
RATE_HZ: Final = 16_000
NOISES: Final = 20
"""Sounds without a word: noise from -60 to -20 dB, half of it low as a fan's, 1.5 s each."""
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Said:
    text: str
    """What is said, as it is written."""
    name: str = ""
    for_piper: str = ""
    for_flite: str = ""

    def spoken(self, respelt: str) -> str:
        return self.text.replace(self.name, respelt) if respelt else self.text


def load() -> tuple[list[Said], list[Said]]:
    """Return the requests with names, and those without."""
    data = json.loads(Path(__file__).with_name("named_requests.json").read_text("utf-8"))
    named = [Said(text, name, *respelt) for name, text, *respelt in data["names"]]
    return named, [Said(text) for text in data["without"]]


def words_of(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text.replace("'", "").casefold())
    return _WORD.findall("".join(each for each in plain if not unicodedata.combining(each)))


def holds(text: str, name: str) -> bool:
    """Say whether whole words of `text` are the name, however it is parted: "wall box"."""
    said, wanted = words_of(text), "".join(words_of(name))
    return any(
        "".join(said[at:end]) == wanted
        for at in range(len(said))
        for end in range(at + 1, min(len(said), at + 4) + 1)
    )


def lost(said: Said, heard: str) -> tuple[int, int]:
    """Return how many words besides the name are not in `heard` in their order, and how many there
    are."""
    own = words_of(said.text.replace(said.name, " ")) if said.name else words_of(said.text)
    there = words_of(heard)
    kept = [[0] * (len(there) + 1) for _ in range(len(own) + 1)]
    for i, word in enumerate(own):
        for j, other in enumerate(there):
            same = kept[i][j] + 1 if word == other else 0
            kept[i + 1][j + 1] = max(same, kept[i][j + 1], kept[i + 1][j])
    return len(own) - kept[-1][-1], len(own)


class Piper:
    name = "piper joe"

    def __init__(self) -> None:
        voice = make_tts("local")
        assert voice is not None
        self._voice = voice

    async def say(self, said: Said) -> rtc.AudioFrame:
        stream = self._voice.synthesize(said.spoken(said.for_piper).capitalize() + ".")
        return rtc.combine_audio_frames([each.frame async for each in stream])

    async def aclose(self) -> None:
        await self._voice.aclose()


class Flite:
    def __init__(self, voice: str) -> None:
        self.name: Final = f"flite {voice}"
        self._voice = voice

    async def say(self, said: Said) -> rtc.AudioFrame:
        text = said.spoken(said.for_flite) + "."
        command = ["flite", "-voice", self._voice, "-t", text, "-o", "/dev/stdout"]
        made = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True)
        with wave.open(io.BytesIO(made.stdout)) as file:
            rate, data = file.getframerate(), file.readframes(file.getnframes())
        return rtc.AudioFrame(data, rate, 1, len(data) // 2)

    async def aclose(self) -> None:
        pass


def told_with(names: Sequence[str], number: int) -> Sequence[str]:
    """Return as many names as are told, with the one of that number at any place among them."""
    first = (number - number * 7 % TERMS_MAX) % len(names)
    return [*names, *names][first : first + TERMS_MAX]


def noise(number: int) -> rtc.AudioFrame:
    samples = np.random.default_rng(number).normal(size=RATE_HZ * 3 // 2)
    if number % 2:
        samples = np.convolve(samples, np.ones(200) / 200, "same")
    level = 10 ** ((-60 + 40 * number / (NOISES - 1)) / 20)
    data = np.clip(samples / samples.std() * level, -1, 1) * (2**15 - 1)
    return rtc.AudioFrame(data.astype(np.int16).tobytes(), RATE_HZ, 1, len(data))


async def recognised(ears: WhisperSTT, sound: rtc.AudioFrame) -> str:
    return (await ears.recognize(sound)).alternatives[0].text


def row(
    way: str,
    named: Sequence[tuple[Said, str]],
    without: Sequence[tuple[Said, str]],
    noises: Sequence[str],
    seconds: float,
) -> Sequence[str]:
    names = [said.name for said, _ in named]
    right = [holds(heard, said.name) for said, heard in named]
    intruding = sum(
        any(name != said.name and holds(heard, name) for name in names)
        for said, heard in [*named, *without]
    )

    def lost_of(some: Sequence[tuple[Said, str]]) -> str:
        counts = [lost(said, heard) for said, heard in some]
        return f"{100 * sum(n for n, _ in counts) / sum(n for _, n in counts):.1f} %"

    from_noise = sum(any(holds(heard, name) for name in names) for heard in noises)
    return [
        way,
        f"{sum(right[:BUILT_ON])} of {BUILT_ON}",
        f"{sum(right[BUILT_ON:])} of {len(right) - BUILT_ON}",
        lost_of(named),
        lost_of(without),
        f"{intruding} of {len(named) + len(without)}",
        f"{sum(map(bool, noises))}, {from_noise} of {NOISES}",
        f"{seconds:.2f} s",
    ]


async def measure(voice: Piper | Flite) -> list[Sequence[str]]:
    named, without = load()
    ears = make_stt("local")
    assert isinstance(ears, WhisperSTT)
    sounds = [await voice.say(said) for said in [*named, *without]]
    rows = list[Sequence[str]]()
    names = [each.name for each in named]
    await recognised(ears, sounds[0])
    for way in ("alone", "told the names"):

        def tell(number: int, told: bool = way != "alone") -> None:
            terms = hotwords(told_with(names, number)) if told else []
            ears._update_session_keyterms(terms)  # pyright: ignore[reportPrivateUsage] - LiveKit's

        since, heard = time.perf_counter(), list[str]()
        for number, sound in enumerate(sounds):
            tell(number)
            heard.append(await recognised(ears, sound))
        seconds = (time.perf_counter() - since) / len(sounds)
        pairs = list(zip([*named, *without], heard, strict=True))
        noises = [await recognised(ears, noise(number)) for number in range(NOISES)]
        rows.append(row(way, pairs[: len(named)], pairs[len(named) :], noises, seconds))
    await ears.aclose()
    await voice.aclose()
    return rows


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--flite", nargs="*", default=[], help="voices, such as slt and awb")
    voices: list[Piper | Flite] = [Piper(), *map(Flite, options.parse_args().flite)]
    for voice in voices:
        print_table(
            f"{voice.name}: sixty requests with a name, forty without",
            [
                "the recogniser",
                "names, built on",
                "names, held out",
                "other words lost",
                "lost without a name",
                "a name that nobody said",
                "noises with words, with a name",
                "a request",
            ],
            asyncio.run(measure(voice)),
        )


if __name__ == "__main__":
    main()
