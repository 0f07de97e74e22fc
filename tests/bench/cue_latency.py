"""How late is a cue? From the moment that starts it to its first sample at a participant.

Run: `python -m tests.bench.cue_latency [--rooms 5] [--trials 30]`. Needs a livekit-server
(tests/livekit_server.py says where it is looked for). Rooms are pooled: a listener's jitter buffer
settles by chance when it joins and stays so, so that one room alone says little.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeAlias

import numpy as np
from livekit import rtc

from caal_node.room.cue_track import TRACK_NAME, CueTrack
from caal_node.room.cues import render
from tests.livekit_server import LiveKit, find_server, running
from tests.room_ear import Ear

SETTLE_S: Final = 1.0
"""The jitter buffer's own start, which no later cue meets again."""
BETWEEN_S: Final = 0.5
"""Long enough for a cue to be over, at the speaker and at the listener."""
GRID_MS: Final = 20.0
"""Opus sends a packet every 20 ms; trials are spread over that grid, not stuck at one place."""

Start: TypeAlias = Callable[[], Awaitable[float]]
"""Does what makes a cue sound; gives the moment it is measured from (perf_counter)."""
Stage: TypeAlias = Callable[[LiveKit, str], AbstractAsyncContextManager[Start]]
"""Brings an agent into a room, its cues' track published."""


@asynccontextmanager
async def from_play(server: LiveKit, room: str) -> AsyncIterator[Start]:
    """From `CueTrack.play` alone: what the room itself costs."""
    agent = rtc.Room()
    await agent.connect(server.url, server.token(room, "agent", agent=True))
    track = await CueTrack.publish(agent)
    cue = render("tool")

    async def start() -> float:
        at = time.perf_counter()
        track.play(cue)
        return at

    try:
        yield start
    finally:
        await track.aclose()
        await agent.disconnect()


STAGES: Final[dict[str, Stage]] = {"handed to play()": from_play}


async def measure(server: LiveKit, stage: Stage, trials: int) -> list[float]:
    """One room; milliseconds of each trial. A cue that never came is infinitely late."""
    room = f"bench-{uuid.uuid4().hex[:8]}"
    late: list[float] = []
    async with Ear(server, room, TRACK_NAME) as ear, stage(server, room) as start:
        await ear.hears()
        await asyncio.sleep(SETTLE_S)
        for trial in range(trials):
            began = await start()
            await asyncio.sleep(BETWEEN_S + trial * GRID_MS / trials / 1000)
            heard = ear.onset(began)
            late.append(float("inf") if heard is None else (heard - began) * 1000)
    return late


async def bench(server: LiveKit, rooms: int, trials: int) -> bool:
    complete = True
    for name, stage in STAGES.items():
        each = [await measure(server, stage, trials) for _ in range(rooms)]
        pooled = list(itertools.chain.from_iterable(each))
        missing = pooled.count(float("inf"))
        complete &= not missing
        print(
            f"{name} -> first cue sample at a participant, ms:"
            f" p50 {np.percentile(pooled, 50):.1f}  p95 {np.percentile(pooled, 95):.1f}"
            f"  min {min(pooled):.1f}  max {max(pooled):.1f}"
            f"  ({rooms} rooms x {trials} trials, {missing} never heard)"
        )
        print("  p50 of each room:", "  ".join(f"{np.median(room):.1f}" for room in each))
    return complete


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rooms", type=int, default=5)
    options.add_argument("--trials", type=int, default=30)
    given = options.parse_args()
    if (binary := find_server()) is None:
        print("no livekit-server found: nothing was measured", file=sys.stderr)
        return 1
    with running(binary) as server:
        return 0 if asyncio.run(bench(server, given.rooms, given.trials)) else 1


if __name__ == "__main__":
    sys.exit(main())
