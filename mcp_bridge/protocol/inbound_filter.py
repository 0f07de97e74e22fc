"""Decides which of a server's messages are read, and repairs answers before the SDK reads them.

An answer that somebody waits for is read. So are the few notifications that the bridge follows and
the requests that it answers, so many of them at a time. All else (junk, blank lines, log messages,
floods) is dropped unparsed: said once for each connection, and counted. Between two waits only so
much is looked at, and a server that does not stop is left. The rule is one for all transports.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from mcp_types.methods import parse_server_result
from pydantic_core import from_json

from mcp_bridge.core.computing import computed
from mcp_bridge.protocol.json_spans import members, skip_space

# Tells what a message is by its `method` and `id`, without parsing what it says.
#
# Nearly all messages have both in front. Where one has its params first, the members at the top are
# gone through without building them (`json_spans.py`), a large message's in a worker thread.

BIG_MESSAGE_BYTES: Final = 64 * 1024
"""Messages of up to so many bytes are parsed on the event loop, in 5 ms at most."""
_ENDS_BYTES: Final = 2048
"""So much is looked at of either end of a message: enough to hold the id."""
_MAX_ID_BYTES: Final = 256
_ID: Final = rb'"id"\s*:\s*(0|[1-9]\d{0,14}|"[ !#-\[\]-~]{1,100}")\s*'
_VERSION: Final = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
_ID_FIRST: Final = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb",\s*)?" + _ID + rb",")
_ID_LAST: Final = re.compile(
    rb"\}\s*,(?:\s*" + _VERSION + rb",)?\s*" + _ID + rb"(?:,\s*" + _VERSION + rb")?\}\s*$"
)
"""The places where servers put a request's id: before the result, or at the very end."""
_MEMBER: Final = re.compile(
    rb'\s*[{,]\s*"(jsonrpc|method|id)"\s*:\s*("[^"\\]{0,200}"|-?\d{1,15}|null)(?=\s*[,}])'
)
_BODY: Final = re.compile(rb'\s*[{,]\s*"(?:result|error)"\s*:')


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message's `method` and `id`, as JSON writes them; None where it has none."""

    method: str | None
    id: int | str | None

    @property
    def kind(self) -> Literal["answer", "request", "notification"]:
        if self.method is None:
            return "answer"
        return "notification" if self.id is None else "request"


async def read_envelope(message: bytes) -> Envelope:
    """Raises: ValueError, where this is no JSON object with a method, a result or an error."""
    if (found := _in_front(message)) is not None:
        return found
    if len(message) <= BIG_MESSAGE_BYTES:
        return _anywhere(message)
    return await computed(_anywhere, message)


def find_request_id(head: bytes, tail: bytes) -> bytes | None:
    """Gives the JSON-RPC id of the message with these ends, as written; None if not found."""
    found = _ID_FIRST.match(head[:_ENDS_BYTES]) or _ID_LAST.search(tail[-_ENDS_BYTES:])
    return found[1] if found else None


def _in_front(message: bytes) -> Envelope | None:
    """Reads what stands before the message's body; None where that does not tell what it is."""
    found: dict[bytes, bytes] = {}
    at = 0
    while member := _MEMBER.match(message, at, _ENDS_BYTES):
        found[member[1]] = member[2]
        at = member.end()
    if b"method" not in found and not _BODY.match(message, at, at + _ENDS_BYTES):
        return None
    if b"id" not in found:
        if last := _ID_LAST.search(message[-_ENDS_BYTES:]):
            found[b"id"] = last[1]
        elif len(message) <= BIG_MESSAGE_BYTES and b'"id"' in message:
            return None  # one of another form may stand behind the body
    return _envelope(found.get(b"method"), found.get(b"id"))


def _anywhere(message: bytes) -> Envelope:
    spans: dict[str, bytes] = {}
    try:
        for key, start, end in members(message, skip_space(message, 0)):
            if key in ("method", "id", "result", "error"):
                spans[key] = message[start:end] if end - start <= _MAX_ID_BYTES else b"null"
    except IndexError:
        raise ValueError("no whole object") from None
    if not spans.keys() & {"method", "result", "error"}:
        raise ValueError("no message")
    return _envelope(spans.get("method"), spans.get("id"))


def _envelope(method: bytes | None, written: bytes | None) -> Envelope:
    """Raises: ValueError."""
    name = None if method is None else json.loads(method)
    given = None if written is None else json.loads(written)
    if method is not None and not isinstance(name, str):
        raise ValueError("its method is no text")
    known = isinstance(given, int | str) and not isinstance(given, bool)
    return Envelope(name, given if known else None)


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


# Repairs answers that break the protocol in what does not matter here.
#
# A `null` too many costs an answer. So what the SDK would refuse is repaired block by block, and
# what it takes passes as it is. Pages of tools are read otherwise.
#
# Shapes: https://modelcontextprotocol.io/specification/2025-11-25/schema

_VERSIONS: Final = ("2026-07-28", "2025-11-25")
"""Between them these allow all that the older versions do; what fits one of them is not touched."""
_NOTHING: Final[Mapping[str, Any]] = {}
MAX_ANSWER_VALUES: Final = 5_000
"""The JSON values in an answer's content, which may be of five kinds; its structured content is not
judged. pydantic takes up to 10 µs for a wrong one, and keeps the interpreter meanwhile; an answer
with more is left to the SDK."""
_BASE64: Final = ("data", "blob")
_TEXT_KEYS: Final = frozenset({"type", "text"})


def needs_no_repair(result: Mapping[str, Any]) -> bool:
    """Tells by a quick look whether a result is texts and an object, as it nearly always is."""
    if not _is_answer(result):
        return True
    content = result.get("content")
    return (
        isinstance(content, list)
        and all(_is_text(block) for block in cast("list[Any]", content))
        and isinstance(result.get("structuredContent", _NOTHING), dict)
        and isinstance(result.get("isError", False), bool)
    )


def repair(result: dict[str, Any]) -> None:
    """Changes a result into what the SDK takes, where that can be done without a guess."""
    if _is_answer(result) and _has_at_most(MAX_ANSWER_VALUES, result.get("content")):
        _repair_answer(result)


def _is_answer(result: Mapping[str, Any]) -> bool:
    return not result.keys().isdisjoint(("content", "structuredContent"))


def _has_at_most(count: int, value: Any) -> bool:
    """Tells whether `value` and all values in it are no more than `count`."""
    waiting: list[Any] = [value]
    while waiting and count >= 0:
        count -= 1
        found = waiting.pop()
        inner = list(cast("dict[str, Any]", found).values()) if isinstance(found, dict) else found
        if isinstance(inner, list):
            waiting += cast("list[Any]", inner)[: count + 1]
    return count >= 0


def _fits(result: Mapping[str, Any]) -> bool:
    for version in _VERSIONS:
        try:
            parse_server_result("tools/call", version, result)
        except (ValueError, RecursionError):  # pydantic's errors are ValueErrors
            continue
        return True
    return False


def _repair_answer(result: dict[str, Any]) -> None:
    content, structured = result.get("content"), result.get("structuredContent")
    if content is None:
        content = []
    elif not isinstance(content, list):
        content = [content]
    blocks = cast("list[Any]", content)
    if not isinstance(failed := result.get("isError", False), bool):
        result["isError"] = bool(failed) and str(failed).lower() != "false"
    bare = structured is not None and not isinstance(structured, dict)
    # Since 2026-07-28 a list or a text may stand there; before, nothing but an object.
    if bare and not _fits({**result, "content": []}):
        del result["structuredContent"]
        blocks = blocks or [_as_text_block(structured)]
    result["content"] = [
        block if _is_text(block) or _fits({"content": [block]}) else _as_text_block(block)
        for block in blocks
    ]


def _is_text(block: Any) -> bool:
    if not isinstance(block, dict):
        return False
    given = cast("dict[str, Any]", block)
    return given.keys() == _TEXT_KEYS and given["type"] == "text" and isinstance(given["text"], str)


def _as_text_block(value: Any) -> dict[str, Any]:
    """Gives the text block for something that is no block."""
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        text = given.get("text")
        # Base64 is nothing to read; a picture without its type has no note of its own.
        value = text if isinstance(text, str) else {k: given[k] for k in given if k not in _BASE64}
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return {"type": "text", "text": written}


class RepairingStream(ObjectReceiveStream[Any]):
    """Gives the messages of a transport, repaired."""

    def __init__(self, inner: Any) -> None:
        self._inner: Final = inner

    @property
    def last_context(self) -> Any:
        """What the SDK's HTTP transport says of the request that a message belongs to."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        return await _repaired(await self._inner.receive())

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _repaired(item: Any) -> Any:
    if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
        result = item.message.result
        if not needs_no_repair(result):
            # An answer of many blocks takes long.
            with suppress(RecursionError):
                await computed(repair, result)
    return item


class _NotingStream(ObjectSendStream[Any]):
    """Tells the filter of what comes in what goes out, as only what is asked for is read."""

    def __init__(self, inner: Any, inbound: InboundFilter) -> None:
        self._inner: Final = inner
        self._inbound: Final = inbound

    async def send(self, item: Any) -> None:
        if isinstance(item, SessionMessage):
            self._inbound.sent(item.message)
        await self._inner.send(item)

    async def send_eof(self) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def repairing_transport(
    transport: AbstractAsyncContextManager[Any], inbound: InboundFilter
) -> AsyncGenerator[Any]:
    """Enters `transport`, repairs what its server sends, and notes what we send."""
    async with transport as (incoming, outgoing):
        yield RepairingStream(incoming), _NotingStream(outgoing, inbound)
