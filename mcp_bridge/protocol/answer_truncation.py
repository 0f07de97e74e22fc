"""Cuts a giant tool answer while it is still bytes.

Whatever is over the result's cap is cut away in the end; cutting before anything parses it keeps
the event loop free (a 4 MiB answer of small objects takes a JSON parser 266 ms and the protocol's
models 887 ms more). `truncate_answer` runs in a worker thread and gives one JSON-RPC message for
another.

What fits is decided by decoded characters (`json_prefixes.py`), and a margin past the cap stays: a
secret that lies across the cut must be there whole, or nobody finds it. `tool_results.py` takes
secrets out, and then the margin off.

A cut answer is marked in `_meta`, and says `isError` so that nobody holds the stump against the
tool's output schema; `TruncationMark` holds what it said before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from mcp_bridge.protocol.json_prefixes import string_prefix, value_prefix, without_surrogates
from mcp_bridge.protocol.json_spans import items, members
from mcp_bridge.protocol.tool_results import TruncationMark, block_text, text_holder

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
