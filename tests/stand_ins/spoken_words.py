"""Sentences spoken by the project's own voice, for a person in a test's room."""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np
from livekit.agents.tts import TTS

from caal_node.cli.demo.scenes import RATE_HZ, SpokenRequest


async def spoken_by(voice: TTS[Any], words: str) -> SpokenRequest:
    """A recording of `words`, at the rate of the demo's microphone."""
    async with voice.synthesize(words) as stream:
        frames = [event.frame async for event in stream]
    rate = frames[0].sample_rate
    samples = np.concatenate([np.frombuffer(frame.data, dtype=np.int16) for frame in frames])
    step = gcd(rate, RATE_HZ)
    at = np.arange(samples.size * (RATE_HZ // step) // (rate // step)) * (rate / RATE_HZ)
    return SpokenRequest(words, np.interp(at, np.arange(samples.size), samples).astype(np.int16))
