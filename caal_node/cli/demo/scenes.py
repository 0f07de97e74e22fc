"""The demo's two scenes, a real room or a loop in this process, and their sound."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the event types of its rooms, models and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import json
import logging
import time
import wave
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final, Protocol, Self

import numpy as np
import numpy.typing as npt
from livekit import api, rtc
from livekit.agents.utils import aio
from livekit.agents.voice import io

from caal_node.cli.chosen_agent import chosen_agent
from caal_node.cli.processes.worker import WorkerProcess
from caal_node.config.settings import load_settings
from caal_node.core.errors import CaalError
from caal_node.core.events import Event, from_json
from caal_node.factories import make_voice, voice_session
from caal_node.models.llm import LLM
from caal_node.room.front_end import STATE, TOPIC

# The sound: recorded requests, a microphone that speaks them, and a recording of all.

RATE_HZ: Final = 16_000

SAMPLE_RATE_HZ: Final = 48_000
MAX_S: Final = 900
"""Seconds that are kept at most; 86 MB of samples."""
GAP_S: Final = 0.1
"""A track whose next frame comes this much later than its last one ended has paused."""
Samples = npt.NDArray[np.int16]
FRAME_SAMPLES: Final = RATE_HZ // 50
"""A frame is 20 ms, as a room's own packet is."""
_SILENCE: Final = np.zeros(FRAME_SAMPLES, dtype=np.int16)


@dataclass(frozen=True, slots=True)
class SpokenRequest:
    """A recording: `words` is what was spoken, `samples` are mono at RATE_HZ."""

    words: str
    samples: npt.NDArray[np.int16]

    @property
    def seconds(self) -> float:
        return self.samples.size / RATE_HZ


def load_requests(which: str = "requests") -> list[SpokenRequest]:
    """Return the requests of one of the lists, in the order in which they are asked."""
    folder = resources.files("caal_node.cli.demo") / "requests"
    rows = json.loads((folder / "requests.json").read_text(encoding="utf-8"))[which]
    loaded: list[SpokenRequest] = []
    for row in rows:
        with (folder / row["file"]).open("rb") as raw, wave.open(raw) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), dtype=np.int16)
        loaded.append(SpokenRequest(row["words"], samples))
    return loaded


class AudioTimeline:
    """Adds sounds up on one clock; `now` returns seconds from any start."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._began = now()
        self._sum: npt.NDArray[np.int32] = np.zeros(SAMPLE_RATE_HZ * 60, dtype=np.int32)
        self._end = 0

    def track(self) -> TrackWriter:
        """Return a new track, whose frames follow each other unless it pauses."""
        return TrackWriter(self)

    def position(self) -> int:
        """Return how many samples have passed since the beginning."""
        return int((self._now() - self._began) * SAMPLE_RATE_HZ)

    def add(self, at: int, samples: Samples) -> None:
        """Mix `samples` in from sample `at` on; what would lie past the recording is dropped."""
        end = at + samples.size
        if at < 0 or end > MAX_S * SAMPLE_RATE_HZ:
            return
        if end > self._sum.size:
            self._sum = np.concatenate([self._sum, np.zeros(max(end, self._sum.size), np.int32)])
        self._sum[at:end] += samples
        self._end = max(self._end, end)

    def since(self, at: int) -> Samples:
        """Return everything that was heard from sample `at` on."""
        return np.clip(self._sum[at : self._end], -32768, 32767).astype(np.int16)

    def write(self, path: Path) -> float:
        """Save the recording as 16-bit mono WAV, and return its length in seconds."""
        mixed = self.since(0)
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(SAMPLE_RATE_HZ)
            file.writeframes(mixed.tobytes())
        return self._end / SAMPLE_RATE_HZ


class TrackWriter:
    """Writes one track's frames in order: where the last one ended, or where it is heard."""

    def __init__(self, timeline: AudioTimeline) -> None:
        self._timeline = timeline
        self._next: int | None = None

    def write(self, samples: Samples) -> None:
        heard = self._timeline.position() - samples.size
        if self._next is None or heard - self._next > GAP_S * SAMPLE_RATE_HZ:
            self._next = heard
        self._timeline.add(self._next, samples)
        self._next += samples.size


class Microphone:
    """Gives `push` one frame every 20 ms, and writes what is spoken to the track `heard`.

    Without the silence a listener would hear no end of speech.
    """

    def __init__(
        self, push: Callable[[rtc.AudioFrame], Awaitable[None]], heard: TrackWriter
    ) -> None:
        self._push = push
        self._heard = heard
        self._queue: asyncio.Queue[Samples | asyncio.Event] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="demo-microphone")

    async def say(self, request: SpokenRequest) -> None:
        """Send the request, and return once its last frame has been sent."""
        said = asyncio.Event()
        padded = np.pad(request.samples, (0, -request.samples.size % FRAME_SAMPLES))
        for frame in padded.reshape(-1, FRAME_SAMPLES):
            self._queue.put_nowait(frame)
        self._queue.put_nowait(said)
        await said.wait()

    async def aclose(self) -> None:
        if self._task is not None:
            await aio.cancel_and_wait(self._task)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            samples, spoken = self._next()
            if spoken:
                self._heard.write(_at_48_khz(samples))
            await self._push(rtc.AudioFrame(samples.tobytes(), RATE_HZ, 1, FRAME_SAMPLES))
            # A stall is not made up for.
            due = max(due + FRAME_SAMPLES / RATE_HZ, loop.time() - 1.0)
            await asyncio.sleep(due - loop.time())

    def _next(self) -> tuple[Samples, bool]:
        while not self._queue.empty():
            item = self._queue.get_nowait()
            if not isinstance(item, asyncio.Event):
                return item, True
            item.set()
        return _SILENCE, False


def _at_48_khz(samples: Samples) -> Samples:
    ratio = SAMPLE_RATE_HZ // RATE_HZ
    at = np.arange(samples.size * ratio) / ratio
    return np.interp(at, np.arange(samples.size), samples).astype(np.int16)


# In a real room: a livekit-server, a worker process and a participant who speaks.

ROOM: Final = "demo"
IDENTITY: Final = "demo-person"
READY_S: Final = 300.0
"""Seconds for the agent to join and its model to read the prompt, 0.8 k tokens: some ten on two
cores, and twenty times as many where others work on them too."""
MESSAGE_S: Final = 10.0
"""Seconds for one message of the room to arrive; it normally takes some milliseconds."""
_log = logging.getLogger(__name__)


class EventReader(Protocol):
    """A message of the room that is still arriving; the part of rtc.TextStreamReader used here."""

    async def read_all(self) -> str: ...


class RoomScene:
    """A `DemoScene`. The participant subscribes to all that the agent publishes, and records it.

    `room` must be new: a server sends an agent to a room when that is made.
    """

    def __init__(
        self, url: str, key: str, secret: str, worker: WorkerProcess, *, room: str = ROOM
    ) -> None:
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        self._url = url
        self._token = (
            api.AccessToken(key, secret)
            .with_identity(IDENTITY)
            .with_grants(api.VideoGrants(room_join=True, room=room))
            .to_jwt()
        )
        self._worker = worker
        self._room = rtc.Room()
        self._open = AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()
        self._messages: asyncio.Queue[EventReader] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        self.timeline = AudioTimeline(asyncio.get_running_loop().time)
        try:
            # A room that is made before the worker has registered gets no agent.
            await self._open.enter_async_context(self._worker)
            await self._join()
            await self._wait_for_agent()
        except BaseException:
            await self._open.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def speak(self, request: SpokenRequest) -> None:
        await self._microphone.say(request)

    async def _join(self) -> None:
        self._room.on("track_subscribed", self._on_track)
        self._room.register_text_stream_handler(TOPIC, self._on_text)
        self._open.push_async_callback(self._leave)  # also where it cannot be joined
        self._start_task(read_events(self._messages, self.events))
        await self._room.connect(self._url, self._token)
        source = rtc.AudioSource(RATE_HZ, 1, queue_size_ms=100)
        track = rtc.LocalAudioTrack.create_audio_track("microphone", source)
        options = rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_MICROPHONE)
        await self._room.local_participant.publish_track(track, options)
        self._microphone = Microphone(source.capture_frame, self.timeline.track())
        self._microphone.start()
        self._open.push_async_callback(self._microphone.aclose)

    async def _leave(self) -> None:
        await self._room.disconnect()
        await aio.cancel_and_wait(*self._tasks)

    async def _wait_for_agent(self) -> None:
        ready = asyncio.Event()

        def check_state(*_: Any) -> None:
            for participant in self._room.remote_participants.values():
                if participant.attributes.get(STATE) == "idle":
                    ready.set()

        self._room.on("participant_attributes_changed", check_state)
        self._room.on("participant_connected", check_state)
        check_state()
        try:
            async with asyncio.timeout(READY_S):
                await self._worker.wait_while_alive(ready.wait())
        except TimeoutError:
            raise CaalError(
                f"no agent was ready in the room after {READY_S:g} s; see {self._worker.log}"
            ) from None
        finally:
            self._room.off("participant_attributes_changed", check_state)
            self._room.off("participant_connected", check_state)

    def _on_track(self, track: rtc.Track, *_: Any) -> None:
        if track.kind == rtc.TrackKind.KIND_AUDIO:
            self._start_task(self._record(track))

    async def _record(self, track: rtc.Track) -> None:
        heard = self.timeline.track()
        stream = rtc.AudioStream(track, sample_rate=SAMPLE_RATE_HZ, num_channels=1)
        try:
            async for event in stream:
                heard.write(np.frombuffer(event.frame.data, dtype=np.int16))
        finally:
            await stream.aclose()

    def _on_text(self, reader: rtc.TextStreamReader, identity: str) -> None:
        self._messages.put_nowait(reader)

    def _start_task(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def read_events(messages: asyncio.Queue[EventReader], events: asyncio.Queue[Event]) -> None:
    """Read one message after the other, since a short one may be complete before a longer.

    A message that breaks off, or is no event, is left out: the demo goes on.
    """
    while True:
        reader = await messages.get()
        try:
            async with asyncio.timeout(MESSAGE_S):
                events.put_nowait(from_json(await reader.read_all()))
        except Exception as error:
            _log.warning("a message of the room was left out: %s", type(error).__name__)


# Without a room: the same session, tools and speech inside this process.

WARM_S: Final = 150.0
"""Seconds for the model to read the prompt's head, cold, on two cores."""


class LocalScene:
    """A `DemoScene`. `env` and `folder` are what a room's worker would have been given."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        self._env, self._folder = env, folder
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self.timeline = AudioTimeline(asyncio.get_running_loop().time)
        settings = load_settings(self._env, self._folder / "caal.toml")
        # In this thread, as LiveKit's plugins register themselves only in the main one.
        voice = make_voice(settings)
        session = voice_session(settings, voice)
        source, loudspeaker = LocalMicrophone(), LocalLoudspeaker(self.timeline)
        self._open.push_async_callback(loudspeaker.aclose)
        session.input.audio, session.output.audio = source, loudspeaker
        agent = chosen_agent(
            settings,
            None,
            on_event=self.events.put_nowait,
            cue_sink=LocalCues(self.timeline),
        )
        await session.start(agent)
        model = session.llm
        if isinstance(model, LLM):
            self._open.push_async_callback(model.aclose)
        self._open.push_async_callback(session.aclose)
        try:
            async with asyncio.timeout(WARM_S):
                await agent.warmed()
        except TimeoutError:
            await self._open.aclose()
            raise CaalError(f"the model was not ready after {WARM_S:g} s") from None
        self._microphone = Microphone(source.push, self.timeline.track())
        self._microphone.start()
        self._open.push_async_callback(self._microphone.aclose)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def speak(self, request: SpokenRequest) -> None:
        await self._microphone.say(request)


class LocalMicrophone(io.AudioInput):
    """Gives the session the frames that are pushed into it."""

    def __init__(self) -> None:
        super().__init__(label="demo-loop")
        self._frames: asyncio.Queue[rtc.AudioFrame] = asyncio.Queue()

    async def push(self, frame: rtc.AudioFrame) -> None:
        self._frames.put_nowait(frame)

    async def __anext__(self) -> rtc.AudioFrame:
        return await self._frames.get()


class LocalLoudspeaker(io.AudioOutput):
    """Writes the session's speech onto the timeline, at the pace at which it would be heard."""

    def __init__(self, timeline: AudioTimeline) -> None:
        super().__init__(
            label="demo-loop",
            capabilities=io.AudioOutputCapabilities(pause=False),
            sample_rate=SAMPLE_RATE_HZ,
        )
        self._timeline = timeline
        self._frames: asyncio.Queue[rtc.AudioFrame | None] = asyncio.Queue()
        self._player = asyncio.create_task(self._play(), name="demo-loudspeaker")
        self._played_s = 0.0

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        self._frames.put_nowait(frame)

    def flush(self) -> None:
        super().flush()
        self._frames.put_nowait(None)

    def clear_buffer(self) -> None:
        """Drop what was not heard yet, as somebody has barged in."""
        heard = False
        while not self._frames.empty():
            heard |= self._frames.get_nowait() is not None
        if heard or self._played_s:
            self._finished(interrupted=True)

    async def aclose(self) -> None:
        await aio.cancel_and_wait(self._player)

    async def _play(self) -> None:
        writer, due = self._timeline.track(), 0.0
        loop = asyncio.get_running_loop()
        while True:
            frame = await self._frames.get()
            if frame is None:
                if self._played_s:
                    self._finished(interrupted=False)
                continue
            if not self._played_s:
                self.on_playback_started(created_at=time.time())
                writer, due = self._timeline.track(), loop.time()
            self._played_s += frame.duration
            due += frame.duration
            await asyncio.sleep(due - loop.time())
            writer.write(np.frombuffer(frame.data, dtype=np.int16))

    def _finished(self, *, interrupted: bool) -> None:
        played, self._played_s = self._played_s, 0.0
        self.on_playback_finished(playback_position=played, interrupted=interrupted)


class LocalCues:
    """A `CueSink` that writes onto the timeline."""

    DELAY_S: Final = 0.04
    """A room adds this between the call and the sound, and the recording is to be true to one."""

    def __init__(self, timeline: AudioTimeline) -> None:
        self._timeline = timeline

    def play(self, samples: Samples) -> None:
        at = self._timeline.position() + int(self.DELAY_S * SAMPLE_RATE_HZ)
        self._timeline.add(at, samples)

    def stop(self) -> None:
        """A cue is written whole at once; 150 ms of it are not worth taking back."""

    async def aclose(self) -> None:
        """Nothing to close."""
