"""Reads the events of a live room as its front ends do, without being seen there."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Final, Self

from livekit import api, rtc

from caal_node.room.front_end import TOPIC

MESSAGE_MAX_BYTES: Final = 65_536
"""Bytes of one event. A longer one is left out."""
QUEUE_MESSAGES: Final = 256
"""Events that wait for a slow reader. The oldest are dropped."""
READING_MAX: Final = 64
"""Messages that arrive at the same time; more are left out."""
MESSAGE_S: Final = 10.0
"""Seconds for one event to arrive; it normally takes some milliseconds."""
TOKEN_S: Final = 60.0
"""Seconds in which the room has to be entered."""
CONNECT_S: Final = 5.0
"""Seconds for entering it."""


class RoomEvents:
    """The events of one room: `async with RoomEvents(...) as events:`, then `events.lines()`."""

    def __init__(self, url: str, api_key: str, api_secret: str, room: str) -> None:
        self._url: Final = url
        grants = api.VideoGrants(
            room_join=True,
            room=room,
            hidden=True,
            can_publish=False,
            can_publish_data=False,
            can_update_own_metadata=False,
        )
        self._token: Final = (
            api.AccessToken(api_key, api_secret)
            .with_identity(f"caal-events-{secrets.token_hex(4)}")
            .with_ttl(timedelta(seconds=TOKEN_S))
            .with_grants(grants)
            .to_jwt()
        )
        self._room: Final = rtc.Room()
        self._lines: Final[asyncio.Queue[str | None]] = asyncio.Queue(QUEUE_MESSAGES)
        self._reading: Final[set[asyncio.Task[None]]] = set()

    async def __aenter__(self) -> Self:
        """Join the room.

        Raises:
            TimeoutError: the server did not let us in in time.
            OSError: it cannot be reached, or refuses.
        """
        self._room.register_text_stream_handler(TOPIC, self._on_message)
        self._room.on("disconnected", self._on_disconnected)  # pyright: ignore[reportUnknownMemberType] - LiveKit leaves its callbacks open
        options = rtc.RoomOptions(auto_subscribe=False)
        try:
            async with asyncio.timeout(CONNECT_S):
                await self._room.connect(self._url, self._token, options)
        except BaseException as error:
            await self._room.disconnect()
            if isinstance(error, rtc.ConnectError):
                raise ConnectionError("LiveKit lets nobody listen there") from error
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        await self._room.disconnect()

    async def lines(self, idle_s: float) -> AsyncGenerator[str]:
        """Yield each event as a line of JSON, and "" whenever there was none for `idle_s`; end with
        the room."""
        while True:
            try:
                async with asyncio.timeout(idle_s):
                    line = await self._lines.get()
            except TimeoutError:
                line = ""
            if line is None:
                return
            yield line

    def _put(self, line: str | None) -> None:
        while self._lines.full():
            self._lines.get_nowait()
        self._lines.put_nowait(line)

    def _on_disconnected(self, _: object) -> None:
        self._put(None)

    def _on_message(self, reader: rtc.TextStreamReader, identity: str) -> None:
        sender = self._room.remote_participants.get(identity)
        agent = rtc.ParticipantKind.PARTICIPANT_KIND_AGENT
        if sender is None or sender.kind != agent or len(self._reading) >= READING_MAX:
            return  # anybody in the room may send on this topic
        task = asyncio.create_task(self._read(reader), name="caal-room-event")
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _read(self, reader: rtc.TextStreamReader) -> None:
        text, size = list[str](), 0
        try:
            async with asyncio.timeout(MESSAGE_S):
                async for piece in reader:
                    text.append(piece)
                    size += len(piece.encode())
                    if size > MESSAGE_MAX_BYTES:
                        return
        except TimeoutError:
            return
        self._put("".join(text))
