"""Speech to text on this machine: faster-whisper behind LiveKit's STT class.

It recognises whole utterances; AgentSession puts its own VAD adapter in front of it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from livekit import rtc
from livekit.agents import (
    DEFAULT_API_CONNECT_OPTIONS,
    NOT_GIVEN,
    APIConnectOptions,
    APITimeoutError,
    LanguageCode,
    NotGivenOr,
    stt,
    utils,
)
from numpy.typing import NDArray

from caal_node.speech.worker_thread import ModelThread, missing_extra, speech_threads

logger = logging.getLogger("caal_node.speech")

# What Whisper is trained on: https://arxiv.org/abs/2212.04356, section 2.2.
SAMPLE_RATE_HZ = 16_000
# Silero's adapter hands over at most 60 s; a longer utterance keeps its newest part.
MAX_UTTERANCE_S = 60
# tiny.en needs about 0.5 s for a sentence on two cores; past this the person has given up.
DEADLINE_S = 30.0


class WhisperSTT(stt.STT[Any]):
    """faster-whisper, int8, greedy.

    Args:
        folder: a CTranslate2 Whisper model (model.bin, config.json, tokenizer.json, vocabulary).
        language: ISO 639-1; the only one for an `.en` model.
        threads: at most this many cores.

    Constructing it imports the library (about a second), so construct it before the event loop
    runs or in a job's prewarm function.

    Raises:
        ConfigError: the `local-speech` extra is not installed.
    """

    def __init__(self, folder: Path, *, language: str = "en", threads: int | None = None) -> None:
        super().__init__(capabilities=stt.STTCapabilities(streaming=False, interim_results=False))
        self._folder = Path(folder)
        self._language = language
        try:
            # It has no type information; what is used of it is checked by the tests.
            library: Any = import_module("faster_whisper")
        except ImportError as error:
            raise missing_extra("faster-whisper") from error

        def load() -> Any:
            return library.WhisperModel(
                str(self._folder),
                device="cpu",
                compute_type="int8",
                cpu_threads=threads or speech_threads(),
                local_files_only=True,
            )

        self._thread: ModelThread[Any] = ModelThread("whisper", load)

    @property
    def model(self) -> str:
        return self._folder.name

    @property
    def provider(self) -> str:
        return "faster-whisper"

    def prewarm(self) -> None:
        """Load the model and run it once, in its thread; returns at once."""
        silence = np.zeros(SAMPLE_RATE_HZ, np.float32)
        self._thread.warm(lambda model: self._transcribe(model, silence, threading.Event()))

    async def aclose(self) -> None:
        await self._thread.aclose()

    async def _recognize_impl(
        self,
        buffer: utils.AudioBuffer,
        *,
        language: NotGivenOr[str] = NOT_GIVEN,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
    ) -> stt.SpeechEvent:
        stop = threading.Event()
        try:
            async with asyncio.timeout(DEADLINE_S):
                heard = await self._thread.run(
                    lambda model: self._transcribe(model, _samples(buffer), stop)
                )
        except TimeoutError:
            # A second try would only stand in line behind the first.
            raise APITimeoutError("speech recognition was too slow", retryable=False) from None
        finally:
            stop.set()
        return stt.SpeechEvent(
            type=stt.SpeechEventType.FINAL_TRANSCRIPT,
            request_id=utils.shortuuid("whisper_"),
            alternatives=[heard],
        )

    def _transcribe(
        self, model: Any, samples: NDArray[np.float32], stop: threading.Event
    ) -> stt.SpeechData:
        """In the thread. The segments are decoded as they are asked for, so `stop` ends it."""
        segments, _ = model.transcribe(
            samples,
            language=self._language,
            beam_size=1,
            # One temperature: the usual six mean up to six decodes of a noise.
            temperature=0.0,
            condition_on_previous_text=False,
            without_timestamps=True,
        )
        texts: list[str] = []
        confidences: list[float] = []
        for segment in segments:
            texts.append(segment.text.strip())
            confidences.append(math.exp(segment.avg_logprob))
            if stop.is_set():
                break
        return stt.SpeechData(
            language=LanguageCode(self._language),
            text=" ".join(texts).strip(),
            end_time=len(samples) / SAMPLE_RATE_HZ,
            confidence=min(confidences, default=0.0),
        )


def _samples(buffer: utils.AudioBuffer) -> NDArray[np.float32]:
    """One channel at 16 kHz in [-1, 1], its newest `MAX_UTTERANCE_S`."""
    frame = utils.merge_frames(buffer) if isinstance(buffer, list) else buffer
    kept = frame.sample_rate * frame.num_channels * MAX_UTTERANCE_S
    data = np.frombuffer(frame.data, np.int16)[-kept:]
    if frame.num_channels > 1:
        data = data.reshape(-1, frame.num_channels).mean(axis=1).astype(np.int16)
    if frame.sample_rate != SAMPLE_RATE_HZ:
        data = _resampled(data, frame.sample_rate)
    return data.astype(np.float32) / 32_768.0


def _resampled(data: NDArray[np.int16], rate: int) -> NDArray[np.int16]:
    resampler = rtc.AudioResampler(rate, SAMPLE_RATE_HZ, num_channels=1)
    frames = [*resampler.push(bytearray(data.tobytes())), *resampler.flush()]
    return np.concatenate([np.frombuffer(frame.data, np.int16) for frame in frames] or [data[:0]])
