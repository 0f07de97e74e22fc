"""Plays cues: what the policy decides, when it asks for it, on a track of the room.

A room's track, local speakers and a recorder implement `CueSink`, which plays the sounds. Tests
replace the `Clock`, and never wait.
"""

from __future__ import annotations

import asyncio
import logging
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Final, Protocol

from livekit import rtc

from caal_node.config.switches import Switches
from caal_node.core.events import CuePlayed
from caal_node.room.cue_policy import CueAction, CuePolicy
from caal_node.room.cues import SAMPLE_RATE_HZ, CueSet, Samples
from caal_node.room.other_participants import connected

# The LiveKit track that plays the cues.
#
# Measured at a participant, cues cannot be faster in a room than so: the track is published before
# it is needed, nothing is pushed while it is idle (a queue of silence would delay the cue), and a
# whole cue is one frame in one call (from then on it needs no event loop). The speech track, a
# mixer and LiveKit's background audio are all 10 to 600 ms later.

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


class ClockTimer(Protocol):
    """A timer, as `asyncio.TimerHandle` is one."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """A clock with timers, as `asyncio.AbstractEventLoop` is one."""

    def time(self) -> float:
        """Return the time in seconds. It starts anywhere and never goes back."""
        ...

    def call_at(self, when: float, callback: Callable[[], None]) -> ClockTimer:
        """Call `callback` once `time()` has reached `when`, unless the timer is cancelled first."""
        ...


class CueSink(Protocol):
    """Plays short sounds, one after the other, and can stop at once."""

    def play(self, samples: Samples) -> None:
        """Play `samples` now, or after the sound that is still playing. It never blocks."""
        ...

    def stop(self) -> None:
        """Stop the sound, and drop all that was not heard yet."""
        ...

    async def aclose(self) -> None: ...


class SilentCueSink:
    """A sink without sound, with which the cues are still reported as events."""

    def play(self, samples: Samples) -> None:
        """Play nothing."""

    def stop(self) -> None:
        """Do nothing, as nothing plays."""

    async def aclose(self) -> None:
        """Do nothing, as nothing is open."""


class LateCueSink:
    """A sink that can be used before its room is connected.

    It is silent until `ready` gives it the sink that plays its sounds.
    """

    def __init__(self) -> None:
        self._sink: CueSink | None = None

    def ready(self, sink: CueSink) -> None:
        self._sink = sink

    def play(self, samples: Samples) -> None:
        if self._sink is not None:
            self._sink.play(samples)

    def stop(self) -> None:
        if self._sink is not None:
            self._sink.stop()

    async def aclose(self) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            await sink.aclose()


class CuePlayer:
    """Plays cues. `perform` returns the cue that it plays; `on_timed_cue` gets those of the timer.

    Without a `sink` no cue is played. A sink that fails is logged, and nothing else stops.
    """

    def __init__(
        self,
        policy: CuePolicy,
        *,
        sink: CueSink | None,
        cues: CueSet,
        switches: Switches | None = None,
        clock: Clock,
        on_timed_cue: Callable[[CuePlayed | None], None],
    ) -> None:
        self._policy = policy
        self._sink = sink
        self._cues = cues
        self._switches = switches
        self._clock = clock
        self._on_timed_cue = on_timed_cue
        self._timer: ClockTimer | None = None
        self._timer_due: float | None = None

    def perform(self, action: CueAction = None) -> CuePlayed | None:
        """Do what the policy decided, after each event, and return the cue that is played."""
        played = self._play_or_stop(action)
        self._reschedule()
        return played

    def quiet_in_s(self) -> float:
        """Return the seconds after which the agent may begin to speak; 0 where no cue is heard."""
        if self._sink is None or self._is_off("tool"):
            return 0.0
        return self._policy.quiet_in_s(self._clock.time())

    def close(self) -> None:
        """Stop the sound and the timer. No task runs, so there is nothing to await."""
        self._policy.abandon()
        self.perform("stop")

    def _play_or_stop(self, action: CueAction) -> CuePlayed | None:
        if self._sink is None or action is None or self._is_off(action):
            return None
        try:
            if action == "stop":
                self._sink.stop()
                return None
            self._sink.play(self._cues[action])
        except Exception:
            _log.exception("a cue failed: %s", action)
            return None
        return CuePlayed(action)

    def _is_off(self, action: CueAction) -> bool:
        return (
            self._switches is not None
            and not self._switches.cues
            and action not in ("ring", "stop")
        )

    def _reschedule(self) -> None:
        due = self._policy.due
        if due == self._timer_due:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if due is None else self._clock.call_at(due, self._wake)
        self._timer_due = due

    def _wake(self) -> None:
        self._timer = self._timer_due = None
        self._on_timed_cue(self.perform(self._policy.wake(self._clock.time())))
