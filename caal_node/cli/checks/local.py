"""These checks look at what the settings name on this machine, and for misspelt variables.

The parts of speech must be importable, and their weights must be here.
"""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from caal_node import speech, weights
from caal_node.cli.checks import Finding, fail, fail_from, in_thread, ok, warn
from caal_node.cli.chosen_agent import chosen_agent
from caal_node.config.file import unknown_variables
from caal_node.config.settings import FIELDS, Settings, hidden_lines, settings_files
from caal_node.core import paths
from caal_node.core.errors import ConfigError
from caal_node.prompt_builder import instructions_of
from caal_node.room.cue_files import load_wav
from caal_node.speech.wake_word import WakeWord
from caal_node.tools.middleware.dry_run import DRY_RUN
from caal_node.tools.middleware.standard import dry_run_line
from mcp_bridge.core.files import no_folder, read_capped
from mcp_bridge.security.ownership import folder_fault, is_checked

CUES: Final = "cues"
STATE: Final = "state"
BRIDGE: Final = "mcp-bridge"
MAX_SCRIPT_BYTES: Final = 64 << 10
"""The script that an installer writes for a command has some 200 bytes."""
FREE_BYTES: Final = 64 << 20
"""The largest files of the folder are 16 MiB, and are written anew as a whole."""
NOT_SETTINGS: Final = frozenset({"CAAL_CACHE", "CAAL_CONFIG", "CAAL_STATE", "CAAL_TEST_GGUF"})
"""These variables of the project are read elsewhere."""

EXTRA: Final = 'Run: pip install "caal-node[local-speech]", or set {variable}=none.'


def unknown_settings() -> list[tuple[str, str]]:
    """Return each variable that is not a setting, with the most similar setting or ""."""
    pairs = unknown_variables(os.environ, FIELDS)
    return [pair for pair in pairs if pair[0] not in NOT_SETTINGS]


async def check_settings(settings: Settings) -> Sequence[Finding]:
    found = [
        warn(
            "settings", f"{name} is not a setting", f"Did you mean {near}?" if near else "Unset it."
        )
        for name, near in unknown_settings()
    ] or [ok("settings", "the name of every variable is known")]
    files = [str(each) for each in settings_files() if each.exists()]
    found.append(ok("settings", f"read from {', '.join(files) or 'no caal.toml'}"))
    found += [
        warn("settings", f"{name} overrides {line}", f"Remove that line, or unset {name}.")
        for name, line in hidden_lines()
    ]
    if line := dry_run_line(settings):
        found.append(warn("settings", f"{line}: {DRY_RUN}", "Set it to off for real calls."))
    return found


async def check_state(settings: Settings) -> Sequence[Finding]:
    """Look at the folder where accepted tools, sign-ins and findings about models are kept."""
    return [await in_thread(lambda: _state_finding(paths.state_folder()))]


def _state_finding(folder: Path) -> Finding:
    if (other := no_folder(folder)) is not None:
        found = f"{other} is not a folder, so nothing can be kept, and MCP tools are held back"
        return fail(STATE, found, f"Move {other} away, or set CAAL_STATE to another folder.")
    if not folder.exists():
        return ok(STATE, f"{folder}, not made yet")
    if is_checked():
        if (who := folder_fault(folder, os.geteuid())) is not None:
            found, _, fix = who.partition("; run: ")
            return fail(STATE, f"{folder} {found}", f"Run: {fix}")
        if folder.stat().st_mode & 0o077:
            found = f"{folder} can be opened by other users of this machine"
            return warn(STATE, found, f"Run: chmod 700 {shlex.quote(str(folder))}")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return fail(STATE, f"{folder} cannot be written", "Fix its owner and mode.")
    if (free := shutil.disk_usage(folder).free) < FREE_BYTES:
        found = f"{folder}: its disk has {free >> 20} MiB left, so little will be kept"
        return warn(STATE, found, "Make room on that disk.")
    return ok(STATE, str(folder))


async def check_bridge_command(settings: Settings) -> Sequence[Finding]:
    """Say whether `mcp-bridge` is another distribution's command; without one there is nothing."""
    if (found := shutil.which(BRIDGE)) is None or await in_thread(lambda: _is_ours(Path(found))):
        return []
    fix = "Use caal-node mcp serve and caal-node mcp unit, which are the same commands."
    return [warn(BRIDGE, f"{found} is another program of that name", fix)]


def _is_ours(script: Path) -> bool:
    """Return whether a command begins our package, or cannot be told from one that does."""
    try:
        text = read_capped(script, MAX_SCRIPT_BYTES)
    except (OSError, ValueError):
        return True  # a script of a package is short
    return b"caal_node" in text or b"caal-node" in text or b"\0" in text


async def check_cues(settings: Settings) -> Sequence[Finding]:
    if not settings.cues.on:
        return [ok(CUES, "off")]
    files, wrong = settings.cues.files.values(), list[Finding]()
    for path in files:
        try:
            await in_thread(lambda path=path: load_wav(path))
        except ConfigError as error:
            wrong.append(fail_from(CUES, f"CAAL_CUES: {error}"))
    return wrong or [ok(CUES, ", ".join(map(str, files)) or "built in")]


async def check_agent(settings: Settings) -> Sequence[Finding]:
    found: list[Finding] = []
    try:
        instructions_of(settings)
        found.append(ok("instructions", str(settings.instructions or "built in")))
    except ConfigError as error:
        found.append(fail_from("instructions", str(error)))
    if settings.agent is not None:
        try:
            chosen_agent(settings, None)
            found.append(ok("agent", settings.agent))
        except ConfigError as error:
            found.append(fail_from("agent", str(error)))
    return found


async def check_stt(settings: Settings) -> Sequence[Finding]:
    local = ("faster_whisper", weights.WHISPER_TINY_EN)
    found = [
        _for_rooms(settings, await _speech_part("CAAL_STT", settings.stt, speech.make_stt, local))
    ]
    if word := settings.answers.wake_word:
        try:
            await in_thread(WakeWord(word).load)
            found.append(ok("wake-word", word))
        except ConfigError as error:
            found.append(fail_from("wake-word", str(error)))
    return found


async def check_tts(settings: Settings) -> Sequence[Finding]:
    local = ("piper", weights.PIPER_JOE)
    found = await _speech_part("CAAL_TTS", settings.tts, speech.make_tts, local)
    return [_for_rooms(settings, found)]


async def check_vad(settings: Settings) -> Sequence[Finding]:
    # livekit-plugins-silero is a dependency, and carries its weights.
    return [await _speech_part("CAAL_VAD", settings.vad, speech.make_vad, None)]


def _for_rooms(settings: Settings, found: Finding) -> Finding:
    """Return a missing default as a remark where nobody has set up a place to speak in."""
    default = getattr(settings, found.name) == "local"
    if found.status != "fail" or not default or settings.has_rooms:
        return found
    return warn(found.name, f"{found.found}; chat needs no speech", found.fix)


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
        return fail(name, found, "Install it, or fix the name.")
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
        fix = EXTRA.format(variable=variable)
        return fail(name, f"{variable}=local, but {module} is not installed", fix)
    if await in_thread(lambda: weights.present(weight)) is None:
        fix = "Run: caal-node download-files"
        return fail(name, f"{weight.title} is not in the cache", fix)
    return ok(name, f"local, {weight.title}")
