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
from collections.abc import AsyncGenerator
from typing import Final

import anyio.to_thread
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter

from mcp_bridge.protocol.answer_truncation import BIG_MESSAGE_BYTES, truncate_answer
from mcp_bridge.protocol.tool_page import may_be_page, unpacked_page

_CHUNK_BYTES: Final = 64 * 1024
"""As much as a pipe holds on Linux."""
_ENDS_BYTES: Final = 2048
"""So much is kept of either end of a line that is too long: enough to hold the id."""
_ID: Final = rb'"id"\s*:\s*(0|[1-9]\d{0,14}|"[ !#-\[\]-~]{1,100}")\s*'
_VERSION: Final = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
_ID_FIRST: Final = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb",\s*)?" + _ID + rb",")
_ID_LAST: Final = re.compile(
    rb"\}\s*,(?:\s*" + _VERSION + rb",)?\s*" + _ID + rb"(?:,\s*" + _VERSION + rb")?\}\s*$"
)
"""The places where servers put a request's id: before the result, or at the very end."""
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


def find_request_id(head: bytes, tail: bytes) -> bytes | None:
    """Gives the JSON-RPC id of the answer with these ends, as written; None if not found."""
    found = _ID_FIRST.match(head[:_ENDS_BYTES]) or _ID_LAST.search(tail[-_ENDS_BYTES:])
    return found[1] if found else None


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
    """Gives one message that can be read; a large one is cut in a worker thread."""
    if _is_quick(text):
        return replace_lone_surrogates(text)
    return await anyio.to_thread.run_sync(_bounded, text, max_chars, abandon_on_cancel=True)


def _is_quick(text: bytes) -> bool:
    return len(text) <= BIG_MESSAGE_BYTES and not may_be_page(text)


def error_answer(head: bytes, tail: bytes, said: str) -> JSONRPCError | None:
    """Gives an error in the place of an answer with these two ends, so that nobody waits."""
    if (written := find_request_id(head, tail)) is None:
        return None
    error = ErrorData(code=INTERNAL_ERROR, message=said)
    return JSONRPCError(jsonrpc="2.0", id=json.loads(written), error=error)


def replace_lone_surrogates(text: bytes) -> bytes:
    """Replaces halves of surrogate pairs, and whatever is no UTF-8, in JSON text."""
    if b"\\ud" in text or b"\\uD" in text:
        text = _ESCAPE.sub(lambda found: _REPLACEMENT if found[1] else found[0], text)
    if text.isascii():
        return text
    return text.decode("utf-8", "replace").encode()


def _parsed(text: bytes) -> JSONRPCMessage:
    return jsonrpc_message_adapter.validate_json(text, by_name=False)


def _bounded(text: bytes, max_chars: int) -> bytes:
    text = replace_lone_surrogates(text)
    if may_be_page(text) and (page := unpacked_page(text)) is not None:
        return page
    return truncate_answer(text, max_chars)
