"""A listener in a process of its own, as a participant is: our event loop does not hold its clock.

Measured in one process, the turn that goes on behind a cue holds back the very loop that would
note the cue's arrival. The times are comparable: perf_counter is one clock for all of a machine.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from dataclasses import astuple
from typing import Self

import numpy as np

from caal_node.models import child_process
from caal_node.room.cues import Samples
from tests.stand_ins.livekit_server import LiveKit
from tests.stand_ins.room_ear import SOUND_FLOOR, Ear

READY_S = 20.0
"""To import, to join and to be given the track, beside an agent that comes in at the same time."""


class FarEar:
    """Hears the track named `track` in `room` from the moment that `hears` returns."""

    def __init__(self, server: LiveKit, room: str, track: str) -> None:
        self._given = (*astuple(server), room, track)
        self._process: Process | None = None
        self._ready = asyncio.Event()
        self._sounds: list[float] = []
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.bench.far_ear", *self._given), stdin=PIPE, stdout=PIPE
        )
        self._reader = asyncio.create_task(self._read(self._process))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None:
            await child_process.end(self._process)
        if self._reader is not None:
            await self._reader

    async def hears(self) -> None:
        async with asyncio.timeout(READY_S):
            await self._ready.wait()

    def onset(self, since: float) -> float | None:
        """When the first sound after `since` arrived (perf_counter)."""
        return next((at for at in self._sounds if at > since), None)

    async def _read(self, process: Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            if line == b"ready\n":
                self._ready.set()
            else:
                self._sounds.append(float(line))


async def listen(server: LiveKit, room: str, track: str) -> None:
    """Print `ready`, then the moment of every piece that is a sound, until standard input ends."""
    async with Ear(server, room, track, on_piece=_tell) as ear:
        await ear.hears()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


def _tell(at: float, piece: Samples) -> None:
    if np.abs(piece.astype(np.int32)).max() > SOUND_FLOOR:
        print(at, flush=True)


if __name__ == "__main__":
    asyncio.run(listen(LiveKit(*sys.argv[1:4]), *sys.argv[4:6]))
