"""Reads a stream of bytes as capped lines: what is longer is thrown away while it arrives."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Final

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

    def id(self) -> bytes | None:
        """Gives the JSON-RPC id of an answer that is too long, as written; None if not found."""
        return find_request_id(self._head, self.content())

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
