"""Repairs answers that break the protocol in what does not matter here, before the SDK reads them.

A `null` too many costs an answer. So what the SDK would refuse is repaired block by block, and what
it takes passes as it is. Pages of tools are read otherwise.

Shapes: https://modelcontextprotocol.io/specification/2025-11-25/schema
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final, cast

import anyio.to_thread
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse
from mcp_types.methods import parse_server_result

from mcp_bridge.protocol.inbound_filter import InboundFilter

_VERSIONS: Final = ("2026-07-28", "2025-11-25")
"""Between them these allow all that the older versions do; what fits one of them is not touched."""
_NOTHING: Final[Mapping[str, Any]] = {}
MAX_ANSWER_VALUES: Final = 5_000
"""The JSON values in an answer's content, which may be of five kinds; its structured content is not
judged. pydantic takes up to 10 µs for a wrong one, and keeps the interpreter meanwhile; an answer
with more is left to the SDK."""
_BASE64: Final = ("data", "blob")
_TEXT_KEYS: Final = frozenset({"type", "text"})


def needs_no_repair(result: Mapping[str, Any]) -> bool:
    """Tells by a quick look whether a result is texts and an object, as it nearly always is."""
    if not _is_answer(result):
        return True
    content = result.get("content")
    return (
        isinstance(content, list)
        and all(_is_text(block) for block in cast("list[Any]", content))
        and isinstance(result.get("structuredContent", _NOTHING), dict)
        and isinstance(result.get("isError", False), bool)
    )


def repair(result: dict[str, Any]) -> None:
    """Changes a result into what the SDK takes, where that can be done without a guess."""
    if _is_answer(result) and _has_at_most(MAX_ANSWER_VALUES, result.get("content")):
        _repair_answer(result)


def _is_answer(result: Mapping[str, Any]) -> bool:
    return not result.keys().isdisjoint(("content", "structuredContent"))


def _has_at_most(count: int, value: Any) -> bool:
    """Tells whether `value` and all values in it are no more than `count`."""
    waiting: list[Any] = [value]
    while waiting and count >= 0:
        count -= 1
        found = waiting.pop()
        inner = list(cast("dict[str, Any]", found).values()) if isinstance(found, dict) else found
        if isinstance(inner, list):
            waiting += cast("list[Any]", inner)[: count + 1]
    return count >= 0


def _fits(result: Mapping[str, Any]) -> bool:
    for version in _VERSIONS:
        try:
            parse_server_result("tools/call", version, result)
        except (ValueError, RecursionError):  # pydantic's errors are ValueErrors
            continue
        return True
    return False


def _repair_answer(result: dict[str, Any]) -> None:
    content, structured = result.get("content"), result.get("structuredContent")
    if content is None:
        content = []
    elif not isinstance(content, list):
        content = [content]
    blocks = cast("list[Any]", content)
    if not isinstance(failed := result.get("isError", False), bool):
        result["isError"] = bool(failed) and str(failed).lower() != "false"
    bare = structured is not None and not isinstance(structured, dict)
    # Since 2026-07-28 a list or a text may stand there; before, nothing but an object.
    if bare and not _fits({**result, "content": []}):
        del result["structuredContent"]
        blocks = blocks or [_as_text_block(structured)]
    result["content"] = [
        block if _is_text(block) or _fits({"content": [block]}) else _as_text_block(block)
        for block in blocks
    ]


def _is_text(block: Any) -> bool:
    if not isinstance(block, dict):
        return False
    given = cast("dict[str, Any]", block)
    return given.keys() == _TEXT_KEYS and given["type"] == "text" and isinstance(given["text"], str)


def _as_text_block(value: Any) -> dict[str, Any]:
    """Gives the text block for something that is no block."""
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        text = given.get("text")
        # Base64 is nothing to read; a picture without its type has no note of its own.
        value = text if isinstance(text, str) else {k: given[k] for k in given if k not in _BASE64}
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return {"type": "text", "text": written}


class RepairingStream(ObjectReceiveStream[Any]):
    """Gives the messages of a transport, repaired."""

    def __init__(self, inner: Any) -> None:
        self._inner: Final = inner

    @property
    def last_context(self) -> Any:
        """What the SDK's HTTP transport says of the request that a message belongs to."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        return await _repaired(await self._inner.receive())

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _repaired(item: Any) -> Any:
    if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
        result = item.message.result
        if not needs_no_repair(result):
            # An answer of many blocks takes long.
            with suppress(RecursionError):
                await anyio.to_thread.run_sync(repair, result, abandon_on_cancel=True)
    return item


class _NotingStream(ObjectSendStream[Any]):
    """Tells the filter of what comes in what goes out, as only what is asked for is read."""

    def __init__(self, inner: Any, inbound: InboundFilter) -> None:
        self._inner: Final = inner
        self._inbound: Final = inbound

    async def send(self, item: Any) -> None:
        if isinstance(item, SessionMessage):
            self._inbound.sent(item.message)
        await self._inner.send(item)

    async def send_eof(self) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def repairing_transport(
    transport: AbstractAsyncContextManager[Any], inbound: InboundFilter
) -> AsyncGenerator[Any]:
    """Enters `transport`, repairs what its server sends, and notes what we send."""
    async with transport as (incoming, outgoing):
        yield RepairingStream(incoming), _NotingStream(outgoing, inbound)
