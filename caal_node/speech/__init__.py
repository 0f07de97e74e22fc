"""Ears and voice: what CAAL_STT, CAAL_TTS and CAAL_VAD name.

Each is `local` (what this project brings: faster-whisper, piper, Silero), `none` (the room has
text only), or `module:factory` of one's own, a function without arguments that gives LiveKit's
STT, TTS or VAD. The `make_*` functions import libraries and may take a second, so they belong
before the event loop or in a job's prewarm function.
"""

from __future__ import annotations

from typing import Any, NoReturn

from livekit.agents import stt, tts, vad
from rich.console import Console

from caal_node import weights
from caal_node.config.object_reference import call_factory
from caal_node.core.errors import ConfigError

# LiveKit leaves its classes' event type open; so do we.
_STT: type[stt.STT[Any]] = stt.STT
_TTS: type[tts.TTS[Any]] = tts.TTS

_WORDS = "local, none, or "

__all__ = ["fetch_local", "make_stt", "make_tts", "make_vad"]


def make_stt(spec: str) -> stt.STT[Any] | None:
    """Raises: ConfigError: what CAAL_STT names is not there; the message has the mend."""
    if spec == "none":
        return None
    if spec != "local":
        return call_factory(spec, _STT, "CAAL_STT", words=_WORDS)
    from caal_node.speech.whisper_stt import WhisperSTT

    found = weights.present(weights.WHISPER_TINY_EN) or _absent("CAAL_STT", weights.WHISPER_TINY_EN)
    return WhisperSTT(found)


def make_tts(spec: str) -> tts.TTS[Any] | None:
    """Raises: ConfigError: what CAAL_TTS names is not there; the message has the mend."""
    if spec == "none":
        return None
    if spec != "local":
        return call_factory(spec, _TTS, "CAAL_TTS", words=_WORDS)
    from caal_node.speech.piper_tts import PiperTTS

    found = weights.present(weights.PIPER_JOE) or _absent("CAAL_TTS", weights.PIPER_JOE)
    return PiperTTS(found)


def make_vad(spec: str) -> vad.VAD | None:
    """Silero's weights come with its package. Import this module in the main thread: LiveKit
    plugins register themselves there.

    Raises: ConfigError: what CAAL_VAD names is not there; the message has the mend.
    """
    if spec == "none":
        return None
    if spec != "local":
        return call_factory(spec, vad.VAD, "CAAL_VAD", words=_WORDS)
    from livekit.plugins import silero

    return silero.VAD.load()


def fetch_local(*, stt: str, tts: str, console: Console | None = None) -> None:
    """Download what `local` needs and is not in the cache yet. It blocks, with progress bars.

    Raises: ConfigError: it cannot be fetched; the message has the mend.
    """
    for spec, weight in ((stt, weights.WHISPER_TINY_EN), (tts, weights.PIPER_JOE)):
        if spec == "local":
            weights.ensure(weight, console=console)


def _absent(setting: str, weight: weights.Weight) -> NoReturn:
    raise ConfigError(
        f"{setting}=local: {weight.title} is not in the cache; "
        f"fetch it with: python -m caal_node.weights {weight.key}"
    )
