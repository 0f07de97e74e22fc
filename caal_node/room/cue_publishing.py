"""The cues' track: published as soon as the room is there, taken back if the agent left by then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from livekit import rtc

from caal_node.room.connection import connected
from caal_node.room.cue_sink import CueSink
from caal_node.room.cue_track import CueTrack
from caal_node.room.late_sink import LateSink

TAKE_BACK_S: Final = 2.0
"""For a track that is being published while its agent leaves; normally some 100 ms."""

_log = logging.getLogger("caal_node")


async def publish_cues(
    room: rtc.Room,
    late: LateSink,
    publish: Callable[[rtc.Room], Awaitable[CueSink]] = CueTrack.publish,
) -> None:
    """Give `late` the room's track. Without one there are no cues, which the log tells."""
    try:
        await connected(room)
        late.ready(await _published(publish(room)))
    except Exception as error:  # nobody awaits this task's result before the agent leaves
        _log.warning("no cues in this room: %s (%s)", type(error).__name__, error)


async def _published(publishing: Awaitable[CueSink]) -> CueSink:
    # Shielded: LiveKit publishes a track all the same, and one that nobody owns stays in the room.
    task = asyncio.ensure_future(publishing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await _take_back(task)
        raise


async def _take_back(publishing: asyncio.Future[CueSink]) -> None:
    await asyncio.wait((publishing,), timeout=TAKE_BACK_S)
    publishing.cancel()
    (sink,) = await asyncio.gather(publishing, return_exceptions=True)
    if not isinstance(sink, BaseException):
        await sink.aclose()
