"""The cues' track on a real livekit-server: what a participant hears of it."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import numpy as np
import pytest
from livekit import rtc

from caal_node.core.events import CueKind
from caal_node.room.cue_player import TRACK_NAME, CueTrack
from caal_node.room.cues import SAMPLE_RATE_HZ, Samples, render
from tests.stand_ins.livekit_server import LiveKit
from tests.stand_ins.room_ear import SOUND_FLOOR, Ear, likeness

pytestmark = [pytest.mark.livekit, pytest.mark.alone]

TRIES = 3
"""A room's sound is in real time: on a machine that stands still for a moment it is torn apart."""
LISTEN_S = 1.5
"""As long as any cue here, and far longer than it takes to be on its way."""


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


async def tried(
    ear: Ear, play: Callable[[], None], right: Callable[[Samples], bool], listen_s: float = LISTEN_S
) -> bool:
    """Whether what is heard of `play` is right, once in so many tries."""
    for _ in range(TRIES):
        played = time.perf_counter()
        play()
        if right(await ear.until(listen_s, played)):
            return True
    return False


def sounding_s(sound: Samples) -> float:
    """From its first loud sample to its last one."""
    loud = np.flatnonzero(np.abs(sound.astype(int)) > SOUND_FLOOR)
    return (int(loud[-1]) - int(loud[0])) / SAMPLE_RATE_HZ if loud.size else 0.0


@pytest.mark.parametrize("kind", ["tool", "agent", "error", "tick", "ring"])
async def test_a_participant_hears_the_cue_itself(livekit: LiveKit, kind: CueKind) -> None:
    async with track_and_ear(livekit) as (track, ear, _):
        others: tuple[CueKind, ...] = ("tool", "agent", "error")

        def right(heard: Samples) -> bool:
            mine = likeness(heard, render(kind))
            return mine > 0.75 and all(
                likeness(heard, render(other)) < mine for other in others if other != kind
            )

        assert await tried(ear, lambda: track.play(render(kind)), right)


async def test_a_cue_is_heard_while_the_event_loop_is_blocked(livekit: LiveKit) -> None:
    """A tool that blocks holds the loop back, and not the ping that announces it."""
    async with track_and_ear(livekit) as (track, ear, _):

        def play() -> None:
            track.play(render("tool"))
            time.sleep(2.0)  # the very thing

        def right(heard: Samples) -> bool:
            # What came in the meantime waited at this side's loop, and is all there at once. A cue
            # that had waited for the loop would be heard behind it.
            return likeness(heard[: int(1.5 * SAMPLE_RATE_HZ)], render("tool")) > 0.75

        assert await tried(ear, play, right)


async def test_a_cue_that_is_stopped_is_cut(livekit: LiveKit) -> None:
    async with track_and_ear(livekit) as (track, ear, _):
        whole = np.tile(render("agent"), 3)  # 747 ms

        async def heard_s() -> float:
            played = time.perf_counter()
            track.play(whole)
            async with asyncio.timeout(10):
                while ear.onset(played) is None:  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(0.01)
            track.stop()
            # What is on its way when it is cut is still heard; then there is silence.
            await ear.silence(0.3, time.perf_counter())
            return sounding_s(await ear.until(0.0, played))

        lengths: list[float] = []
        for _ in range(TRIES):
            lengths.append(await heard_s())
            if 0 < lengths[-1] < 0.8 * sounding_s(whole):
                break
        assert 0 < lengths[-1] < 0.8 * sounding_s(whole), lengths


async def test_a_cue_that_is_stopped_at_once_is_never_heard(livekit: LiveKit) -> None:
    async with track_and_ear(livekit) as (track, ear, _):

        def play_and_stop() -> None:
            track.play(render("agent"))
            track.stop()

        assert await tried(ear, play_and_stop, lambda heard: likeness(heard, render("agent")) < 0.3)
        tool = render("tool")
        assert await tried(
            ear, lambda: track.play(tool), lambda heard: likeness(heard, tool) > 0.75
        )


async def test_two_cues_are_heard_one_after_the_other(livekit: LiveKit) -> None:
    async with track_and_ear(livekit) as (track, ear, _):
        both = np.concatenate([render("tool"), render("error")])

        def play() -> None:
            track.play(render("tool"))
            track.play(render("error"))

        assert await tried(ear, play, lambda heard: likeness(heard, both) > 0.7)


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
