"""Giant pages of tools keep what fits, whole, and say what does not."""

from __future__ import annotations

import json
from typing import Any

from mcp_types import JSONRPCError, JSONRPCResponse

from mcp_bridge.protocol.messages import read_message
from mcp_bridge.protocol.page_truncation import MAX_PAGE_MARKS, MAX_PAGE_TOOLS, marks
from mcp_bridge.protocol.response_repair import left_out_tools, repair


async def page(*tools: Any, **beside: Any) -> dict[str, Any]:
    """What is read of a page of these, as the SDK gets it."""
    sent = {"jsonrpc": "2.0", "id": "a", "result": {**beside, "tools": tools}}
    message = await read_message(json.dumps(sent).encode(), 1000)
    assert isinstance(message, JSONRPCResponse)
    assert message.id == "a"
    repair(message.result)
    return message.result


def tool(name: str, properties: int = 0, words: str = "") -> dict[str, Any]:
    named = {f"p{number}": {"type": "string"} for number in range(properties)}
    schema = {"type": "object", "properties": named}
    return {"name": name, "description": words, "inputSchema": schema}


async def test_an_ordinary_large_page_is_read_whole() -> None:
    tools = [tool(f"t{number}", 8, "x" * 200) for number in range(200)]
    found = await page(*tools, nextCursor="more", _meta={"theirs": 1})
    assert (found["tools"], found["nextCursor"]) == (tools, "more")
    assert left_out_tools(found["_meta"]) == []


async def test_of_too_many_tools_the_first_ones_are_read() -> None:
    found = await page(*(tool(f"t{number}", 1, "x" * 200) for number in range(3_000)))
    assert [one["name"] for one in found["tools"]] == [f"t{n}" for n in range(MAX_PAGE_TOOLS)]
    assert left_out_tools(found["_meta"]) == ["what stands behind 500 tools of one long page"]


async def test_a_tool_that_is_too_large_costs_no_other() -> None:
    found = await page(tool("a"), tool("wide", 20_000), tool("long", 0, "x" * 400_000), tool("b"))
    assert [one["name"] for one in found["tools"]] == ["a", "b"]
    said = left_out_tools(found["_meta"])
    assert [one.partition(" has ")[0] for one in said] == ["wide", "long"]


async def test_what_is_kept_is_read_in_one_short_step() -> None:
    found = await page(*(tool(f"t{number}", 100) for number in range(1_000)))
    assert marks(json.dumps(found).encode()) <= 1.5 * MAX_PAGE_MARKS
    assert found["tools"]


async def test_a_large_result_of_another_kind_is_an_error_for_its_caller() -> None:
    sent = b'{"jsonrpc": "2.0", "id": 5, "result": {"x": [' + b"{}," * 50_000 + b"{}]}}"
    message = await read_message(sent, 1000)
    assert isinstance(message, JSONRPCError)
    assert message.id == 5
