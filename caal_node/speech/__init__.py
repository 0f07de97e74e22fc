"""Speech recognition, speech synthesis and voice activity, as CAAL_STT, CAAL_TTS and CAAL_VAD say.

Each setting is `local` (faster-whisper, piper and Silero on this machine), `none` (the room has
text only), or `module:factory`, a function without arguments that returns LiveKit's STT, TTS or
VAD. The `make_*` functions import libraries and may take a second, so they belong before the event
loop or in a job's prewarm function; they raise ConfigError, whose message says what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from livekit.agents import stt, tts, vad
from rich.console import Console

from caal_node.config.object_reference import call_factory
from caal_node.core.errors import ConfigError
from caal_node.speech.local_models import PiperTTS, WhisperSTT, keep_silent
from caal_node.weights import PIPER_JOE, WHISPER_TINY_EN, Weight, ensure, present

# LiveKit leaves the event type of its classes open, and so does this project.
_STT: type[stt.STT[Any]] = stt.STT
_TTS: type[tts.TTS[Any]] = tts.TTS

T = TypeVar("T")

__all__ = ["fetch_local", "make_stt", "make_tts", "make_vad"]


def make_stt(spec: str) -> stt.STT[Any] | None:
    """Make the speech recognition that CAAL_STT names."""
    return _make(spec, _STT, "CAAL_STT", lambda: WhisperSTT(_cached("CAAL_STT", WHISPER_TINY_EN)))


def make_tts(spec: str) -> tts.TTS[Any] | None:
    """Make the voice that CAAL_TTS names."""
    return _make(spec, _TTS, "CAAL_TTS", lambda: PiperTTS(_cached("CAAL_TTS", PIPER_JOE)))


def make_vad(spec: str) -> vad.VAD | None:
    """Make the voice activity detection that CAAL_VAD names; Silero's package has its weights.

    Call it in the main thread, where LiveKit's plugins register themselves.
    """
    return _make(spec, vad.VAD, "CAAL_VAD", _make_silero)


def _make_silero() -> vad.VAD:
    # The plugin loads onnxruntime, which an agent without it does not need.
    keep_silent()
    from livekit.plugins import silero

    return silero.VAD.load()


def _make(spec: str, kind: type[T], setting: str, make_local: Callable[[], T]) -> T | None:
    if spec == "none":
        return None
    if spec == "local":
        return make_local()
    return call_factory(spec, kind, setting, words="local, none, or ")


def fetch_local(*, stt: str, tts: str, console: Console | None = None) -> None:
    """Download what `local` needs and the cache lacks. It blocks, and shows progress.

    Raises:
        ConfigError: It cannot be fetched; the message says what to do.
    """
    for spec, weight in ((stt, WHISPER_TINY_EN), (tts, PIPER_JOE)):
        if spec == "local":
            ensure(weight, console=console)


def _cached(setting: str, weight: Weight) -> Path:
    if path := present(weight):
        return path
    raise ConfigError(
        f"{setting}=local: {weight.title} is not in the cache; "
        "fetch it with: caal-node download-files"
    )
