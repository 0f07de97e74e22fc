"""These checks see that the parts of speech can be imported, and that their weights are here."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, Final

from caal_node import speech, weights
from caal_node.cli.checks.check import Finding, fail, fail_from, in_thread, ok
from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError

EXTRA: Final = 'Run: pip install "caal-node[local-speech]", or set {variable}=none.'


async def check_stt(settings: Settings) -> Sequence[Finding]:
    local = ("faster_whisper", weights.WHISPER_TINY_EN)
    return [await _speech_part("CAAL_STT", settings.stt, speech.make_stt, local)]


async def check_tts(settings: Settings) -> Sequence[Finding]:
    return [
        await _speech_part("CAAL_TTS", settings.tts, speech.make_tts, ("piper", weights.PIPER_JOE))
    ]


async def check_vad(settings: Settings) -> Sequence[Finding]:
    # livekit-plugins-silero is a dependency, and carries its weights.
    return [await _speech_part("CAAL_VAD", settings.vad, speech.make_vad, None)]


async def _speech_part(
    variable: str, spec: str, make: Callable[[str], object], local: tuple[str, Any] | None
) -> Finding:
    name = variable.removeprefix("CAAL_").lower()
    if spec == "none":
        return ok(name, "none: text only")
    if spec == "local":
        return await _local_part(variable, name, local)
    try:
        # Here, and not in the thread below: LiveKit's plugins register in the main thread only.
        importlib.import_module(spec.partition(":")[0])
    except Exception as error:
        found = f"{variable}={spec} cannot be imported ({type(error).__name__}: {error})"
        return fail(name, found, "Install it, or mend the name.")
    try:
        await in_thread(lambda: make(spec))
    except ConfigError as error:
        return fail_from(name, str(error))
    return ok(name, spec)


async def _local_part(variable: str, name: str, local: tuple[str, Any] | None) -> Finding:
    if local is None:
        return ok(name, "local")
    module, weight = local
    if find_spec(module) is None:
        mend = EXTRA.format(variable=variable)
        return fail(name, f"{variable}=local, but {module} is not installed", mend)
    if await in_thread(lambda: weights.present(weight)) is None:
        mend = f"Run: python -m caal_node.weights {weight.key}"
        return fail(name, f"{weight.title} is not in the cache", mend)
    return ok(name, f"local, {weight.title}")
