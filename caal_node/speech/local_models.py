"""The speech models on this machine: faster-whisper and piper behind LiveKit's STT and TTS.

Both are extras, and are imported only where they are used; piper is GPL-3.0.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import re
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

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
    tts,
    utils,
)
from numpy.typing import NDArray

from caal_node.core.errors import ConfigError
from mcp_bridge.core.files import read_capped

# A thread for each speech model: its calls run in turn, and never on the event loop.

T = TypeVar("T")
Model = TypeVar("Model")

# Speech models gain little past this, and the language model needs cores at the same moment.
MAX_THREADS = 4


def speech_threads() -> int:
    """Return how many cores a speech model may use at once."""
    return min(MAX_THREADS, os.cpu_count() or 1)


def keep_silent() -> None:
    """Have ONNX Runtime, on which local speech runs, tell its maker nothing.

    It tells of its use once it is imported. Speech that stays on this machine is why people take
    it; who wants to tell sets the variable to 0.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def import_library(module: str, package: str, *, extra: str = "local-speech") -> Any:
    """Import a library of local speech. None has type information, so tests check what is used.

    Raises:
        ConfigError: The extra is not installed.
    """
    keep_silent()
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{package} is not installed; pip install 'caal-node[{extra}]'"
        ) from error


class ModelThread(Generic[Model]):
    """Loads a model once, in a thread of its own, and runs every use of it there."""

    def __init__(self, name: str, load: Callable[[], Model]) -> None:
        self._name = name
        self._load = load
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._model: Model | None = None

    def warm_up(self, use: Callable[[Model], object]) -> Future[None]:
        """Load and use the model once, in the background.

        A failure is logged; the first real use meets it again, and raises it.
        """

        def run() -> None:
            try:
                use(self._get_model())
            except Exception as error:
                logger.warning("%s cannot be warmed up: %s", self._name, error)

        return self._pool.submit(run)

    async def run(self, use: Callable[[Model], T]) -> T:
        """Run `use(model)` in the thread.

        Cancelling returns at once; a use that has begun goes on until it sees its own stop event.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: use(self._get_model()))

    async def aclose(self) -> None:
        """Wait for the use under way, drop those that wait, and end the thread."""
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)
        self._model = None

    def _get_model(self) -> Model:
        if self._model is None:
            self._model = self._load()
        return self._model


# Text to speech: a piper voice.
#
# It speaks a sentence at a time, and AgentSession's own sentence adapter feeds it.

logger = logging.getLogger("caal_node.speech")

# About ten minutes of speech. A longer text is a mistake of the model, and its rest is not spoken.
MAX_TEXT_CHARS = 10_000
# Silence in place of a text with nothing to pronounce ("..."): LiveKit takes no audio for a failure
# and would try again.
PAUSE_S = 0.02
# A voice's description is 5 kB.
MAX_CONFIG_BYTES = 1 << 20


class PiperTTS(tts.TTS[Any]):
    """A piper voice, which speaks in mono and 16 bit at its own rate.

    Constructing it imports the library (about half a second), so construct it before the event
    loop runs or in a job's prewarm function.

    Args:
        voice: The `.onnx` file; its `.onnx.json` lies beside it.
        speed: 1.0 is the voice's own speed, and 1.2 a fifth faster.
        threads: The voice uses at most so many cores.

    Raises:
        ConfigError: The extra is not installed, or the voice's files cannot be read.
    """

    def __init__(self, voice: Path, *, speed: float = 1.0, threads: int | None = None) -> None:
        self._voice = Path(voice)
        config = _read_config(self._voice)
        super().__init__(
            capabilities=tts.TTSCapabilities(streaming=False),
            sample_rate=config["audio"]["sample_rate"],
            num_channels=1,
        )
        piper = import_library("piper", "piper-tts")
        runtime = import_library("onnxruntime", "piper-tts")
        # At debug level the library logs what is spoken.
        logging.getLogger("piper.voice").setLevel(logging.INFO)

        def load() -> Any:
            options = runtime.SessionOptions()
            options.intra_op_num_threads = threads or speech_threads()
            # Threads that spin between two sentences take the core from the language model.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            session = runtime.InferenceSession(
                str(self._voice), sess_options=options, providers=["CPUExecutionProvider"]
            )
            return piper.PiperVoice(session=session, config=piper.PiperConfig.from_dict(config))

        self.thread: ModelThread[Any] = ModelThread("piper", load)
        self.settings: Any = piper.SynthesisConfig(
            length_scale=config.get("inference", {}).get("length_scale", 1.0) / speed
        )

    @property
    def model(self) -> str:
        return self._voice.stem

    @property
    def provider(self) -> str:
        return "piper"

    def prewarm(self) -> None:
        """Load the voice in its thread, and have it speak a word that nobody hears. It returns at
        once."""
        self.thread.warm_up(lambda voice: list(voice.synthesize("Ready.", self.settings)))

    def synthesize(
        self, text: str, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> PiperStream:
        return PiperStream(self, text, conn_options)

    async def aclose(self) -> None:
        await self.thread.aclose()


class PiperStream(tts.ChunkedStream):
    """The audio of one text, which comes sentence by sentence as the thread makes it.

    Closing the stream returns at once; the thread stops after the sentence that it is in.
    """

    def __init__(self, speaker: PiperTTS, text: str, conn_options: APIConnectOptions) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType] - LiveKit leaves its type open
            tts=speaker, input_text=text, conn_options=conn_options
        )
        self._speaker = speaker

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        speaker = self._speaker
        rate = speaker.sample_rate
        output_emitter.initialize(
            request_id=utils.shortuuid("piper_"),
            sample_rate=rate,
            num_channels=1,
            mime_type="audio/pcm",
        )
        if len(text := self._input_text) > MAX_TEXT_CHARS:
            logger.warning("%d characters to speak, cut to %d", len(text), MAX_TEXT_CHARS)
            text = text[:MAX_TEXT_CHARS]
        loop = asyncio.get_running_loop()
        stop = threading.Event()

        def speak(voice: Any) -> bool:
            spoke = False
            for chunk in voice.synthesize(text, speaker.settings):
                if stop.is_set():
                    break
                loop.call_soon_threadsafe(output_emitter.push, chunk.audio_int16_bytes)
                spoke = True
            return spoke

        try:
            if not await speaker.thread.run(speak):
                output_emitter.push(bytes(2 * int(rate * PAUSE_S)))
        finally:
            stop.set()


def _read_config(voice: Path) -> dict[str, Any]:
    path = voice.with_name(f"{voice.name}.json")
    try:
        config: dict[str, Any] = json.loads(read_capped(path, MAX_CONFIG_BYTES))
        if not isinstance(config["audio"]["sample_rate"], int):
            raise TypeError("audio.sample_rate is not a number")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path}: not a piper voice's description ({error}); it must lie beside the .onnx file"
        ) from error
    if not voice.is_file():
        raise ConfigError(f"{voice}: no such file; give the path of a piper voice")
    return config


# Speech to text: faster-whisper.
#
# It recognises whole utterances, and AgentSession puts its own VAD adapter in front of it.

# Whisper is trained on this rate: https://arxiv.org/abs/2212.04356, section 2.2.
SAMPLE_RATE_HZ = 16_000
# Silero's adapter hands over at most 60 s; a longer utterance keeps its newest part.
MAX_UTTERANCE_S = 60
# tiny.en needs about 0.5 s for a sentence on two cores; past this the person has given up.
DEADLINE_S = 30.0
_WORD = re.compile(r"\w+")


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
        super().__init__(
            capabilities=stt.STTCapabilities(streaming=False, interim_results=False, keyterms=True)
        )
        self._folder = Path(folder)
        self._language = language
        self._names: list[str] = []
        library = import_library("faster_whisper", "faster-whisper")

        def load() -> Any:
            model = library.WhisperModel(
                str(self._folder),
                device="cpu",
                compute_type="int8",
                cpu_threads=threads or speech_threads(),
                local_files_only=True,
            )
            model.encode = _Encoded(model.encode)
            return model

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

    def _update_session_keyterms(self, keyterms: list[str]) -> None:
        self._names = keyterms

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
        """Recognise speech in the thread, with the names that were told where they are heard then.

        Told names make other words worse: 5 of 40 requests without a name were wrong that had been
        right. So what is heard with them counts only where there is a name in it that was missing.
        """
        names = self._names
        try:
            heard = self._decode(model, samples, stop)
            if names and heard.text and not stop.is_set():
                told = self._decode(model, samples, stop, ", ".join(names))
                if any(_holds(told.text, name) and not _holds(heard.text, name) for name in names):
                    return told
            return heard
        finally:
            model.encode.forget()

    def _decode(
        self,
        model: Any,
        samples: NDArray[np.float32],
        stop: threading.Event,
        hotwords: str | None = None,
    ) -> stt.SpeechData:
        """Decode speech. Segments come one by one, so `stop` can end it."""
        segments, _ = model.transcribe(
            samples,
            language=self._language,
            beam_size=1,
            # One temperature: the usual six mean up to six decodes of a noise.
            temperature=0.0,
            condition_on_previous_text=False,
            without_timestamps=True,
            hotwords=hotwords,
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


class _Encoded:
    """The encoder of a Whisper model, which does most of the work: once for each piece of sound."""

    def __init__(self, encode: Callable[[NDArray[np.float32]], Any]) -> None:
        self._encode = encode
        self._made: dict[bytes, Any] = {}

    def __call__(self, features: NDArray[np.float32]) -> Any:
        key = features.tobytes()
        if key not in self._made:
            self._made[key] = self._encode(features)
        return self._made[key]

    def forget(self) -> None:
        self._made.clear()


def _holds(text: str, name: str) -> bool:
    return f" {_words(name)} " in f" {_words(text)} "


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


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
