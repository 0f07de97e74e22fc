"""Takes a page of tools apart while it is still bytes, so that no tool costs a server the others.

Parsers judge a page as a whole: one schema that is nested too deep, or a list of several megabytes,
takes away every tool, or the event loop's time. So each tool becomes a text in the result's `_meta`
before anything parses the page, and `tool_listing.py` reads them one by one in a thread. The SDK is
left with the tools whose arguments it has to repeat in headers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from mcp_types import ListToolsResult
from mcp_types.methods import parse_server_result

from mcp_bridge.protocol.json_spans import items, members, skip_space

MAX_TOOL_BYTES: Final = 256 * 1024
"""A tool with more text is left out, and so is what is longer than `MAX_PAGE_BYTES` together."""
MAX_PAGE_BYTES: Final = 4 * 1024 * 1024
"""2,000 tools of 2 kB."""
TOO_LONG_KEY: Final = "mcp_bridge/too_long"
"""It marks what is left of a tool that is too long: its name."""
_TEXTS_KEY: Final = "mcp_bridge/tools"
_HEADER_WORD: Final = b"x-mcp-header"
"""Tools with it are the SDK's to look at: it repeats some of their arguments in HTTP headers."""
_MAX_HEADER_BYTES: Final = 16 * 1024
_MAX_HEADER_TOOLS: Final = 32
_SMALL_BYTES: Final = 4 * 1024
_MAX_CURSOR_BYTES: Final = 64 * 1024
_VERSIONS: Final = ("2026-07-28", "2025-11-25")


def may_be_page(message: bytes) -> bool:
    """Tells by a quick look whether a message may hold a list of tools."""
    return b'"tools"' in message


def unpacked_page(message: bytes) -> bytes:
    """Gives a page of tools with each tool as a text; any other message stays as it is."""
    try:
        return _unpacked(message) or message
    except (ValueError, IndexError, TypeError, KeyError, AttributeError, RecursionError):
        return message  # no JSON-RPC: whoever parses it next says so


def texts_of(page: ListToolsResult) -> list[str]:
    """Gives the JSON of each tool of a page."""
    texts = (page.meta or {}).get(_TEXTS_KEY)
    if isinstance(texts, list):
        return [text for text in cast("list[object]", texts) if isinstance(text, str)]
    return [tool.model_dump_json(by_alias=True, exclude_none=True) for tool in page.tools]


def _unpacked(message: bytes) -> bytes | None:
    top = dict(_spans(message, skip_space(message, 0)))
    if "result" not in top or "id" not in top:
        return None
    parts = dict(_spans(message, top["result"][0]))
    if "tools" not in parts or "content" in parts or message[parts["tools"][0]] != ord("["):
        return None
    texts: list[bytes] = []
    for_headers: list[Any] = []
    left = MAX_PAGE_BYTES
    beside = dict(_beside(message, parts))
    for start, end in items(message, parts["tools"][0]):
        size = end - start
        whole = size <= min(left, MAX_TOOL_BYTES)
        text = message[start:end].decode() if whole else _name_alone(message, start)
        left -= len(text)
        texts.append(json.dumps(text).encode())
        if whole and size <= _MAX_HEADER_BYTES and _HEADER_WORD in message[start:end]:
            for_headers += _for_headers(text, beside, len(for_headers))
        time.sleep(0)  # lets go of the interpreter: the loop need not wait its 5 ms for a turn
    rest = json.dumps({"jsonrpc": "2.0", "id": json.loads(message[slice(*top["id"])])})[:-1]
    result = json.dumps({**beside, "tools": for_headers})[:-1]
    return b'%b, "result": %b, "_meta": {"%b": [%b]}}}' % (
        rest.encode(),
        result.encode(),
        _TEXTS_KEY.encode(),
        b",".join(texts),
    )


def _spans(message: bytes, at: int) -> Iterator[tuple[str, tuple[int, int]]]:
    return ((key, (start, end)) for key, start, end in members(message, at))


def _beside(message: bytes, parts: Mapping[str, tuple[int, int]]) -> Iterator[tuple[str, Any]]:
    """Yields what the result holds beside its tools, where it is of an ordinary size."""
    for key, (start, end) in parts.items():
        if key == "nextCursor" and end - start <= _MAX_CURSOR_BYTES:
            cursor = json.loads(message[start:end])
            # A number will do; whatever else is no cursor ends the list.
            if isinstance(cursor, str | int) and not isinstance(cursor, bool):
                yield key, str(cursor)
        elif key not in ("tools", "_meta", "nextCursor") and end - start <= _SMALL_BYTES:
            yield key, json.loads(message[start:end])


def _for_headers(text: str, beside: Mapping[str, Any], count: int) -> list[Any]:
    """Gives the tool for the SDK, where the SDK takes it."""
    if count >= _MAX_HEADER_TOOLS:
        return []
    given: Any = json.loads(text)
    tool = {"name": given["name"], "inputSchema": {"type": "object", **given["inputSchema"]}}
    fits = any(_fits(version, {**beside, "tools": [tool]}) for version in _VERSIONS)
    return [tool] if fits else []


def _fits(version: str, result: Mapping[str, Any]) -> bool:
    try:
        parse_server_result("tools/list", version, result)
    except (ValueError, RecursionError):  # pydantic's errors are ValueErrors
        return False
    return True


def _name_alone(message: bytes, at: int) -> str:
    """Gives what `tool_listing.py` takes for a tool that is too long."""
    span = dict(_spans(message, at)).get("name", (0, 0)) if message[at] == ord("{") else (0, 0)
    name = json.loads(message[slice(*span)]) if 0 < span[1] - span[0] <= _SMALL_BYTES else None
    return json.dumps({"name": name, TOO_LONG_KEY: True})


def needs_headers(text: str) -> bool:
    """Tells whether a tool's text asks for headers, so that the SDK has judged it."""
    return _HEADER_WORD.decode() in text
