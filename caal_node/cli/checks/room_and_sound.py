"""These checks try what a voice needs: LiveKit and its keys, or microphone and speakers here."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from caal_node.cli.checks import Finding, fail, fail_from, ok, warn
from caal_node.config.settings import Settings
from caal_node.control.room_agents import ControlError, LiveKitRefused, LiveKitRooms
from caal_node.core.addresses import is_loopback
from caal_node.core.counted import counted
from caal_node.core.errors import ConfigError

# What `caal-node console` hears and speaks with: PortAudio and devices.

SOUND: Final = "sound"
SOUND_S: Final = 15.0
"""Seconds: a sound server that is starting takes some, and PortAudio asks every driver."""
TEXT: Final = "or type to it: caal-node console --text"
_INSTALL: Final = (
    "Run: sudo apt-get install libportaudio2 (on other systems, the package portaudio)"
)
_DEVICES: Final = """\
import json
import sounddevice
found = []
for kind in ("input", "output"):
    try:
        found.append(sounddevice.query_devices(kind=kind)["name"])
    except (sounddevice.PortAudioError, ValueError):
        found.append(None)
print(json.dumps(found))
"""
"""Runs in a process of its own: drivers write to standard error as they like, and may hang."""


async def check_sound(settings: Settings) -> Sequence[Finding]:
    """Say which devices the console would use. A node with rooms may well have none."""
    found = await find_devices()
    if found.status == "ok" or not settings.has_rooms:
        return [found]
    return [ok(SOUND, f"{found.found}, and rooms need none here")]


async def find_devices() -> Finding:
    """Ask PortAudio for the devices that are used where nobody names others."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", _DEVICES), stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    try:
        async with asyncio.timeout(SOUND_S):
            said, wrong = await process.communicate()
    except TimeoutError:
        found = f"the sound system did not answer within {SOUND_S:g} s"
        return warn(SOUND, found, f"Check that it runs, {TEXT}.")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        last = wrong.decode(errors="replace").strip().rpartition("\n")[2]
        if "PortAudio" in last:
            found = "PortAudio is not installed, so console has no microphone"
            return warn(SOUND, found, f"{_INSTALL}, {TEXT}.")
        found = (
            f"console has no microphone ({last or f'PortAudio ended with {process.returncode}'})"
        )
        return warn(SOUND, found, f"Fix the sound system, {TEXT}.")
    microphone, speaker = json.loads(said)
    if microphone and speaker:
        return ok(SOUND, f"{microphone} and {speaker}")
    missing = "microphone" if speaker else "loudspeaker" if microphone else "microphone or speaker"
    return warn(SOUND, f"no {missing} was found", f"Connect one, {TEXT}.")


# LiveKit with the configured keys, and the control API's token.

MIN_SECRET_CHARS: Final = 32
"""256 bits are what the signatures of LiveKit's tokens (HS256) can use."""
LIVEKIT: Final = "livekit"
CONTROL: Final = "control"
SESSION_HOST: Final = "session host"
NAMES: Final = ("livekit_url", "livekit_api_key", "livekit_api_secret")
_SET: Final = (
    "Set LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET, as the LiveKit server has them."
)
_NONE_NEEDED: Final = "chat and console need no LiveKit server."


async def check_livekit(settings: Settings) -> Sequence[Finding]:
    missing = _missing(settings)
    if not settings.has_rooms:
        return [ok(LIVEKIT, "not set, so there are no rooms", _NONE_NEEDED)]
    if missing:
        return [fail(LIVEKIT, _not_set(missing), _SET)]
    try:
        async with LiveKitRooms.of(settings) as rooms:
            live = await rooms.live()
    except ControlError as error:
        unreached = fail_from(LIVEKIT, f"{settings.livekit_url}: {error}")
        return [unreached, *_session_host(settings)]
    return [_server(settings, len(live)), _control_token(settings), *_session_host(settings)]


def require_livekit(settings: Settings) -> None:
    """Raises: ConfigError: the address or a key is not set; its text is doctor's."""
    if missing := _missing(settings):
        there = "no LiveKit server is set" if len(missing) == len(NAMES) else _not_set(missing)
        raise ConfigError(f"{there}. {_SET} {_NONE_NEEDED}")


async def livekit_away(settings: Settings) -> str | None:
    """Return why the LiveKit server cannot be reached, in one line with the fix; None if it can.

    Raises:
        ConfigError: it is there, and refuses the keys.
    """
    try:
        async with LiveKitRooms.of(settings) as rooms:
            await rooms.live()
    except LiveKitRefused as error:
        raise ConfigError(f"{LIVEKIT}: {settings.livekit_url}: {error}") from error
    except ControlError as error:
        return f"{LIVEKIT}: {settings.livekit_url}: {error}"
    return None


def _missing(settings: Settings) -> list[str]:
    return [name.upper() for name in NAMES if getattr(settings, name) is None]


def _not_set(missing: Sequence[str]) -> str:
    return f"not set: {', '.join(missing)}"


def _server(settings: Settings, live: int) -> Finding:
    found = f"{settings.livekit_url}, {counted(live, 'open room')}"
    secret = settings.livekit_api_secret
    here = is_loopback(urlsplit(settings.livekit_url or "").hostname or "")
    if secret is not None and len(secret.get_secret_value()) < MIN_SECRET_CHARS and not here:
        fix = "Make one for the server and for LIVEKIT_API_SECRET: openssl rand -hex 32."
        return warn(LIVEKIT, f"{found}; its secret can be guessed, and opens every room", fix)
    return ok(LIVEKIT, found)


def _session_host(settings: Settings) -> list[Finding]:
    if settings.room_sees != "everything":
        return []
    found = "CAAL_ROOM_SEES=everything: everyone in a room reads and drives its whole session"
    return [warn(SESSION_HOST, found, "Set it to names where you do not debug.")]


def _control_token(settings: Settings) -> Finding:
    if settings.control_token is None:
        fix = "To use caal-node control, set CAAL_CONTROL_TOKEN: openssl rand -hex 32"
        return warn(CONTROL, "no CAAL_CONTROL_TOKEN, so tools cannot be reloaded in a room", fix)
    return ok(CONTROL, "token set")
