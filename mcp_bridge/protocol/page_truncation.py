"""Cuts a giant page of tools while it is still bytes, at whole tools.

Parsing a page and holding it against the protocol's models takes one step of the event loop, so a
page holds as many tools as that step allows; a server with more of them has pages. `truncate_page`
runs in a worker thread, as `truncate_answer` does, and says in the page's `_meta` what it left out.
"""

from __future__ import annotations

import json
import secrets
from typing import Any, Final

from mcp_bridge.protocol.json_spans import items, members, skip_space

LEFT_OUT_KEY: Final = f"mcp_bridge/left_out/{secrets.token_hex(8)}"
"""Where a page says what was left out of it, as phrases. No server knows the key."""
MAX_PAGE_BYTES: Final = 2 * 1024 * 1024
MAX_PAGE_TOOLS: Final = 500
MAX_PAGE_MARKS: Final = 15_000
"""The commas and opening brackets of a page: 500 tools with eight parameters each. The models take
10 ms for them, and 30 µs for a tool."""
_MARKS: Final = (b",", b"[", b"{")
_MAX_TOOL_BYTES: Final = 256 * 1024
"""A schema of `Limits.max_schema_chars`, in any script and with all that may stand beside it."""
_SMALL_BYTES: Final = 4 * 1024
_SHOWN_NAME_CHARS: Final = 80


def marks(text: bytes) -> int:
    """Counts what stands for the values in JSON text, and for the time that reading it takes."""
    return sum(map(text.count, _MARKS))


def truncate_page(message: bytes) -> bytes:
    """Gives the page in `message` with the tools that fit; anything else stays as it is."""
    try:
        return _truncated(message) or message
    except (ValueError, IndexError, TypeError, KeyError, AttributeError, RecursionError):
        return message  # no JSON-RPC: whoever parses it next says so


def _truncated(message: bytes) -> bytes | None:
    top = {key: span for key, *span in members(message, skip_space(message, 0))}
    parts = {key: span for key, *span in members(message, top["result"][0])}
    if "tools" not in parts:
        return None
    kept, left_out = _fitting(message, parts["tools"][0])
    beside: dict[str, Any] = {
        key: json.loads(message[start:end])
        for key, (start, end) in parts.items()
        if key not in ("tools", "_meta") and end - start <= _SMALL_BYTES
    }
    beside["_meta"] = {LEFT_OUT_KEY: left_out}
    head = json.dumps({"jsonrpc": "2.0", "id": json.loads(message[slice(*top["id"])])})
    result = json.dumps(beside)[:-1].encode() + b', "tools": [' + b",".join(kept) + b"]}"
    return head[:-1].encode() + b', "result": ' + result + b"}"


def _fitting(message: bytes, at: int) -> tuple[list[bytes], list[str]]:
    """Gives the tools that fit, and phrases for those that do not."""
    kept: list[bytes] = []
    left_out: list[str] = []
    size = count = 0
    for start, end in items(message, at):
        if size > MAX_PAGE_BYTES or count > MAX_PAGE_MARKS or len(kept) == MAX_PAGE_TOOLS:
            left_out.append(f"what stands behind {len(kept):,} tools of one long page")
            break
        tool = message[start:end]
        more = marks(tool) if end - start <= _MAX_TOOL_BYTES else MAX_PAGE_MARKS
        if count + more > MAX_PAGE_MARKS and more > MAX_PAGE_MARKS // 2:
            left_out.append(f"{_name(message, start)} has {end - start:,} bytes")
            continue
        kept.append(tool)
        size, count = size + len(tool), count + more
    return kept, left_out


def _name(message: bytes, at: int) -> str:
    if message[at] == ord("{"):
        for key, start, end in members(message, at):
            if key == "name" and end - start <= _SMALL_BYTES:
                return str(json.loads(message[start:end]))[:_SHOWN_NAME_CHARS]
    return "a tool without a name"
