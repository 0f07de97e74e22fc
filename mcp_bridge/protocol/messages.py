"""Reads the messages that a server sends: capped while they arrive, and parsed leniently.

A line that is too long is thrown away while it arrives. JSON may hold halves of surrogate pairs:
Node writes one where a text is cut inside an emoji, Python one for each byte of a file name that is
no UTF-8. Nothing that reads Unicode takes them, and the answer would be lost; so they are replaced.
What still cannot be read becomes an error under the message's id, as its caller would otherwise
wait for its whole time-out.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, RequestId
from mcp_types.jsonrpc import jsonrpc_message_adapter

from mcp_bridge.core.computing import computed
from mcp_bridge.protocol.inbound_filter import (
    BIG_MESSAGE_BYTES,
    Flooded,
    InboundFilter,
    find_request_id,
)
from mcp_bridge.protocol.json_spans import (
    items,
    members,
    string_prefix,
    value_prefix,
    without_surrogates,
)
from mcp_bridge.protocol.tool_listing import may_be_page, unpacked_page
from mcp_bridge.protocol.tool_results import TruncationMark, block_text, text_holder

# Cuts a giant tool answer while it is still bytes.
#
# Whatever is over the result's cap is cut away in the end; cutting before anything parses it keeps
# the event loop free (a 4 MiB answer of small objects takes a JSON parser 266 ms and the protocol's
# models 887 ms more). `truncate_answer` runs in a worker thread and gives one JSON-RPC message for
# another.
#
# What fits is decided by decoded characters (`json_spans.py`), and a margin past the cap stays:
# a secret that lies across the cut must be there whole, or nobody finds it. `tool_results.py` takes
# secrets out, and then the margin off.
#
# A cut answer is marked in `_meta`, and says `isError` so that nobody holds the stump against the
# tool's output schema; `TruncationMark` holds what it said before.

MAX_BLOCKS: Final = 256
"""So many content blocks stay apart; with more, all are joined (the models take 9 µs a block)."""
_SMALL_BYTES: Final = 4 * 1024
_BLOCK_BYTES: Final = 256 * 1024
"""A block of up to so many bytes is simply parsed."""
SECRET_MARGIN: Final = 4 * 1024
"""Characters kept past the cap. A key of 3,000 is found across the cut in every form but hex."""


def truncate_answer(message: bytes, max_chars: int, margin: int = SECRET_MARGIN) -> bytes:
    """Cuts the answer in `message` to `max_chars` and the margin; anything else stays as it is."""
    try:
        return _truncated(message, max_chars + margin, margin) or message
    except (ValueError, IndexError, TypeError, KeyError, AttributeError, RecursionError):
        return message  # no JSON-RPC: whoever parses it next says so


def _truncated(message: bytes, room: int, margin: int) -> bytes | None:
    top = {key: (start, end) for key, start, end in members(message, _start(message))}
    if "result" not in top or "id" not in top:
        return None
    parts = {key: (start, end) for key, start, end in members(message, top["result"][0])}
    if not parts.keys() & {"content", "structuredContent"}:
        return None

    def parsed(span: tuple[int, int]) -> Any:
        return _loads(message[span[0] : span[1]])

    result: dict[str, Any] = {
        key: parsed(span)
        for key, span in parts.items()
        if key not in ("content", "structuredContent") and span[1] - span[0] <= _SMALL_BYTES
    }
    is_error = result.get("isError") is True
    structured = parts.get("structuredContent")
    if structured and (is_error or message[slice(*structured)] == b"null"):
        structured = None
    if structured:
        head, cut_size = value_prefix(message, *structured, room)
        if cut_size <= room:
            result |= {"content": [], "structuredContent": json.loads(head)}
            cut_size = 0
        else:
            result["content"] = [{"type": "text", "text": without_surrogates(head)}]
    else:
        result["content"], cut_size = _content(message, *parts["content"], room)
    if cut_size:
        mark = TruncationMark(is_error, cut_size, margin, written=structured is not None)
        result |= {"isError": True, "_meta": mark.meta()}
    return _written({"jsonrpc": "2.0", "id": parsed(top["id"]), "result": result})


def _written(message: Mapping[str, Any]) -> bytes:
    try:
        # Without escapes: other scripts would take twice to six times what they need.
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # lone surrogates, in a structure
        return json.dumps(message, separators=(",", ":")).encode()


def _start(message: bytes) -> int:
    return len(message) - len(message.lstrip(b" \t\r\n"))


def _content(message: bytes, at: int, to: int, room: int) -> tuple[list[dict[str, Any]], int]:
    """Gives the blocks that fit, as text, and the size of everything if something did not fit."""
    texts: list[str] = []
    size, cut = 0, False
    for start, end in items(message, at):
        if room < 0:
            size, cut = size + to - start, True
            break
        text, length = _block_text(message, start, end, room)
        size, cut = size + length, cut or length > len(text)
        texts.append(text)
        room -= len(text) + 1
    if len(texts) > MAX_BLOCKS:
        texts = ["\n".join(texts)]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
    return blocks, size if cut else 0


def _block_text(message: bytes, start: int, end: int, room: int) -> tuple[str, int]:
    """Gives the text of one content block, cut to `room`, and how long it was."""
    if end - start <= _BLOCK_BYTES:
        given: Any = _loads(message[start:end])
        if not isinstance(given, dict):  # a bare text, or what else is no block
            text = without_surrogates(given if isinstance(given, str) else json.dumps(given))
            return text[:room], len(text)
        block = cast("dict[str, Any]", given)
    else:
        block = dict(_large_block(message, start, room))
    holder = text_holder(block)
    size = int(holder.get("_size", 0))
    text = without_surrogates(block_text(block, size))
    if isinstance(holder.get("text"), str):
        return text[:room], max(len(text), size)
    return text, len(text)


def _large_block(message: bytes, at: int, room: int) -> Iterator[tuple[str, Any]]:
    """Yields the members of a large block: text cut to `room`, data left out, `_size` added."""
    for key, start, end in members(message, at):
        size = end - start
        if key == "resource":
            yield key, dict(_large_block(message, start, room))
        elif key == "text" and size > _SMALL_BYTES:
            text, length = string_prefix(message, start + 1, end - 1, room)
            yield key, text
            yield "_size", length
        elif key in ("data", "blob"):
            yield "data", ""
            yield "_size", size - 2
        elif size <= _SMALL_BYTES:
            yield key, _loads(message[start:end])


def _loads(text: bytes) -> Any:
    return json.loads(text.decode("utf-8", "replace"))


Incoming: TypeAlias = SessionMessage | Exception
Streams: TypeAlias = tuple[
    MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]
]
"""What the SDK reads a server's messages from, and what it writes its own to."""
MAX_WHOLE_BYTES: Final = 2 * 1024 * 1024
"""A message that is neither an answer nor a page of tools, and is parsed in one step."""
MAX_WHOLE_VALUES: Final = 30_000
"""The commas and opening brackets in it. The SDK's models take some 10 ms for them."""
_CHUNK_BYTES: Final = 64 * 1024
"""As much as a pipe holds on Linux."""
_ENDS_BYTES: Final = 2048
"""So much is kept of either end of a line that is too long: enough to hold the id."""
_WINDOW: Final = 256 * 1024
"""The bytes of one step through a large message, which takes a millisecond."""
_WHOLE: Final = re.compile(rb"(?:[^\\]++|\\u[0-9a-fA-F]{4}|\\[^u])++", re.DOTALL)
_HIGH_LAST: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_ESCAPE: Final = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""This matches an escaped backslash, a whole pair or, as the group, half of one."""
_REPLACEMENT: Final = rb"\ufffd"


class CappedLine:
    """One line while it grows. Past the cap only its two ends are kept."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes: Final = max_bytes
        self._parts: list[bytes] = []
        self._head = b""
        self.size = 0
        """The bytes that arrived, the thrown away ones included."""

    @property
    def too_long(self) -> bool:
        return self.size > self._max_bytes

    def add(self, piece: bytes) -> None:
        self._parts.append(piece)
        self.size += len(piece)
        if self.too_long:
            kept = b"".join(self._parts)
            self._head = self._head or kept[:_ENDS_BYTES]
            self._parts = [kept[-_ENDS_BYTES:]]

    def content(self) -> bytes:
        """Gives the line, or the end of one that is too long."""
        return b"".join(self._parts)

    def ends(self) -> tuple[bytes, bytes]:
        """Gives the beginning and the end of a line that is too long."""
        return self._head, self.content()


async def read_lines(stream: asyncio.StreamReader, max_bytes: int) -> AsyncGenerator[CappedLine]:
    """Yields lines until the stream ends. What follows the last line break is not yielded."""
    line = CappedLine(max_bytes)
    while chunk := await stream.read(_CHUNK_BYTES):
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            line.add(piece)
            yield line
            line = CappedLine(max_bytes)
        line.add(rest)


async def read_message(text: bytes, max_chars: int) -> JSONRPCMessage | None:
    """Reads one message; None where it is none and nobody waits for it.

    Large ones are read, and cut to about `max_chars`, in a worker thread.
    """
    try:
        if _is_quick(text):
            return _parsed(replace_lone_surrogates(text))
        cut = await bounded_message(text, max_chars)
        return await computed(_parsed, cut)
    except ValueError:
        return error_answer(text, text, "its answer is not JSON that can be read")


async def bounded_message(text: bytes, max_chars: int) -> bytes:
    """Gives one message that can be read; a large one is cut in a worker thread.

    Raises: ValueError, where it can neither be cut nor be read as it is.
    """
    if _is_quick(text):
        return replace_lone_surrogates(text)
    return await computed(_bounded, text, max_chars)


def _is_quick(text: bytes) -> bool:
    return len(text) <= BIG_MESSAGE_BYTES and not may_be_page(text)


async def readable_text(text: bytes) -> bytes:
    """Does what `replace_lone_surrogates` does; a large text is gone through in a worker thread."""
    if len(text) <= BIG_MESSAGE_BYTES:
        return replace_lone_surrogates(text)
    return await computed(replace_lone_surrogates, text)


def error_answer(head: bytes, tail: bytes, said: str) -> JSONRPCError | None:
    """Gives an error in the place of an answer with these two ends, so that nobody waits."""
    if (written := find_request_id(head, tail)) is None:
        return None
    error = ErrorData(code=INTERNAL_ERROR, message=said)
    return JSONRPCError(jsonrpc="2.0", id=json.loads(written), error=error)


def refusal(request: RequestId) -> JSONRPCError:
    """Gives the answer to a server's request that is not looked at."""
    error = ErrorData(code=INTERNAL_ERROR, message="too large, or too many at once")
    return JSONRPCError(jsonrpc="2.0", id=request, error=error)


def replace_lone_surrogates(text: bytes) -> bytes:
    """Replaces halves of surrogate pairs, and whatever is no UTF-8, in JSON text.

    A large text is gone through in steps: call it in a worker thread.
    """
    if len(text) <= _WINDOW:
        return _without_halves(text)
    pieces: list[bytes] = []
    at = 0
    while at < len(text):
        end = _end_of_window(text, at)
        pieces.append(_without_halves(text[at:end]))
        at = end
        time.sleep(0)  # lets go of the interpreter
    return b"".join(pieces)


def _end_of_window(text: bytes, at: int) -> int:
    """Gives a place near `at + _WINDOW` where no character, escape or pair is cut apart."""
    end = min(at + _WINDOW, len(text))
    if end == len(text):
        return end
    whole = _WHOLE.match(text, at, end)
    end = whole.end() if whole else end
    if high := _HIGH_LAST.search(text, max(at, end - 6), end):
        end = high.start() if high.start() > at else end
    starts = (end - less for less in range(4) if text[end - less] & 0xC0 != 0x80)
    return max(next(starts, end), at + 1)  # a character in UTF-8 has four bytes at most


def _without_halves(text: bytes) -> bytes:
    if b"\\ud" in text or b"\\uD" in text:
        text = _ESCAPE.sub(lambda found: _REPLACEMENT if found[1] else found[0], text)
    if text.isascii():
        return text
    return text.decode("utf-8", "replace").encode()


def _parsed(text: bytes) -> JSONRPCMessage:
    return jsonrpc_message_adapter.validate_json(text, by_name=False)


def _bounded(text: bytes, max_chars: int) -> bytes:
    cut = truncate_answer(text, max_chars)
    if cut is not text:
        return replace_lone_surrogates(cut)
    text = replace_lone_surrogates(text)
    if may_be_page(text) and (page := unpacked_page(text)) is not None:
        return page
    if len(text) > MAX_WHOLE_BYTES or _values(text) > MAX_WHOLE_VALUES:
        raise ValueError("neither an answer nor a page, and too large to be read at once")
    return text


def _values(text: bytes) -> int:
    """Counts what stands for the values in JSON text, and for the time that reading it takes."""
    return sum(map(text.count, (b",", b"[", b"{")))


# Reads a stream of server-sent events before the SDK does, and passes on what is to be read.
#
# Each event that passes has its data on one line. Lines end with CR, LF or both, as in
# https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream

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
