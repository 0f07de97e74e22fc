"""Relays between one connection and its one process: text frames to lines, and back.

Nothing is read from one side before the other has taken what came before, so neither a slow
client nor a slow process makes memory grow; one that takes nothing at all is cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import anyio
from pydantic_core import from_json
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from mcp_bridge.core.computing import computed
from mcp_bridge.protocol.inbound_filter import BIG_MESSAGE_BYTES, Flooded, InboundFilter
from mcp_bridge.protocol.json_spans import members, skip_space
from mcp_bridge.protocol.messages import CappedLine, error_answer, read_lines, readable_text
from mcp_bridge.serve.options import MIB, ServeLimits
from mcp_bridge.transports.process import ServerProcess
from mcp_bridge.transports.websocket import sends_at_once

# Tells which calls of a connection have no answer yet.
#
# Of a JSON-RPC message it reads what it is (a request, an answer, a cancellation), not what it
# says.

MAX_ID_CHARS: Final = 128
"""Clients count, or write a UUID of 36 characters."""
_CANCELLED: Final = "notifications/cancelled"
_LISTEN: Final = "subscriptions/listen"
"""A request of 2026-07-28 that stays open until it is cancelled: nobody waits for its end."""
_SMALL_BYTES: Final = 4 * 1024

RequestId: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class MessageKind:
    """What a message is. At most one of the three is set; none for other notifications."""

    asks: RequestId | None = None
    """The id of a request that ends with an answer."""
    answers: RequestId | None = None
    """The id of the request that it answers."""
    cancels: RequestId | None = None
    """The id of the request that its sender gave up."""


async def message_kind(message: bytes) -> MessageKind:
    """Tells what a message is. Large ones are looked through in a worker thread.

    Raises: ValueError, where this is not a JSON object.
    """
    if len(message) <= BIG_MESSAGE_BYTES:
        return parse_kind(message)
    return await computed(scan_kind, message)


def parse_kind(message: bytes) -> MessageKind:
    """Tells what a message is, by parsing it. Raises: ValueError, where it is not a JSON object."""
    top = from_json(message)
    if not isinstance(top, dict):
        raise ValueError("no object")
    return _of(cast("dict[str, Any]", top).get)


def scan_kind(message: bytes) -> MessageKind:
    """Tells the same without building the values; it finds most, but not all faults.

    Raises: ValueError, where this is not a JSON object.
    """
    message.decode()  # a text frame must be UTF-8
    try:
        start = skip_space(message, 0)
        spans = {key: message[at:to] for key, at, to in members(message, start) if key in _READ}
    except (IndexError, RecursionError) as error:
        raise ValueError("no object") from error

    def get(key: str) -> Any:
        span = spans.get(key)
        return json.loads(span) if span is not None and len(span) <= _SMALL_BYTES else None

    return _of(get)


_READ: Final = frozenset({"id", "method", "params"})


def _of(get: Callable[[str], Any]) -> MessageKind:
    method, written = get("method"), get("id")
    if method is None:
        return MessageKind(answers=_id(written))
    if written is not None:
        return MessageKind(asks=None if method == _LISTEN else _id(written))
    if method != _CANCELLED or not isinstance(params := get("params"), Mapping):
        return MessageKind()
    return MessageKind(cancels=_id(cast("Mapping[str, Any]", params).get("requestId")))


def _id(written: Any) -> RequestId | None:
    if isinstance(written, str):
        if len(written) > MAX_ID_CHARS:
            raise ValueError("the id is too long")
        return written
    return written if isinstance(written, int) else None


class TooManyCalls(Exception):
    """There are more calls without an answer than one connection may have."""


class PendingCalls:
    """The calls without an answer. `none` is set while there are none."""

    def __init__(self, most: int) -> None:
        self._most: Final = most
        self._asked: Final[set[RequestId]] = set()
        self.none: Final = asyncio.Event()
        self.none.set()

    def __len__(self) -> int:
        return len(self._asked)

    def sent(self, kind: MessageKind) -> None:
        """Notes what the client sent. Raises: TooManyCalls."""
        if kind.asks is not None:
            if len(self._asked) >= self._most:
                raise TooManyCalls
            self._asked.add(kind.asks)
            self.none.clear()
        self._over(kind.cancels)

    def received(self, kind: MessageKind) -> None:
        """Notes what the server sent."""
        self._over(kind.answers)

    def answered(self, call: RequestId) -> None:
        self._over(call)

    def _over(self, call: RequestId | None) -> None:
        if call is not None:
            self._asked.discard(call)
        if not self._asked:
            self.none.set()


@dataclass(frozen=True, slots=True)
class CloseReason:
    """Why a connection ends; `code` is None where there is nobody left to tell."""

    code: CloseCode | None
    reason: str


@dataclass(frozen=True, slots=True)
class ShutdownSignals:
    """The bridge's signals to all of its connections."""

    soon: asyncio.Event
    """Set when each connection is to end as soon as no call is under way."""
    now: asyncio.Event
    """Set when each connection is to end at once."""


_STOPPED: Final = CloseReason(CloseCode.GOING_AWAY, "the bridge is shutting down")


class Relay:
    """Relays until one of the two sides ends, or has to be ended."""

    def __init__(
        self,
        socket: ServerConnection,
        process: ServerProcess,
        limits: ServeLimits,
        shutdown: ShutdownSignals,
    ) -> None:
        self._socket: Final = socket
        self._process: Final = process
        self._limits: Final = limits
        self._shutdown: Final = shutdown
        self._calls: Final = PendingCalls(limits.max_calls)
        self._inbound: Final = InboundFilter("the server")
        self._scope: Final = anyio.CancelScope()
        self._reason: CloseReason | None = None
        self._last_message = anyio.current_time()

    async def run(self) -> CloseReason:
        """Relays, and says why it ended. It leaves both sides to the caller."""
        # One whole message may wait in the process's pipe while it is busy with another.
        self._process.stdin.transport.set_write_buffer_limits(self._limits.max_message_bytes)
        works: list[Callable[[], Awaitable[CloseReason]]] = [
            self._client_to_process,
            self._process_to_client,
            self._stop_soon,
            self._stop_now,
        ]
        if self._limits.idle_s:
            works.append(self._idle)
        with self._scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._process.watch)
                for work in works:
                    tasks.start_soon(self._end_after, work)
        self._inbound.close()
        return self._reason or _STOPPED

    async def _end_after(self, work: Callable[[], Awaitable[CloseReason]]) -> None:
        reason = await work()
        self._reason = self._reason or reason
        self._scope.cancel()

    async def _client_to_process(self) -> CloseReason:
        """Passes messages from the client to the process."""
        stdin = self._process.stdin
        try:
            while True:
                text = await self._socket.recv()
                if isinstance(text, bytes):
                    return CloseReason(
                        CloseCode.UNSUPPORTED_DATA, "send text frames, no binary ones"
                    )
                message = text.encode()
                self._calls.sent(await message_kind(message))
                self._last_message = anyio.current_time()
                await self._inbound.give_way(len(message))
                # In JSON a line break can only stand where a space could.
                stdin.write(message.translate(_ONE_LINE) + b"\n")
                full = stdin.transport.get_write_buffer_size() > 0
                async with asyncio.timeout(self._limits.stall_s) if full else _AT_ONCE:
                    await stdin.drain()
        except ConnectionClosed:
            return CloseReason(None, "the client left")
        except ValueError:
            return CloseReason(CloseCode.INVALID_DATA, "send a JSON-RPC object in each frame")
        except TooManyCalls:
            most = self._limits.max_calls
            return CloseReason(
                CloseCode.POLICY_VIOLATION, f"more than {most} calls without an answer"
            )
        except TimeoutError:
            return CloseReason(CloseCode.INTERNAL_ERROR, "the server does not read its input")
        except OSError:
            return await self._process_died()

    async def _process_to_client(self) -> CloseReason:
        """Passes messages from the process to the client."""
        try:
            async for line in read_lines(self._process.stdout, self._limits.max_line_bytes):
                if (message := await self._message(line)) is not None:
                    fits = sends_at_once(self._socket.transport, message)
                    async with _AT_ONCE if fits else asyncio.timeout(self._limits.stall_s):
                        await self._socket.send(message, text=True)
                    self._last_message = anyio.current_time()
                    await self._inbound.give_way(len(message))
        except Flooded as flood:
            said = f"the server was ended, as it {flood}; its logs belong on stderr"
            return CloseReason(CloseCode.INTERNAL_ERROR, said)
        except ConnectionClosed:
            return CloseReason(None, "the client left")
        except TimeoutError:
            return CloseReason(None, "the client does not read its answers")
        except OSError:
            pass  # the pipe broke
        return await self._process_died()

    async def _message(self, line: CappedLine) -> bytes | None:
        if line.too_long:
            await self._inbound.drop("messages that are too long", line.size)
            said = f"the answer is over {self._limits.max_line_bytes / MIB:g} MiB; ask for less"
            return self._error_answer(*line.ends(), said)
        message = await readable_text(line.content().strip())
        if not message:
            await self._inbound.drop("blank lines and comments", line.size)
            return None
        try:
            self._calls.received(await message_kind(message))
        except ValueError:
            await self._inbound.drop("lines that are no JSON-RPC", line.size)
            said = "the answer is not JSON that can be read"
            return self._error_answer(message, message, said)
        return message

    def _error_answer(self, head: bytes, tail: bytes, said: str) -> bytes | None:
        """Gives an error in the place of the answer with these two ends, as its caller waits.

        None: nobody does.
        """
        if (error := error_answer(head, tail, said)) is None or error.id is None:
            return None
        self._calls.answered(error.id)
        return error.model_dump_json(by_alias=True, exclude_none=True).encode()

    async def _process_died(self) -> CloseReason:
        end = await self._process.wait_for_end()
        return CloseReason(CloseCode.INTERNAL_ERROR, f"the server {end}")

    async def _stop_soon(self) -> CloseReason:
        await self._shutdown.soon.wait()
        await self._calls.none.wait()
        return _STOPPED

    async def _stop_now(self) -> CloseReason:
        await self._shutdown.now.wait()
        return _STOPPED

    async def _idle(self) -> CloseReason:
        # An event for each message would cost more than a look now and then.
        while (left := self._last_message + self._limits.idle_s - anyio.current_time()) > 0:  # noqa: ASYNC110
            await anyio.sleep(left)
        return CloseReason(CloseCode.GOING_AWAY, f"no message for {self._limits.idle_s:g} s")


_AT_ONCE: Final = contextlib.nullcontext()
"""What cannot wait needs no deadline, and a deadline takes a tenth of a message's time."""
_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")
