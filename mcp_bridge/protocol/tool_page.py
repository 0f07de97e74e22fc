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

from mcp_bridge.protocol.json_spans import end_of_string, end_of_value, items, skip_space

MAX_TOOL_BYTES: Final = 256 * 1024
"""A tool with more text is left out, and so is what is longer than `MAX_PAGE_BYTES` together."""
MAX_PAGE_BYTES: Final = 2 * 1024 * 1024
"""1,000 tools of 2 kB. Larger servers send more pages."""
MAX_TOOL_PARTS: Final = 4_000
"""Objects and lists of one tool; Python's own housekeeping goes over each, with the loop held."""
MAX_PAGE_PARTS: Final = 50_000
"""1,000 tools with 50 each."""
TOO_LONG_KEY: Final = "mcp_bridge/too_long"
"""It marks what is left of a tool that is too long: its name."""
_TEXTS_KEY: Final = "mcp_bridge/tools"
_HEADER_WORD: Final = "x-mcp-header"
"""Tools with it are the SDK's to look at: it repeats some of their arguments in HTTP headers."""
_MAX_HEADER_BYTES: Final = 16 * 1024
_MAX_HEADER_TOOLS: Final = 64
_SMALL_BYTES: Final = 4 * 1024
_LOOKED_AT_BYTES: Final = 64 * 1024
"""A cursor may be as long, and the name of a tool that is too long is looked for so far."""
_VERSIONS: Final = ("2026-07-28", "2025-11-25")


def may_be_page(message: bytes) -> bool:
    """Tells by a quick look whether a message may hold a list of tools."""
    return b'"tools"' in message


def unpacked_page(message: bytes) -> bytes | None:
    """Gives a page of tools with each tool as a text; None for any other message."""
    try:
        return _unpacked(message)
    except (ValueError, IndexError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # no JSON-RPC: whoever parses it next says so


def texts_of(page: ListToolsResult) -> list[str]:
    """Gives the JSON of each tool of a page."""
    texts = (page.meta or {}).get(_TEXTS_KEY)
    if isinstance(texts, list):
        return [text for text in cast("list[object]", texts) if isinstance(text, str)]
    return [tool.model_dump_json(by_alias=True, exclude_none=True) for tool in page.tools]


def _unpacked(message: bytes) -> bytes | None:
    page = _Page(message)
    identity: bytes | None = None
    top = _Walk(message, skip_space(message, 0))
    for key in top:
        start = top.at
        top.at = page.read(start) if key == "result" else end_of_value(message, start)
        if key == "id":
            identity = message[start : top.at]
    return None if identity is None else page.written(identity)


class _Walk:
    """Goes over the keys of the object that begins at `at`, once and as far as it is asked to.

    `at` is then where the key's value begins; whoever goes on has to move it to that value's end.
    """

    def __init__(self, text: bytes, at: int) -> None:
        if text[at : at + 1] != b"{":
            raise ValueError("no object")
        self.at = skip_space(text, at + 1)
        self._text: Final = text

    def __iter__(self) -> Iterator[str]:
        text = self._text
        while text[self.at] != ord("}"):
            key_end = end_of_string(text, self.at)
            key: str = json.loads(text[self.at : key_end])
            colon = skip_space(text, key_end)
            if text[colon] != ord(":"):
                raise ValueError("no colon")
            self.at = skip_space(text, colon + 1)
            yield key
            self.at = skip_space(text, self.at)
            if text[self.at] == ord(","):
                self.at = skip_space(text, self.at + 1)


class _Page:
    """The result of a request for tools, read in one pass."""

    def __init__(self, message: bytes) -> None:
        self._message: Final = message
        self._texts: list[bytes] | None = None
        self._beside: Final[dict[str, Any]] = {}
        self._for_headers: Final[list[str]] = []

    def read(self, at: int) -> int:
        """Reads the result that begins at `at`, and gives the place just past it."""
        message = self._message
        walk = _Walk(message, at)
        for key in walk:
            start = walk.at
            if key == "content":
                raise ValueError("an answer")
            if key == "tools" and message[start] == ord("["):
                walk.at = self._read_tools(start)
            else:
                walk.at = end_of_value(message, start)
                self._note(key, message[start : walk.at])
        return walk.at + 1

    def _read_tools(self, at: int) -> int:
        message = self._message
        self._texts = []
        left, parts_left = MAX_PAGE_BYTES, MAX_PAGE_PARTS
        past = at + 1
        for start, past in items(message, at):
            size = past - start
            parts = message.count(b"{", start, past) + message.count(b"[", start, past)
            fits = size <= min(left, MAX_TOOL_BYTES) and parts <= min(parts_left, MAX_TOOL_PARTS)
            text = message[start:past].decode() if fits else _name_alone(message, start)
            left, parts_left = left - len(text), parts_left - (parts if fits else 1)
            self._texts.append(json.dumps(text).encode())
            if size <= _MAX_HEADER_BYTES and needs_headers(text):
                self._for_headers.append(text)
            time.sleep(0)  # lets go of the interpreter: the loop need not wait its 5 ms for a turn
        return skip_space(message, past) + 1

    def _note(self, key: str, value: bytes) -> None:
        """Keeps what the result holds beside its tools, where it is of an ordinary size."""
        if key == "nextCursor" and len(value) <= _LOOKED_AT_BYTES:
            cursor = json.loads(value)
            # A number will do; whatever else is no cursor ends the list.
            if isinstance(cursor, str | int) and not isinstance(cursor, bool):
                self._beside[key] = str(cursor)
        elif key not in ("_meta", "nextCursor") and len(value) <= _SMALL_BYTES:
            self._beside[key] = json.loads(value)

    def written(self, identity: bytes) -> bytes | None:
        """Gives the message with each tool as a text; None where there are no tools."""
        if self._texts is None:
            return None
        taken = [tool for text in self._for_headers for tool in self._judged(text)]
        result = json.dumps({**self._beside, "tools": taken[:_MAX_HEADER_TOOLS]})[:-1].encode()
        meta = b'{"%b": [%b]}' % (_TEXTS_KEY.encode(), b",".join(self._texts))
        written = b'{"jsonrpc": "2.0", "id": %b, "result": %b, "_meta": %b}}'
        return written % (identity, result, meta)

    def _judged(self, text: str) -> Iterator[Any]:
        """Yields the tool as the SDK takes it, if it does."""
        given: Any = json.loads(text)
        tool = {"name": given["name"], "inputSchema": {"type": "object", **given["inputSchema"]}}
        if any(_fits(version, {**self._beside, "tools": [tool]}) for version in _VERSIONS):
            yield tool


def _name_alone(message: bytes, at: int) -> str:
    """Gives what `tool_listing.py` takes for a tool that is too long."""
    name: object = None
    walk = _Walk(message, at)
    for key in walk:
        start = walk.at
        if start > at + _LOOKED_AT_BYTES:
            break  # it is somewhere behind what makes the tool long
        walk.at = end_of_value(message, start)
        if key == "name" and walk.at - start <= _SMALL_BYTES:
            name = json.loads(message[start : walk.at])
            break
    return json.dumps({"name": name, TOO_LONG_KEY: True})


def _fits(version: str, result: Mapping[str, Any]) -> bool:
    try:
        parse_server_result("tools/list", version, result)
    except (ValueError, RecursionError):  # pydantic's errors are ValueErrors
        return False
    return True


def needs_headers(text: str) -> bool:
    """Tells whether a tool's text asks for headers, so that the SDK has judged it."""
    return _HEADER_WORD in text
