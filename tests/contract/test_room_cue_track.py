"""The cues' track on a real livekit-server: what a participant hears of it."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
from livekit import rtc

from caal_node.events import CueKind
from caal_node.room.cue_track import TRACK_NAME, CueTrack
from caal_node.room.cues import render
from tests.livekit_server import LiveKit
from tests.room_ear import Ear, likeness

pytestmark = pytest.mark.livekit


@asynccontextmanager
async def track_and_ear(server: LiveKit) -> AsyncIterator[tuple[CueTrack, Ear, rtc.Room]]:
    name = f"cues-{uuid.uuid4().hex[:8]}"
    agent = rtc.Room()
    await agent.connect(server.url, server.token(name, "agent", agent=True))
    try:
        async with Ear(server, name, TRACK_NAME) as ear:
            track = await CueTrack.publish(agent)
            try:
                await ear.hears()
                yield track, ear, agent
            finally:
                await track.aclose()
    finally:
        await agent.disconnect()


@pytest.mark.parametrize("kind", ["tool", "agent", "error", "tick"])
async def test_a_participant_hears_the_cue_itself(livekit: LiveKit, kind: CueKind) -> None:
    async with track_and_ear(livekit) as (track, ear, _):
        others: tuple[CueKind, ...] = ("tool", "agent", "error")
        played = time.perf_counter()
        track.play(render(kind))
        heard = await ear.until(0.6, played)
        mine = likeness(heard, render(kind))
        assert mine > 0.75
        assert all(likeness(heard, render(o)) < mine for o in others if o != kind)


async def test_a_cue_is_heard_while_the_event_loop_is_blocked(livekit: LiveKit) -> None:
    """A tool that blocks holds the loop back, and not the ping that announces it."""
    async with track_and_ear(livekit) as (track, ear, _):
        played = time.perf_counter()
        track.play(render("tool"))
        time.sleep(0.5)  # noqa: ASYNC251 - the very thing
        # What came in the meantime waited at this side's loop, and is all there at once.
        heard = await ear.until(0.3, played)
        assert likeness(heard, render("tool")) > 0.75


async def test_a_cue_that_is_stopped_is_cut(livekit: LiveKit) -> None:
    async with track_and_ear(livekit) as (track, ear, _):
        played = time.perf_counter()
        track.play(np.tile(render("agent"), 3))
        await ear.until(0.15, played)
        track.stop()
        stopped = time.perf_counter()
        after = await ear.until(0.6, stopped)
        # 747 ms were handed over; what is on its way when it is cut is still heard.
        assert np.abs(after[-48_000 * 3 // 10 :].astype(int)).max() < 50


async def test_a_cue_that_is_stopped_at_once_is_never_heard(livekit: LiveKit) -> None:
    async with track_and_ear(livekit) as (track, ear, _):
        played = time.perf_counter()
        track.play(render("agent"))
        track.stop()
        heard = await ear.until(0.5, played)
        assert likeness(heard, render("agent")) < 0.3
        played = time.perf_counter()
        track.play(render("tool"))
        assert likeness(await ear.until(0.6, played), render("tool")) > 0.75


async def test_two_cues_are_heard_one_after_the_other(livekit: LiveKit) -> None:
    async with track_and_ear(livekit) as (track, ear, _):
        played = time.perf_counter()
        track.play(render("tool"))
        track.play(render("error"))
        heard = await ear.until(0.8, played)
        both = np.concatenate([render("tool"), render("error")])
        assert likeness(heard, both) > 0.7


async def test_closing_takes_the_track_out_of_the_room(livekit: LiveKit) -> None:
    async with track_and_ear(livekit) as (track, ear, agent):
        gone = asyncio.Event()
        ear.room.on("track_unpublished", lambda *_: gone.set())
        await track.aclose()
        async with asyncio.timeout(10):
            await gone.wait()
        assert not agent.local_participant.track_publications
        track.play(render("tool"))
        track.stop()
        await track.aclose()


async def test_closing_after_the_room_is_left_does_not_hang(livekit: LiveKit) -> None:
    async with track_and_ear(livekit) as (track, _, agent):
        track.play(render("tool"))
        await agent.disconnect()
        async with asyncio.timeout(10):
            await track.aclose()
