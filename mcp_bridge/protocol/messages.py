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
from collections.abc import AsyncGenerator
from typing import Final

import anyio.to_thread
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, RequestId
from mcp_types.jsonrpc import jsonrpc_message_adapter

from mcp_bridge.protocol.answer_truncation import truncate_answer
from mcp_bridge.protocol.envelope import BIG_MESSAGE_BYTES, find_request_id
from mcp_bridge.protocol.tool_page import may_be_page, unpacked_page

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
        return await anyio.to_thread.run_sync(_parsed, cut, abandon_on_cancel=True)
    except ValueError:
        return error_answer(text, text, "its answer is no JSON that can be read")


async def bounded_message(text: bytes, max_chars: int) -> bytes:
    """Gives one message that can be read; a large one is cut in a worker thread.

    Raises: ValueError, where it can neither be cut nor be read as it is.
    """
    if _is_quick(text):
        return replace_lone_surrogates(text)
    return await anyio.to_thread.run_sync(_bounded, text, max_chars, abandon_on_cancel=True)


def _is_quick(text: bytes) -> bool:
    return len(text) <= BIG_MESSAGE_BYTES and not may_be_page(text)


async def readable_text(text: bytes) -> bytes:
    """Does what `replace_lone_surrogates` does; a large text is gone through in a worker thread."""
    if len(text) <= BIG_MESSAGE_BYTES:
        return replace_lone_surrogates(text)
    return await anyio.to_thread.run_sync(replace_lone_surrogates, text, abandon_on_cancel=True)


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
