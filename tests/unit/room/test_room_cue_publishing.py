"""The cues' track is owned or taken back, whatever happens while it is published."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from livekit import rtc

from caal_node.room.cue_player import TAKE_BACK_S, LateCueSink, publish_cues
from caal_node.room.cues import Samples
from tests.stand_ins import virtual_loop


class Sink:
    def __init__(self) -> None:
        self.closed = False

    def play(self, samples: Samples) -> None: ...

    def stop(self) -> None: ...

    async def aclose(self) -> None:
        self.closed = True


class Connected:
    def isconnected(self) -> bool:
        return True


ROOM = cast("rtc.Room", Connected())


def test_a_track_is_closed_with_the_agent() -> None:
    sink, late = Sink(), LateCueSink()

    async def publish(_: rtc.Room) -> Sink:
        return sink

    async def story() -> None:
        await publish_cues(ROOM, late, publish)
        assert not sink.closed
        await late.aclose()
        assert sink.closed

    virtual_loop.run(story())


@pytest.mark.parametrize(("takes_s", "is_closed"), [(TAKE_BACK_S / 2, True), (60, False)])
def test_an_agent_that_leaves_takes_back_the_track_that_is_being_published(
    takes_s: float, is_closed: bool
) -> None:
    sink = Sink()

    async def publish(_: rtc.Room) -> Sink:
        await asyncio.sleep(takes_s)
        return sink

    async def story() -> None:
        task = asyncio.create_task(publish_cues(ROOM, LateCueSink(), publish))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.get_running_loop().time() < 0.2 + TAKE_BACK_S
        assert asyncio.all_tasks() == {asyncio.current_task()}

    virtual_loop.run(story())
    assert sink.closed == is_closed


async def test_a_track_that_cannot_be_published_is_logged_and_ends_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def publish(_: rtc.Room) -> Sink:
        raise RuntimeError("no audio")

    await publish_cues(ROOM, LateCueSink(), publish)
    assert "no cues in this room: RuntimeError (no audio)" in caplog.text
