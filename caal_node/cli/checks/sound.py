"""This check looks for what `caal-node console` hears and speaks with: PortAudio and devices."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from typing import Final

from caal_node.cli.checks.check import Finding, ok, warn
from caal_node.config.settings import Settings

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
