"""Repairs answers that break the protocol in what does not matter here, before the SDK reads them.

The SDK judges a page of tools as a whole: one with `"inputSchema": {}` or an icon of an older form
costs a server all of them, and a `null` too many costs an answer. So what it would refuse is
repaired tool by tool and block by block. What it takes passes as it is.

Shapes: https://modelcontextprotocol.io/specification/2025-11-25/schema
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final, cast

import anyio.to_thread
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse
from mcp_types.methods import parse_server_result

from mcp_bridge.protocol.inbound_filter import InboundFilter
from mcp_bridge.protocol.page_truncation import LEFT_OUT_KEY

_VERSIONS: Final = ("2026-07-28", "2025-11-25")
"""Between them these allow all that the older versions do; what fits one of them is not touched."""
_SHOWN_NAME_CHARS: Final = 200
_ESSENTIAL: Final = ("name", "description", "inputSchema")
_NO_ARGUMENTS: Final[Mapping[str, Any]] = {"type": "object"}
_NOTHING: Final[Mapping[str, Any]] = {}
MAX_PAGE_VALUES: Final = 50_000
"""The JSON values in a page: 1,000 tools with 50 each. A larger page is left to the SDK."""
MAX_ANSWER_VALUES: Final = 5_000
"""The JSON values in an answer's content, which may be of five kinds; its structured content is not
judged."""
_PAGE_KEYS: Final = ("resultType", "ttlMs", "cacheScope")
"""What a page must have beside its tools, by version."""
_BASE64: Final = ("data", "blob")
_TEXT_KEYS: Final = frozenset({"type", "text"})


def needs_no_repair(result: Mapping[str, Any]) -> bool:
    """Tells by a quick look whether a result is texts and an object, as it nearly always is."""
    if "tools" in result:
        return False
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
    if isinstance(result.get("tools"), list):
        if _has_at_most(MAX_PAGE_VALUES, result["tools"]):
            _repair_page(result)
    elif _is_answer(result) and _has_at_most(MAX_ANSWER_VALUES, result.get("content")):
        _repair_answer(result)


def left_out_tools(meta: Mapping[str, Any] | None) -> list[str]:
    """Gives phrases for what was left out of a page, as it was too long or no tool."""
    return list((meta or {}).get(LEFT_OUT_KEY, ()))


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


def _fits(method: str, result: Mapping[str, Any]) -> bool:
    for version in _VERSIONS:
        try:
            parse_server_result(method, version, result)
        except (ValueError, RecursionError):  # pydantic's errors are ValueErrors
            continue
        return True
    return False


def _repair_page(result: dict[str, Any]) -> None:
    """Goes tool by tool: the models keep the interpreter for as long as they look at one value."""
    beside = {key: result[key] for key in _PAGE_KEYS if key in result}
    found: list[Any] = []
    unfit: list[str] = []
    for tool in result["tools"]:
        readings = (r for r in _readings(tool) if _fits("tools/list", {**beside, "tools": [r]}))
        reading = next(readings, None)
        if reading is not None:
            found.append(reading)
        else:
            unfit.append(f"{_name(tool)} is no tool as the protocol has them")
    same = all(one is other for one, other in zip(found, result["tools"], strict=False))
    if same and not unfit and _fits("tools/list", result):
        return
    if not isinstance(cursor := result.get("nextCursor"), str | None):
        result["nextCursor"] = str(cursor) if isinstance(cursor, int) else None
    meta = cast("dict[str, Any]", result["_meta"]) if isinstance(result.get("_meta"), dict) else {}
    told = {**meta, LEFT_OUT_KEY: [*meta.get(LEFT_OUT_KEY, ()), *unfit]}
    if _fits("tools/list", {**result, "tools": found, "_meta": told}):
        result |= {"tools": found, "_meta": told}


def _readings(tool: Any) -> Iterator[Any]:
    """Yields the tool as it is, then with ever less of what can be done without."""
    yield tool
    if not isinstance(tool, dict):
        return
    given = cast("dict[str, Any]", tool)
    bare = {key: given[key] for key in _ESSENTIAL if given.get(key) is not None}
    schema = bare.setdefault("inputSchema", _NO_ARGUMENTS)
    if isinstance(schema, dict):
        bare["inputSchema"] = {**_NO_ARGUMENTS, **cast("dict[str, Any]", schema)}
    # Whether it only reads decides what may run beside it, so the annotations go last.
    yield {**bare, "annotations": given.get("annotations")}
    yield bare


def _name(tool: Any) -> str:
    name = cast("dict[str, Any]", tool).get("name") if isinstance(tool, dict) else None
    return name[:_SHOWN_NAME_CHARS] if isinstance(name, str) else "a tool without a name"


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
    if bare and not _fits("tools/call", {**result, "content": []}):
        del result["structuredContent"]
        blocks = blocks or [_as_text_block(structured)]
    result["content"] = [
        block
        if _is_text(block) or _fits("tools/call", {"content": [block]})
        else _as_text_block(block)
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
            # A page of many tools takes long.
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
