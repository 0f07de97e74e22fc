"""The LiveKit track that plays the cues.

Measured at a participant, cues cannot be faster in a room than so: the track is published before
it is needed, nothing is pushed while it is idle (a queue of silence would delay the cue), and a
whole cue is one frame in one call (from then on it needs no event loop). The speech track, a mixer
and LiveKit's background audio are all 10 to 600 ms later.
"""

from __future__ import annotations

import asyncio
import logging
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Final

from livekit import rtc

from caal_node.room.connection import connected
from caal_node.room.cue_player import CueSink, LateCueSink
from caal_node.room.cues import SAMPLE_RATE_HZ, Samples

TRACK_NAME: Final = "caal-cues"
QUEUE_MS: Final = 1000
"""Milliseconds of the queue, which the longest cue fits whole. Without a queue (zero) LiveKit is
800 ms late."""
TAKE_BACK_S: Final = 2.0
"""Seconds for a track that is being published while its agent leaves. It takes some 100 ms."""
_CLOSE_DEADLINE_S: Final = 2.0
"""Seconds for taking the track out of the room. A room that is closed may never answer."""

_log = logging.getLogger(__name__)


class CueTrack:
    """The `CueSink` of a room. `publish` makes it, once the room is connected."""

    def __init__(
        self, room: rtc.Room, source: rtc.AudioSource, publication: rtc.LocalTrackPublication
    ) -> None:
        self._room = room
        self._source = source
        self._publication = publication
        self._pushes: set[asyncio.Task[None]] = set()
        self._revoked: set[asyncio.Task[None]] = set()
        self._closed = False

    @classmethod
    async def publish(cls, room: rtc.Room) -> CueTrack:
        """Publish the silent track. It names no source, as the microphone is the speech."""
        source = rtc.AudioSource(SAMPLE_RATE_HZ, 1, queue_size_ms=QUEUE_MS)
        track = rtc.LocalAudioTrack.create_audio_track(TRACK_NAME, source)
        return cls(room, source, await room.local_participant.publish_track(track))

    def play(self, samples: Samples) -> None:
        if self._closed:
            return
        frame = rtc.AudioFrame(samples.tobytes(), SAMPLE_RATE_HZ, 1, samples.size)
        push = asyncio.create_task(begin(self._source.capture_frame(frame)))
        self._pushes.add(push)
        push.add_done_callback(self._pushed)

    def stop(self) -> None:
        # A frame that is on its way into the queue would arrive after the queue was cleared.
        self._revoked |= self._pushes
        if not self._closed:
            self._source.clear_queue()

    async def aclose(self) -> None:
        """Stop the sound, take the track out of the room, and wait until both are done."""
        if self._closed:
            return
        self.stop()
        self._closed = True
        if self._pushes:
            _, late = await asyncio.wait(self._pushes, timeout=_CLOSE_DEADLINE_S)
            for push in late:
                push.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        try:
            async with asyncio.timeout(_CLOSE_DEADLINE_S):
                await self._unpublish()
        except (TimeoutError, rtc.participant.UnpublishTrackError) as error:
            _log.debug("the cues' track was not unpublished: %s", type(error).__name__)
        await self._source.aclose()

    async def _unpublish(self) -> None:
        # The track is found by name, as LiveKit gives it another sid when it reconnects.
        own = self._room.local_participant
        for publication in list(own.track_publications.values()):
            if publication.name == self._publication.name and self._room.isconnected():
                await own.unpublish_track(publication.sid)

    def _pushed(self, push: asyncio.Task[None]) -> None:
        self._pushes.discard(push)
        if push in self._revoked:
            self._revoked.discard(push)
            if not self._closed:
                self._source.clear_queue()
        if not push.cancelled() and (error := push.exception()) is not None:
            _log.warning("a cue was not played: %s", error)


async def publish_cues(
    room: rtc.Room,
    late: LateCueSink,
    publish: Callable[[rtc.Room], Awaitable[CueSink]] = CueTrack.publish,
) -> None:
    """Give `late` the room's track as soon as the room is connected.

    Where the track cannot be published there are no cues, and the log says so. The track is taken
    back if its agent has left in the meantime.
    """
    try:
        await connected(room)
        late.ready(await _published(publish(room)))
    except Exception as error:  # nobody awaits this task's result before the agent leaves
        _log.warning("no cues in this room: %s (%s)", type(error).__name__, error)


async def _published(publishing: Awaitable[CueSink]) -> CueSink:
    # It is shielded because LiveKit publishes the track even after a cancellation, and a track that
    # nobody owns would stay in the room.
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


def begin(work: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
    """Run `work` up to its first wait now, and return the rest, which a task has to await.

    `asyncio.create_task` queues a coroutine behind everything that is ready, such as a tool's own
    code: a blocking call in it would delay the cue that announces it. Python 3.12 has `eager_start`
    for this; 3.11, which we support, does not.

    Raises:
        Exception: Whatever `work` raises before its first wait.
    """
    try:
        waits_for = work.send(None)
    except StopIteration:
        return _return_none()
    return _rest(work, waits_for)


async def _return_none() -> None:
    return None


async def _rest(work: Coroutine[Any, Any, None], waits_for: Any) -> None:
    await _continue(work, waits_for)


@types.coroutine
def _continue(work: Coroutine[Any, Any, None], waits_for: Any) -> Generator[Any, Any, None]:
    """Continue a coroutine that has reached its first wait, as `await` would."""
    while True:
        thrown: BaseException | None = None
        sent: Any = None
        try:
            sent = yield waits_for
        except BaseException as error:  # `work` handles cancellations too
            thrown = error
        try:
            waits_for = work.send(sent) if thrown is None else work.throw(thrown)
        except StopIteration:
            return
