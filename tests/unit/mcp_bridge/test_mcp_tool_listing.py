"""Each tool of a page is read by itself: whatever is wrong with one costs that one alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import ListToolsResult
from mcp_types.methods import validate_server_result

from mcp_bridge.core.server_config import Limits
from mcp_bridge.protocol.messages import read_message
from mcp_bridge.protocol.tool_listing import (
    MAX_PAGE_BYTES,
    MAX_TOOL_BYTES,
    ToolListing,
    list_tools,
    unpacked_page,
)

OBJECT: dict[str, Any] = {"type": "object"}
GOOD: dict[str, Any] = {"name": "good", "inputSchema": OBJECT}
READS: dict[str, Any] = {"readOnlyHint": True}
MODERN: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def message(*tools: str, beside: str = "") -> bytes:
    """A page of tools as a server may write it."""
    listed = ", ".join(tools)
    return f'{{"jsonrpc": "2.0", "id": 1, "result": {{"tools": [{listed}]{beside}}}}}'.encode()


async def page_of(written: bytes, version: str = "2025-11-25") -> ListToolsResult:
    """What the SDK makes of it, as it judges it."""
    read = await read_message(written, 1_000)
    result: dict[str, Any] = getattr(read, "result", {})
    validate_server_result("tools/list", version, result)
    return ListToolsResult.model_validate(result, by_name=False)


class Client:
    def __init__(self, *pages: bytes) -> None:
        self.asked: list[str | None] = []
        self._pages = list(pages)

    async def list_tools(self, cursor: str | None = None) -> ListToolsResult:
        self.asked.append(cursor)
        return await page_of(self._pages.pop(0))


async def listing(*tools: Any, beside: str = "", limits: Limits | None = None) -> ToolListing:
    texts = (tool if isinstance(tool, str) else json.dumps(tool) for tool in tools)
    client: Any = Client(message(*texts, beside=beside))
    return await list_tools(client, limits or Limits())


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"inputSchema": None},
        {"inputSchema": {}},
        {"inputSchema": {"properties": {}}},
        {"inputSchema": OBJECT, "outputSchema": {}},
        {"inputSchema": OBJECT, "outputSchema": 5},
        {"inputSchema": OBJECT, "icons": ["https://example.org/a.png"]},
        {"inputSchema": OBJECT, "title": 5, "execution": {"taskSupport": "now and then"}},
        {"inputSchema": OBJECT, "_meta": {"mcp_bridge/tools": 5}},
    ],
)
async def test_a_tool_of_an_odd_form_is_kept_and_costs_no_other(odd: dict[str, Any]) -> None:
    found = await listing(
        GOOD, {"name": "odd", "description": "Says.", "annotations": READS, **odd}
    )
    assert [tool.name for tool in found.definitions] == ["good", "odd"]
    kept = found.definitions[1]
    assert (kept.description, kept.input_schema["type"], kept.read_only) == (
        "Says.",
        "object",
        True,
    )
    assert found.notes == ()


@pytest.mark.parametrize(
    ("says", "reads"),
    [
        ({"readOnlyHint": "mostly"}, None),
        ({"readOnlyHint": True, "destructiveHint": True}, False),
        ({"readOnlyHint": False}, False),
        ({"destructiveHint": False, "idempotentHint": True}, None),
        (["readOnlyHint"], None),
        (None, None),
    ],
)
async def test_a_claim_counts_where_it_is_one(says: Any, reads: bool | None) -> None:
    (tool,) = (await listing({**GOOD, "annotations": says})).definitions
    assert tool.read_only is reads


def nested(levels: int) -> str:
    return '{"type": "object", "not": ' * levels + "{}" + "}" * levels


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ({"inputSchema": OBJECT}, "a tool without a name is no tool as the protocol has them"),
        ({"name": 5, "inputSchema": OBJECT}, "a tool without a name is no tool"),
        ("5", "a tool without a name is no tool as the protocol has them"),
        ("[[]]", "a tool without a name is no tool as the protocol has them"),
        ({"name": "listed", "inputSchema": {"type": "array"}}, "listed is no tool"),
        ({"name": "schema", "inputSchema": "none"}, "schema is no tool"),
        ({"name": "said", "description": {"en": "x"}, "inputSchema": OBJECT}, "said is no tool"),
        (
            f'{{"name": "deep", "inputSchema": {nested(33)}}}',
            "deep is nested deeper than 32 levels",
        ),
        (f'{{"name": "deep", "inputSchema": {nested(200)}}}', "deep is nested deeper than 32"),
        (f'{{"name": "far", "inputSchema": {nested(5_000)}}}', "left out"),
        (
            {"name": "wide", "inputSchema": {"properties": {"p" * 100_000: {}}}},
            "the schema of wide has 100",
        ),
        ({"name": "long", "description": "d" * 2**20}, "long is described at too great length"),
        ({"name": "many", "inputSchema": {"a": [[]] * 4_000}}, "many is described at too great"),
        ({"name": "n" * 100_000, "description": "d" * 2**20}, "a tool without a name is no tool"),
        ({"name": "twice", "inputSchema": {"$ref": "https://a.b/c"}}, "twice refers to a schema"),
        (
            {"name": "h", "inputSchema": {"properties": {"a": {"x-mcp-header": 5}}, "type": 5}},
            "h is no tool",
        ),
    ],
)
async def test_what_cannot_be_offered_is_left_out_alone_and_told(bad: Any, told: str) -> None:
    found = await listing(bad, GOOD)
    assert [tool.name for tool in found.definitions] == ["good"]
    (note,) = found.notes
    assert told in note
    assert len(note) < 200


async def test_a_description_that_is_long_is_cut() -> None:
    (tool,) = (await listing({**GOOD, "description": "word " * 40_000})).definitions
    assert len(tool.description) <= Limits().max_description_chars


async def test_what_a_page_holds_beyond_its_bound_is_left_out_by_name() -> None:
    size = MAX_TOOL_BYTES - 200
    many = MAX_PAGE_BYTES // size + 2
    tools = [{"name": f"t{n}", "description": "d" * size} for n in range(many)]
    found = await listing(*tools)
    assert 0 < len(found.definitions) < many
    assert found.notes[-1] == f"t{many - 1} is described at too great length; left out"


async def test_a_person_is_named_the_first_that_are_left_out() -> None:
    found = await listing(*[5] * 50, GOOD)
    assert len(found.notes) == 21
    assert found.notes[-1] == "30 further ones are left out as well"


async def test_there_are_so_many_tools_and_no_name_twice() -> None:
    tools = [{"name": f"t{n // 2}"} for n in range(12)]
    found = await listing(*tools, limits=Limits(max_tools=3))
    assert [tool.name for tool in found.definitions] == ["t0", "t1", "t2"]
    assert found.notes[0] == "lists t0 twice; the first one counts"
    assert found.notes[-1] == "offers more than 3 tools; the rest is left out"


@pytest.mark.parametrize(("written", "read"), [("5", "5"), ("[]", None), ('"5"', "5")])
async def test_a_cursor_of_an_odd_form_costs_no_tools(written: str, read: str | None) -> None:
    more = f', "nextCursor": {written}'
    client: Any = Client(message('{"name": "a"}', beside=more), message('{"name": "b"}'))
    found = await list_tools(client, Limits())
    assert [tool.name for tool in found.definitions] == (["a", "b"] if read else ["a"])
    assert client.asked == ([None, read] if read else [None])


async def test_tools_that_want_headers_are_the_sdks_to_judge() -> None:
    region = {"type": "string", "x-mcp-header": "Region"}
    tool = {"name": "query", "inputSchema": {**OBJECT, "properties": {"region": region}}}
    written = message(json.dumps(tool), json.dumps(GOOD), beside=f", {json.dumps(MODERN)[1:-1]}")
    page = await page_of(written, "2026-07-28")
    assert [(each.name, each.input_schema) for each in page.tools] == [
        ("query", tool["inputSchema"])
    ]


async def test_output_schemas_are_kept_beside_the_definitions() -> None:
    found = await listing({**GOOD, "outputSchema": {"required": ["a"]}})
    assert found.output_schemas == {"good": {"required": ["a"]}}


def test_a_message_that_is_no_page_is_none() -> None:
    for other in (
        b'{"jsonrpc": "2.0", "id": 1, "result": {"content": [], "tools": [{"name": "a"}]}}',
        b'{"jsonrpc": "2.0", "method": "x", "params": {"tools": []}}',
        b'{"jsonrpc": "2.0", "id": 1, "result": {"tools": {"a": 1}}}',
        b'{"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "a"}',
        b'"tools"',
    ):
        assert unpacked_page(other) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["name", "description", "inputSchema", "annotations", "type", "properties", "$ref"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=4), st.booleans())
async def test_whatever_is_listed_a_good_tool_stays(tools: list[Any], escaped: bool) -> None:
    texts = [json.dumps(tool, ensure_ascii=escaped) for tool in (*tools, {"name": "the good one"})]
    client: Any = Client(message(*texts))
    found = await list_tools(client, Limits())
    assert found.definitions[-1].name == "the good one"
