"""Hears a wake word in sound, by microWakeWord's models (`pip install 'caal-node[wake-word]'`).

A step of 10 ms takes 0.05 ms of one core, so it runs on the event loop, frame by frame.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# numpy's views of LiveKit's frames have half a type.

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from livekit import rtc

from caal_node.core.errors import ConfigError
from caal_node.speech.local_models import import_library

SAMPLE_RATE_HZ: Final = 16_000


class WakeWord:
    """One wake word, listened for in one session.

    Args:
        word: One that the package brings, such as `hey_jarvis`, or the path of a microWakeWord
            model's JSON file.
    """

    def __init__(self, word: str) -> None:
        self._word: Final = word
        self._model: Any = None
        self._features: Any = None
        self._resampler: rtc.AudioResampler | None = None
        self._rate_hz = SAMPLE_RATE_HZ

    def load(self) -> None:
        """Read the model, which blocks; `hears` needs it.

        Raises:
            ConfigError: the package is not installed, or has no such word.
        """
        library = import_library("pymicro_wakeword", "pymicro-wakeword", extra="wake-word")
        self._model = _model(library, self._word)
        self._features = library.MicroWakeWordFeatures()

    def hears(self, frame: rtc.AudioFrame) -> bool:
        """Say whether the word ends in this frame, behind those before it."""
        samples = np.frombuffer(frame.data, np.int16)[:: frame.num_channels]
        mono = rtc.AudioFrame(samples.tobytes(), frame.sample_rate, 1, len(samples))
        if frame.sample_rate != self._rate_hz:
            self._rate_hz = frame.sample_rate
            self._resampler = rtc.AudioResampler(frame.sample_rate, SAMPLE_RATE_HZ)
        frames = [mono] if self._rate_hz == SAMPLE_RATE_HZ else self._resampled(mono)
        heard = [
            self._model.process_streaming(features)
            for each in frames
            for features in self._features.process_streaming(bytes(each.data))
        ]
        return any(heard)

    def _resampled(self, frame: rtc.AudioFrame) -> list[rtc.AudioFrame]:
        assert self._resampler is not None
        return self._resampler.push(frame)


def _model(library: Any, word: str) -> Any:
    if word.endswith(".json"):
        try:
            path = Path(word)
            weights = json.loads(path.read_text("utf-8"))["model"]
            if not (path.parent / weights).is_file():  # its library would end the process
                raise FileNotFoundError(weights)
            return library.MicroWakeWord.from_config(path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"CAAL_ANSWERS: {word} is no model of microWakeWord ({type(error).__name__}); write"
                " the path of its JSON file, with the .tflite file beside it"
            ) from error
    known = {each.value: each for each in library.Model}
    if word not in known:
        raise ConfigError(
            f"CAAL_ANSWERS: there is no wake word {word}; write wake: and one of"
            f" {', '.join(sorted(known))}, or the path of a microWakeWord model's JSON file"
        )
    return library.MicroWakeWord.from_builtin(known[word])
