"""In a real room, the demo has a livekit-server, a worker process and a participant who speaks."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the event types of its rooms, models and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, Protocol, Self

import numpy as np
from livekit import api, rtc
from livekit.agents.utils import aio

from caal_node.cli.demo.audio import (
    RATE_HZ,
    SAMPLE_RATE_HZ,
    AudioTimeline,
    Microphone,
    SpokenRequest,
)
from caal_node.cli.demo.livekit_server import PARENT_WATCHDOG
from caal_node.core.errors import CaalError
from caal_node.core.events import Event, from_json
from caal_node.room.attributes import STATE
from caal_node.room.transcript import TOPIC

OUR_WORKER: Final = ("-m", "caal_node.cli", "dev", "--no-reload", "--log-level", "info")
REGISTERED: Final = b"registered worker"
"""LiveKit's own log line, once the server knows the worker."""
REGISTER_S: Final = 60.0
"""Seconds; importing takes 5 of them on two cores."""
STOP_S: Final = 15.0
TAIL_LINES: Final = 12
"""An error quotes this many of the log's last lines."""

ROOM: Final = "demo"
IDENTITY: Final = "demo-person"
READY_S: Final = 300.0
"""Seconds for the agent to join and its model to read the prompt, 0.8 k tokens: some ten on two
cores, and twenty times as many where others work on them too."""
MESSAGE_S: Final = 10.0
"""Seconds for one message of the room to arrive; it normally takes some milliseconds."""
_log = logging.getLogger(__name__)


class WorkerProcess:
    """The worker; `folder` is its working directory, with settings, servers and `worker.log`.

    `program` is what Python runs there.
    """

    def __init__(
        self, folder: Path, env: Mapping[str, str], program: Sequence[str] = OUR_WORKER
    ) -> None:
        self.log: Final = folder / "worker.log"
        self._program = program
        self._folder = folder
        self._env = {**os.environ, **env, "PYTHONUNBUFFERED": "1"}
        self._process: Process | None = None
        self._tail: list[bytes] = []
        self._registered = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", str(PARENT_WATCHDOG)),
            *(sys.executable, *self._program),
            cwd=self._folder,
            env=self._env,
            stdin=PIPE,
            stdout=PIPE,
            stderr=STDOUT,
            start_new_session=True,
        )
        self._reader = asyncio.create_task(self._read_log(), name="demo-worker-log")
        try:
            async with asyncio.timeout(REGISTER_S):
                await self.wait_while_alive(self._registered.wait())
        except TimeoutError:
            await self.aclose()
            raise CaalError(
                f"the worker did not register in {REGISTER_S:g} s; see {self.log}"
            ) from None
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def wait_while_alive(self, awaited: Awaitable[object]) -> None:
        """Wait for `awaited`, unless the worker ends first.

        Raises:
            CaalError: it ended; the message holds its last lines.
        """
        assert self._process is not None
        waiting = asyncio.ensure_future(awaited)
        ended = asyncio.ensure_future(self._process.wait())
        try:
            await asyncio.wait({waiting, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                last = b"".join(self._tail).decode(errors="replace").strip()
                raise CaalError(f"the worker ended with code {ended.result()}:\n{last}")
        finally:
            await aio.cancel_and_wait(waiting, ended)

    async def aclose(self) -> None:
        """Ask it to end, with its rooms; kill it and its children after STOP_S."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGINT)
            try:
                await asyncio.wait_for(process.wait(), STOP_S)
            except TimeoutError:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if self._reader is not None and process is not None:
            try:
                await asyncio.wait_for(self._reader, STOP_S)
            except TimeoutError:  # a child of the worker outlived it and holds the pipe
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    async def _read_log(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with self.log.open("wb") as log:
            async for line in self._process.stdout:
                log.write(line)
                log.flush()
                self._tail = [*self._tail[1 - TAIL_LINES :], line]
                if REGISTERED in line:
                    self._registered.set()


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
