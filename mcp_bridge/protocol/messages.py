"""Reads one message as it was sent into the SDK's model of it, as leniently as is safe.

JSON may hold halves of surrogate pairs: Node writes one where a text is cut inside an emoji, Python
one for each byte of a file name that is no UTF-8. Nothing that reads Unicode takes them, and the
answer would be lost; so they are replaced. What still cannot be read becomes an error under the
message's id, as its caller would otherwise wait for its whole time-out.
"""

from __future__ import annotations

import json
import re
from typing import Final

import anyio.to_thread
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter

from mcp_bridge.protocol.answer_truncation import BIG_MESSAGE_BYTES, truncate_answer
from mcp_bridge.protocol.capped_lines import find_request_id

_ESCAPE: Final = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""This matches an escaped backslash, a whole pair or, as the group, half of one."""
_REPLACEMENT: Final = rb"\ufffd"


async def read_message(text: bytes, max_chars: int) -> JSONRPCMessage | None:
    """Reads one message; None where it is none and nobody waits for it.

    Large ones are read, and cut to about `max_chars`, in a worker thread.
    """
    try:
        if len(text) <= BIG_MESSAGE_BYTES:
            return _parsed(replace_lone_surrogates(text))
        cut = await bounded_message(text, max_chars)
        return await anyio.to_thread.run_sync(_parsed, cut, abandon_on_cancel=True)
    except ValueError:
        return error_answer(text, text, "its answer is no JSON that can be read")


async def bounded_message(text: bytes, max_chars: int) -> bytes:
    """Gives one message that can be read; a large one is cut in a worker thread."""
    if len(text) <= BIG_MESSAGE_BYTES:
        return replace_lone_surrogates(text)
    return await anyio.to_thread.run_sync(_bounded, text, max_chars, abandon_on_cancel=True)


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
    return truncate_answer(replace_lone_surrogates(text), max_chars)
