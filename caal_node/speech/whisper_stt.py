"""Speech to text on this machine: faster-whisper behind LiveKit's STT class.

It recognises whole utterances, and AgentSession puts its own VAD adapter in front of it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
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

from caal_node.speech.worker_thread import ModelThread, import_library, speech_threads

logger = logging.getLogger("caal_node.speech")

# Whisper is trained on this rate: https://arxiv.org/abs/2212.04356, section 2.2.
SAMPLE_RATE_HZ = 16_000
# Silero's adapter hands over at most 60 s; a longer utterance keeps its newest part.
MAX_UTTERANCE_S = 60
# tiny.en needs about 0.5 s for a sentence on two cores; past this the person has given up.
DEADLINE_S = 30.0


class WhisperSTT(stt.STT[Any]):
    """Speech recognition by faster-whisper, in int8 and with greedy decoding.

    Constructing it imports the library (about a second), so construct it before the event loop
    runs or in a job's prewarm function.

    Args:
        folder: A Whisper model of CTranslate2: model.bin, config.json, tokenizer.json, vocabulary.
        language: An ISO 639-1 code; "en" for an `.en` model.
        threads: The model uses at most so many cores.

    Raises:
        ConfigError: The `local-speech` extra is not installed.
    """

    def __init__(self, folder: Path, *, language: str = "en", threads: int | None = None) -> None:
        super().__init__(capabilities=stt.STTCapabilities(streaming=False, interim_results=False))
        self._folder = Path(folder)
        self._language = language
        library = import_library("faster_whisper", "faster-whisper")

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
        """Load the model in its thread and run it once; this returns at once."""
        silence = np.zeros(SAMPLE_RATE_HZ, np.float32)
        self._thread.warm_up(lambda model: self._transcribe(model, silence, threading.Event()))

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
                speech = await self._thread.run(
                    lambda model: self._transcribe(model, _samples(buffer), stop)
                )
        except TimeoutError:
            # A second try would only wait for the first.
            raise APITimeoutError("speech recognition was too slow", retryable=False) from None
        finally:
            stop.set()
        return stt.SpeechEvent(
            type=stt.SpeechEventType.FINAL_TRANSCRIPT,
            request_id=utils.shortuuid("whisper_"),
            alternatives=[speech],
        )

    def _transcribe(
        self, model: Any, samples: NDArray[np.float32], stop: threading.Event
    ) -> stt.SpeechData:
        """Recognise speech in the thread. Segments come one by one, so `stop` can end it."""
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
    """Return the newest `MAX_UTTERANCE_S` as one channel at 16 kHz, in [-1, 1]."""
    frame = utils.merge_frames(buffer) if isinstance(buffer, list) else buffer
    max_samples = frame.sample_rate * frame.num_channels * MAX_UTTERANCE_S
    data = np.frombuffer(frame.data, np.int16)[-max_samples:]
    if frame.num_channels > 1:
        data = data.reshape(-1, frame.num_channels).mean(axis=1).astype(np.int16)
    if frame.sample_rate != SAMPLE_RATE_HZ:
        data = _resampled(data, frame.sample_rate)
    return data.astype(np.float32) / 32_768.0


def _resampled(data: NDArray[np.int16], rate: int) -> NDArray[np.int16]:
    resampler = rtc.AudioResampler(rate, SAMPLE_RATE_HZ, num_channels=1)
    frames = [*resampler.push(bytearray(data.tobytes())), *resampler.flush()]
    return np.concatenate([np.frombuffer(frame.data, np.int16) for frame in frames] or [data[:0]])
