"""Tells what a message is by its `method` and `id`, without parsing what it says.

Nearly all messages have both in front. Where one has its params first, the members at the top are
gone through without building them (`json_spans.py`), a large message's in a worker thread.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final, Literal

import anyio.to_thread

from mcp_bridge.protocol.json_spans import members, skip_space

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
    return await anyio.to_thread.run_sync(_anywhere, message, abandon_on_cancel=True)


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
