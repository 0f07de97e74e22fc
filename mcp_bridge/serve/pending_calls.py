"""Tells which calls of a connection have no answer yet.

Of a JSON-RPC message it reads what it is (a request, an answer, a cancellation), not what it says.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import anyio.to_thread
from pydantic_core import from_json

from mcp_bridge.protocol.envelope import BIG_MESSAGE_BYTES
from mcp_bridge.protocol.json_spans import members, skip_space

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

    Raises: ValueError, where this is no JSON object.
    """
    if len(message) <= BIG_MESSAGE_BYTES:
        return parse_kind(message)
    return await anyio.to_thread.run_sync(scan_kind, message, abandon_on_cancel=True)


def parse_kind(message: bytes) -> MessageKind:
    """Tells what a message is, by parsing it. Raises: ValueError, where it is no JSON object."""
    top = from_json(message)
    if not isinstance(top, dict):
        raise ValueError("no object")
    return _of(cast("dict[str, Any]", top).get)


def scan_kind(message: bytes) -> MessageKind:
    """Tells the same without building the values; it finds most, but not all faults.

    Raises: ValueError, where this is no JSON object.
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
