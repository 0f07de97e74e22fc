"""Decides which of a server's messages are read. The rule is one for all transports.

An answer that somebody waits for is read. So are the few notifications that the bridge follows and
the requests that it answers, so many of them at a time. All else (junk, blank lines, log messages,
floods) is dropped unparsed: said once for each connection, and counted. Between two waits only so
much is looked at, and a server that does not stop is left.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeAlias

from mcp.shared.dispatcher import coerce_request_id
from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from pydantic_core import from_json

from mcp_bridge.protocol.envelope import BIG_MESSAGE_BYTES, Envelope, read_envelope

logger = logging.getLogger(__name__)

MAX_DROPPED: Final = 50_000
"""Messages that are dropped since the last answer. A banner or a log on stdout has thousands; of
what floods, so many take half a second."""
DROPPED_PER_S: Final = 200
MAX_DROPPED_BYTES: Final = 64 * 1024 * 1024
"""The same in bytes: a few messages of the largest size may be dropped."""
DROPPED_BYTES_PER_S: Final = 1024 * 1024
MAX_READ: Final = 100
"""Notifications and requests that are read at once: each takes the SDK some 0.2 ms."""
READ_PER_S: Final = 50
MAX_ASKED: Final = 8
"""Requests of a server that have no answer of ours yet."""
_STEP_ITEMS: Final = 128
"""So much is looked at before the event loop gets its turn: about a millisecond."""
_STEP_BYTES: Final = 64 * 1024
_JUNK_BYTES: Final = 8 * 1024
"""So much is kept of a line that is no message: more than is shown, so that a secret is whole."""
_LIST_CHANGED: Final = "notifications/tools/list_changed"
_CANCELLED: Final = "notifications/cancelled"
_FOLLOWED: Final = frozenset(
    {
        "notifications/progress",
        _LIST_CHANGED,
        _CANCELLED,
        "notifications/subscriptions/acknowledged",
    }
)

Dropped: TypeAlias = Literal[
    "blank lines and comments",
    "lines that are no JSON-RPC",
    "answers that nobody asked for",
    "notifications that nobody follows",
    "notifications and requests faster than they are read",
    "messages over 64 KiB that are no answers",
    "messages that are too long",
]
_ORDINARY: Final[frozenset[Dropped]] = frozenset(
    {"blank lines and comments", "notifications that nobody follows"}
)
"""What honest servers send; it is no news until it floods."""


class Flooded(Exception):
    """The server does not stop; the text says what it sends, as half a sentence."""


class TokenBucket:
    """Lets `burst` through at once, and `per_s` in the long run."""

    def __init__(self, burst: int, per_s: int, now: Callable[[], float]) -> None:
        self._burst: Final = burst
        self._per_s: Final = per_s
        self._now: Final = now
        self._left = float(burst)
        self._at = now()

    def take(self, amount: int = 1) -> bool:
        """Tells whether there was so much left, and takes it."""
        now = self._now()
        self._left = min(self._burst, self._left + (now - self._at) * self._per_s)
        self._at = now
        if amount > self._left:
            return False
        self._left -= amount
        return True

    def refill(self) -> None:
        self._left = self._burst


class InboundFilter:
    """The filter of one connection."""

    def __init__(self, server: str, now: Callable[[], float] = time.monotonic) -> None:
        self.list_changed: Callable[[], Awaitable[None]] = _nothing
        """Called when a change of the tools was not read, as no change may be lost."""
        self.refuse: Callable[[RequestId], None] = lambda _: None
        """Called with the id of a request that was not read; it may answer, but must not wait."""
        self.flooded = False
        """Whether the server did not stop."""
        self.junk = b""
        """The beginning of the first line that was no JSON-RPC."""
        self._server: Final = server
        self._awaited: Final[set[RequestId]] = set()
        """The ids of our requests that have no answer yet."""
        self._asked: Final[set[RequestId]] = set()
        """The ids of the server's requests that have no answer yet."""
        self._dropped: Final = Counter[Dropped]()
        self._items: Final = TokenBucket(MAX_DROPPED, DROPPED_PER_S, now)
        self._bytes: Final = TokenBucket(MAX_DROPPED_BYTES, DROPPED_BYTES_PER_S, now)
        self._read: Final = TokenBucket(MAX_READ, READ_PER_S, now)
        self._step_items = 0
        self._step_bytes = 0

    def sent(self, message: JSONRPCMessage) -> None:
        """Notes what we send to the server."""
        match message:
            case JSONRPCRequest():
                self._awaited.add(coerce_request_id(message.id))
            case JSONRPCNotification(method=method, params=params) if method == _CANCELLED:
                self._awaited.discard((params or {}).get("requestId", ""))
            case JSONRPCResponse() | JSONRPCError() if message.id is not None:
                self._asked.discard(message.id)
            case _:
                pass

    def answered(self, request: RequestId | None) -> None:
        """Notes an answer that is read."""
        self._items.refill()
        self._bytes.refill()
        if request is not None:
            self._awaited.discard(coerce_request_id(request))

    async def admits(self, message: bytes, *, any_id: bool = False) -> bool:
        """Tells whether to read a message.

        Args:
            any_id: Whether an answer is one to our request whatever its id.

        Raises: Flooded.
        """
        size = len(message)
        if not message.strip():
            await self.drop("blank lines and comments", size)
            return False
        try:
            envelope = await read_envelope(message)
        except (ValueError, RecursionError):
            self.junk = self.junk or message.strip()[:_JUNK_BYTES]
            await self.drop("lines that are no JSON-RPC", size)
            return False
        if envelope.kind == "answer":
            if self._is_awaited(envelope.id) or any_id:
                self.answered(envelope.id)
                await self.give_way(0)  # a large one is read in a worker thread
                return True
            await self.drop("answers that nobody asked for", size)
            return False
        if (why := self._why_unread(envelope, message)) is None:
            self._spend(size)
            await self.give_way(size)
            return True
        if envelope.method == _LIST_CHANGED:
            await self.list_changed()
        if envelope.id is not None:
            self.refuse(envelope.id)
        await self.drop(why, size)
        return False

    async def drop(self, what: Dropped, size: int) -> None:
        """Counts something that is not read. Raises: Flooded."""
        self._dropped[what] += 1
        if self._dropped[what] == 1 and what not in _ORDINARY:
            logger.warning("%s: sends %s; they are dropped and counted", self._server, what)
        self._spend(size)
        await self.give_way(size)

    async def give_way(self, size: int) -> None:
        """Gives the event loop its turn after every so many items and bytes."""
        self._step_items += 1
        self._step_bytes += size
        if self._step_items >= _STEP_ITEMS or self._step_bytes >= _STEP_BYTES:
            self._step_items = self._step_bytes = 0
            await asyncio.sleep(0)

    def close(self) -> None:
        """Says in the log what was dropped, where that is not all said yet."""
        unsaid = {what: count for what, count in self._dropped.items() if count > 1}
        if unsaid:
            told = ", ".join(f"{count:,} {what}" for what, count in unsaid.items())
            news = unsaid.keys() - _ORDINARY
            logger.log(
                logging.WARNING if news else logging.DEBUG, "%s: dropped %s", self._server, told
            )

    def _is_awaited(self, request: RequestId | None) -> bool:
        return request is not None and coerce_request_id(request) in self._awaited

    def _why_unread(self, envelope: Envelope, message: bytes) -> Dropped | None:
        method, asked = envelope.method, envelope.id
        if asked is None and method not in _FOLLOWED:
            return "notifications that nobody follows"
        if len(message) > BIG_MESSAGE_BYTES:
            return "messages over 64 KiB that are no answers"
        if (asked is not None and len(self._asked) >= MAX_ASKED) or not self._read.take():
            return "notifications and requests faster than they are read"
        if asked is not None:
            self._asked.add(asked)
        elif method == _CANCELLED:
            self._asked.discard(_cancelled_id(message))  # the SDK leaves it without an answer
        return None

    def _spend(self, size: int) -> None:
        if not (self._items.take() and self._bytes.take(size)):
            most = max(self._dropped, key=lambda what: self._dropped[what], default=None)
            said = most or "notifications and requests"
            self.flooded = True
            raise Flooded(f"does not stop sending {said}")


async def _nothing() -> None:
    pass


def _cancelled_id(message: bytes) -> RequestId:
    try:
        found = from_json(message)["params"]["requestId"]
    except (ValueError, KeyError, TypeError):
        return ""
    return found if isinstance(found, int | str) else ""
