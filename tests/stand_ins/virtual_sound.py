"""A sound card of the test's own: PulseAudio with two null sinks, which PortAudio finds by ALSA.

What is played into the sink `mouth` comes out of the microphone, and what a program speaks goes to
the sink `speaker`, whose monitor is recorded.

    async with VirtualSound(tmp_path) as sound:
        ... a program with sound.env ...
        await sound.say(request.samples)
        heard = sound.heard()
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes.util
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, Self

import numpy as np
import pytest

from caal_node.room.cues import Samples

RATE_HZ: Final = 16_000
"""The rate of what is said and heard, in mono and 16 bit."""
READY_S: Final = 20.0
PACKAGES: Final = "pulseaudio, pulseaudio-utils, libasound2-plugins and libportaudio2"
_PROGRAMS: Final = ("pulseaudio", "pactl", "pacat", "parec")
_ALSA: Final = "pcm.!default { type pulse }\nctl.!default { type pulse }\n"


def missing() -> str:
    """Return what this machine lacks for a virtual sound card, in words; "" if it has all."""
    if not sys.platform.startswith("linux"):
        return "a virtual sound card is made on Linux alone"
    lacks = [name for name in _PROGRAMS if shutil.which(name) is None]
    lacks += ["PortAudio"] if ctypes.util.find_library("portaudio") is None else []
    return f"no {', '.join(lacks)}: apt-get install {PACKAGES}" if lacks else ""


class VirtualSound:
    """Starts the server in `folder`, whose path is short enough for a socket's."""

    def __init__(self, folder: Path) -> None:
        if why := missing():
            pytest.skip(why)
        (folder / "asound.conf").write_text(_ALSA, encoding="utf-8")
        self._folder = folder
        self._recording = folder / "heard.raw"
        self._open = AsyncExitStack()
        self.env: Final = {
            "XDG_RUNTIME_DIR": str(folder),
            "PULSE_SERVER": f"unix:{folder / 'native'}",
            "PULSE_SOURCE": "mouth.monitor",
            "PULSE_SINK": "speaker",
            "ALSA_CONFIG_PATH": str(folder / "asound.conf"),
        }

    async def __aenter__(self) -> Self:
        socket = f"module-native-protocol-unix socket={self._folder / 'native'} auth-anonymous=1"
        modules = (socket, "module-null-sink sink_name=mouth", "module-null-sink sink_name=speaker")
        loads = [word for module in modules for word in ("-L", module)]
        with (self._folder / "pulse.log").open("wb") as log:
            await self._start("pulseaudio", "-n", "--exit-idle-time=-1", *loads, stderr=log)
        async with asyncio.timeout(READY_S):
            while not await self._pactl("info"):  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0.05)
        with self._recording.open("wb") as file:
            await self._start("parec", "--device=speaker.monitor", *_FORMAT, stdout=file)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def listened_to(self) -> None:
        """Wait until a program records from the microphone and plays to the loudspeaker."""
        async with asyncio.timeout(READY_S * 3):
            # The recording of the loudspeaker is the first of the two.
            while not await self._in_use():  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.1)

    async def say(self, samples: Samples) -> None:
        """Play it into the microphone, in real time."""
        process = await asyncio.create_subprocess_exec(
            *("pacat", "--device=mouth", *_FORMAT), env=self._all(), stdin=PIPE
        )
        await process.communicate(samples.astype(np.int16).tobytes())
        assert process.returncode == 0

    def heard(self) -> Samples:
        """Return all that the loudspeaker has played so far, with the pauses between."""
        data = self._recording.read_bytes()
        return np.frombuffer(data[: len(data) // 2 * 2], np.int16)

    async def _in_use(self) -> bool:
        recorded = await self._pactl("list", "short", "source-outputs")
        played = await self._pactl("list", "short", "sink-inputs")
        return recorded.count("\n") > 1 and bool(played)

    async def _start(self, *command: str, **streams: object) -> None:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=self._all(),
            stdin=DEVNULL,
            **streams,  # type: ignore[arg-type]
        )
        self._open.push_async_callback(_end, process)

    async def _pactl(self, *command: str) -> str:
        process = await asyncio.create_subprocess_exec(
            "pactl", *command, env=self._all(), stdout=PIPE, stderr=DEVNULL
        )
        said, _ = await process.communicate()
        return said.decode() if process.returncode == 0 else ""

    def _all(self) -> dict[str, str]:
        return {**os.environ, **self.env}


_FORMAT: Final = (f"--rate={RATE_HZ}", "--channels=1", "--format=s16le", "--latency-msec=50")


async def _end(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    await process.wait()
