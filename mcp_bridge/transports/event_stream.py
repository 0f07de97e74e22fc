"""Reads a stream of server-sent events before the SDK does, and passes on what is to be read.

Each event that passes has its data on one line. Lines end with CR, LF or both, as in
https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Final

import httpx2

from mcp_bridge.protocol.inbound_filter import Flooded, InboundFilter
from mcp_bridge.protocol.messages import bounded_message, error_answer

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""The cap of one JSON body, of one event, or of one frame."""
_MAX_LINES: Final = 100_000
"""The lines of one event; JSON that is written over many lines has thousands."""
_MAX_ID_BYTES: Final = 1024
_LEAST_RETRY_MS: Final = 500
_MOST_RETRY_MS: Final = 30_000
"""The wait before a stream is opened again, which servers may set to nothing or to years."""
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")


@dataclass(slots=True)
class _Event:
    """The fields of one event while its lines arrive."""

    kind: bytes = b"message"
    data: bytearray = field(default_factory=bytearray)
    before: bytes = b""
    """The lines for `id` and `retry`."""
    lines: int = 0

    def add(self, line: bytes) -> bool:
        """Takes in one line; tells whether it was a part of the event."""
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                # In JSON a line break can only stand where a space could.
                self.data += value if not self.data else b" " + value
            case b"event":
                self.kind = value or b"message"
            case b"id" if len(value) <= _MAX_ID_BYTES:
                self.before += b"id: " + value + b"\n"
            case b"retry" if value.isdigit():
                wait_ms = int(value) if len(value) < 9 else _MOST_RETRY_MS
                wait_ms = min(max(wait_ms, _LEAST_RETRY_MS), _MOST_RETRY_MS)
                self.before += b"retry: %d\n" % wait_ms
            case _:
                return False
        self.lines += 1
        if len(self.data) + len(self.before) > MAX_MESSAGE_BYTES or self.lines > _MAX_LINES:
            raise httpx2.SSEError(f"an event is over {MAX_MESSAGE_BYTES // 1024**2} MiB")
        return True


class EventStream(httpx2.AsyncByteStream):
    """The body of a response that is a stream of events.

    Args:
        any_id: Whether the stream answers one request, so that its answer may have any id.
        endpoint: Whether the server says in an event of its own where to post, as before 2025.
        flooded: Called with the reason when the server does not stop.
    """

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        inbound: InboundFilter,
        max_chars: int,
        flooded: Callable[[str], None],
        *,
        any_id: bool,
        endpoint: bool,
    ) -> None:
        self._inner: Final = inner
        self._inbound: Final = inbound
        self._max_chars: Final = max_chars
        self._flooded: Final = flooded
        self._any_id: Final = any_id
        self._endpoint = endpoint

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        event = _Event()
        try:
            async for line in self._lines():
                if line and event.add(line):
                    await self._inbound.give_way(len(line))
                elif line or not event.lines:
                    await self._inbound.drop("blank lines and comments", len(line) + 1)
                else:
                    if passed := await self._passed(event):
                        yield passed
                    event = _Event()
        except Flooded as flood:
            self._flooded(f"was left, as it {flood}")
            raise httpx2.SSEError(str(flood)) from None

    async def _lines(self) -> AsyncIterator[bytes]:
        parts: list[bytes] = []
        size = 0
        after_return = False
        async for chunk in self._inner:
            text = chunk[1:] if after_return and chunk.startswith(b"\n") else chunk
            after_return = chunk.endswith(b"\r")
            *ended, rest = _LINE_END.split(text)
            for piece in ended:
                yield b"".join([*parts, piece])
                parts, size = [], 0
            parts.append(rest)
            size += len(rest)
            if size > MAX_MESSAGE_BYTES:
                raise httpx2.SSEError(f"an event is over {MAX_MESSAGE_BYTES // 1024**2} MiB")
            await self._inbound.give_way(len(chunk))

    async def _passed(self, event: _Event) -> bytes | None:
        """Gives the event as the SDK is to read it; None where it is not. Raises: Flooded."""
        message = bytes(event.data)
        if event.kind == b"endpoint" and self._endpoint:
            self._endpoint = False  # a second one would end the SDK's transport
            return b"event: endpoint\ndata: " + message + b"\n\n"
        if event.kind != b"message":
            await self._inbound.drop("notifications that nobody follows", len(message))
            return None
        if not message:
            await self._inbound.drop("blank lines and comments", len(event.before))
            return event.before + b"data:\n\n"
        if not await self._inbound.admits(message, any_id=self._any_id):
            return None
        try:
            text = await bounded_message(message, self._max_chars)
        except ValueError:
            said = "its answer is not JSON that can be read"
            if (error := error_answer(message, message, said)) is None:
                return None
            text = error.model_dump_json(by_alias=True).encode()
        return event.before + b"data: " + text.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n\n"
