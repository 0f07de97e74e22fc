"""How late is a cue? From the moment that starts it to its first sample at a participant.

Run: `python -m tests.bench.cue_latency [--rooms 5] [--trials 30]`. Needs a livekit-server
(tests/stand_ins/livekit_server.py says where it is looked for). Rooms are pooled: a listener's
jitter buffer settles by chance when it joins and stays so, so that one room alone says little.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from aiohttp import web
from livekit import rtc
from livekit.agents import AgentSession, TurnHandlingOptions, function_tool, room_io

from caal_node import CaalAgent
from caal_node.config.settings import load_settings
from caal_node.core.events import CuePlayed, Event
from caal_node.models.llm import LLM
from caal_node.room.cue_player import TRACK_NAME, CueTrack
from caal_node.room.cues import render
from tests.bench.far_ear import FarEar
from tests.bench.obedient_model import obey, told
from tests.bench.table import print_table
from tests.stand_ins.conversation import NOWHERE
from tests.stand_ins.livekit_server import LiveKit, find_server, running
from tests.stand_ins.stand_in_model import Reply, StandInModel

SETTLE_S: Final = 1.0
"""The jitter buffer's own start, which no later cue meets again."""
BETWEEN_S: Final = 0.5
"""Long enough for a cue to be over, at the speaker and at the listener."""
TURN_S: Final = 20.0
"""For a turn on a stand-in model; one that takes longer has failed."""
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


class Stamping(StandInModel):
    """Notes when the last byte of an unstreamed answer goes out."""

    def __init__(self) -> None:
        super().__init__(answer=obey)
        self.called = asyncio.Event()
        self.last_byte_s = 0.0

    async def _play_whole(self, request: Any, form: Any, reply: Reply) -> web.StreamResponse:
        response = await super()._play_whole(request, form, reply)
        await response.prepare(request)
        self.last_byte_s = time.perf_counter()
        await response.write_eof()
        self.called.set()
        return response


class Clerk(CaalAgent):
    @function_tool
    async def look_up(self, name: str) -> str:
        """Look somebody up."""
        return f"{name} is in"


@asynccontextmanager
async def from_answer(server: LiveKit, room: str, own: list[float]) -> AsyncIterator[Start]:
    """From the last byte of the model's answer, a tool call: what a person waits for.

    `own` takes what the node itself has of that, in ms: until it has handed the cue over.
    """
    agent = rtc.Room()
    await agent.connect(server.url, server.token(room, "agent", agent=True))
    settings = load_settings({}, NOWHERE)
    turns: set[asyncio.Task[None]] = set()
    async with Stamping() as stand_in:
        model = LLM(stand_in.model, "ollama", stand_in.url, native_tools=True)
        session: AgentSession[Any] = AgentSession(
            llm=model, vad=None, turn_handling=TurnHandlingOptions(turn_detection=None)
        )

        def note(event: Event) -> None:
            if isinstance(event, CuePlayed) and event.kind == "tool":
                own.append((time.perf_counter() - stand_in.last_byte_s) * 1000)

        clerk = Clerk(settings=settings, tiers={}, warm=False, on_event=note)
        options = room_io.RoomOptions(audio_input=False, audio_output=False)
        await session.start(clerk, room=agent, room_options=options)
        # As the worker does it (caal_node/cli/worker.py).
        gc.collect()
        gc.freeze()

        async def turn() -> None:
            async with asyncio.timeout(TURN_S):
                await session.run(user_input=told("look_up", name="Ada"))

        async def start() -> float:
            await asyncio.gather(*turns)
            turns.clear()
            stand_in.called.clear()
            turns.add(asyncio.create_task(turn()))
            async with asyncio.timeout(TURN_S):
                await stand_in.called.wait()
            return stand_in.last_byte_s

        try:
            yield start
            await asyncio.gather(*turns)
        finally:
            await session.aclose()
            await model.aclose()
            await agent.disconnect()
            gc.unfreeze()


async def measure(server: LiveKit, stage: Stage, trials: int) -> list[float]:
    """One room; milliseconds of each trial. A cue that never came is infinitely late."""
    room = f"bench-{uuid.uuid4().hex[:8]}"
    late: list[float] = []
    async with FarEar(server, room, TRACK_NAME) as ear, stage(server, room) as start:
        await ear.hears()
        await asyncio.sleep(SETTLE_S)
        for trial in range(trials):
            began = await start()
            await asyncio.sleep(BETWEEN_S + trial * GRID_MS / trials / 1000)
            heard = ear.onset(began)
            late.append(float("inf") if heard is None else (heard - began) * 1000)
    return late


async def bench(server: LiveKit, rooms: int, trials: int) -> bool:
    own: list[float] = []
    stages: dict[str, Stage] = {
        "handed to play()": from_play,
        "last byte of the model's answer": partial(from_answer, own=own),
    }
    rows: list[tuple[object, ...]] = []
    missing = 0
    for name, stage in stages.items():
        each = [await measure(server, stage, trials) for _ in range(rooms)]
        pooled = list(itertools.chain.from_iterable(each))
        lost = pooled.count(float("inf"))
        missing += lost
        medians = " ".join(f"{np.median(room):.0f}" for room in each)
        rows.append((name, *_spread(pooled), lost, medians))
    rows.append(("  of that: until play() is called", *_spread(own), 0, ""))
    title = f"ms to the first cue sample at a participant, {rooms} rooms x {trials} trials"
    columns = ("from", "p50", "p95", "min", "max", "never heard", "p50 of each room")
    print_table(title, columns, rows)
    return not missing


def _spread(ms: list[float]) -> tuple[float, float, float, float]:
    return float(np.percentile(ms, 50)), float(np.percentile(ms, 95)), min(ms), max(ms)


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
