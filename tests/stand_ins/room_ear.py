"""A participant that listens: what it hears on one track, with the time of every piece."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from livekit import rtc

from caal_node.room.cues import SAMPLE_RATE_HZ, Samples
from tests.stand_ins.livekit_server import LiveKit

SUBSCRIBE_DEADLINE_S = 30.0
SILENCE_DEADLINE_S = 10.0
SOUND_FLOOR = 200
"""Of 32768. The codec's silence stays below 5, a cue's first milliseconds are above."""


class Ear:
    """Joins `room` as `identity` and records the agent's track named `track`.

    Usable once the `async with` is entered; `hears` waits for the subscription.
    """

    def __init__(
        self,
        server: LiveKit,
        room: str,
        track: str,
        identity: str = "ear",
        *,
        on_piece: Callable[[float, Samples], None] = lambda at, piece: None,
    ) -> None:
        self.room = rtc.Room()
        self._server = server
        self._name = room
        self._track = track
        self._identity = identity
        self._on_piece = on_piece
        self._found: asyncio.Future[rtc.RemoteTrack] = asyncio.get_running_loop().create_future()
        self._heard: list[tuple[float, Samples]] = []
        self._more = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Ear:
        self.room.on("track_subscribed", self._on_track)
        await self.room.connect(self._server.url, self._server.token(self._name, self._identity))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.room.disconnect()

    async def hears(self) -> None:
        """Wait until the track is subscribed and its (silent) frames arrive."""
        async with asyncio.timeout(SUBSCRIBE_DEADLINE_S):
            track = await self._found
            self._task = asyncio.create_task(self._record(track))
            async with self._more:
                await self._more.wait_for(lambda: bool(self._heard))

    async def until(self, seconds_after: float, since: float) -> npt.NDArray[np.int16]:
        """All that came from `since` on (perf_counter), once so much of it is there."""
        wanted = int(seconds_after * SAMPLE_RATE_HZ)
        async with asyncio.timeout(seconds_after + SUBSCRIBE_DEADLINE_S), self._more:
            await self._more.wait_for(lambda: self._since(since).size >= wanted)
        return self._since(since)

    async def silence(self, seconds: float, since: float) -> None:
        """Returns once what came last, of what came from `since` on, was silent for so long."""
        wanted = int(seconds * SAMPLE_RATE_HZ)

        def silent() -> bool:
            heard = self._since(since)
            return heard.size >= wanted and not _loud(heard[-wanted:])

        async with asyncio.timeout(SILENCE_DEADLINE_S), self._more:
            await self._more.wait_for(silent)

    def onset(self, since: float) -> float | None:
        """When the first sound after `since` arrived (perf_counter)."""
        return next(
            (at for at, piece in self._heard if at > since and _loud(piece)),
            None,
        )

    def _since(self, since: float) -> npt.NDArray[np.int16]:
        pieces = [piece for at, piece in self._heard if at > since]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)

    def _on_track(
        self,
        track: rtc.RemoteTrack,
        publication: rtc.RemoteTrackPublication,
        participant: rtc.RemoteParticipant,
    ) -> None:
        if publication.name == self._track and not self._found.done():
            self._found.set_result(track)

    async def _record(self, track: rtc.RemoteTrack) -> None:
        stream = rtc.AudioStream(track, sample_rate=SAMPLE_RATE_HZ, num_channels=1)
        try:
            async for event in stream:
                at = time.perf_counter()
                piece = np.frombuffer(event.frame.data, np.int16)
                self._on_piece(at, piece)
                async with self._more:
                    self._heard.append((at, piece))
                    self._more.notify_all()
        finally:
            await stream.aclose()


def likeness(heard: npt.NDArray[np.int16], cue: Samples) -> float:
    """The best normalised correlation of `cue` with any stretch of `heard`: 1 is the same wave."""
    sound, wanted = heard.astype(float), cue.astype(float)
    size = 1 << (sound.size + wanted.size).bit_length()
    product = np.fft.rfft(sound, size) * np.conj(np.fft.rfft(wanted, size))
    places = sound.size - wanted.size + 1
    match = np.fft.irfft(product, size)[:places]
    sums = np.concatenate([[0.0], np.cumsum(sound**2)])
    power = (sums[wanted.size :] - sums[: -wanted.size])[:places]
    # Near silence, any noise would match well: count it as if it had a thousandth of the power.
    least = 1e-3 * float((wanted**2).sum())
    scale = np.sqrt(np.maximum(power, least) * (wanted**2).sum())
    return float(np.abs(match / scale).max())


def _loud(piece: npt.NDArray[np.int16]) -> bool:
    return bool(np.abs(piece.astype(np.int32)).max() > SOUND_FLOOR)
