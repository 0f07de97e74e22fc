"""What breaks the protocol in what does not matter is mended, and nothing else is touched."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import CallToolResult, ListToolsResult
from mcp_types.methods import parse_server_result, validate_server_result

from mcp_bridge.protocol.response_repair import (
    MAX_ANSWER_VALUES,
    MAX_PAGE_VALUES,
    left_out_tools,
    needs_no_repair,
    repair,
)

OBJECT: dict[str, Any] = {"type": "object"}
GOOD: dict[str, Any] = {"name": "good", "inputSchema": OBJECT}
READS: dict[str, Any] = {"readOnlyHint": True}


def page(*tools: Any, **beside: Any) -> ListToolsResult:
    """What the SDK makes of a page of these, as it judges it."""
    result: dict[str, Any] = {"tools": list(tools), **beside}
    repair(result)
    validate_server_result("tools/list", "2025-11-25", result)
    return ListToolsResult.model_validate(result, by_name=False)


def answer(**result: Any) -> CallToolResult:
    if not needs_no_repair(result):
        repair(result)
    validate_server_result("tools/call", "2025-11-25", result)
    return CallToolResult.model_validate(result, by_name=False)


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"inputSchema": None},
        {"inputSchema": {}},
        {"inputSchema": {"properties": {}}},
        {"inputSchema": OBJECT, "outputSchema": {}},
        {"inputSchema": OBJECT, "icons": ["https://example.org/a.png"]},
        {"inputSchema": OBJECT, "title": 5, "execution": {"taskSupport": "now and then"}},
    ],
)
def test_a_tool_of_an_odd_form_is_kept_and_costs_no_other(odd: dict[str, Any]) -> None:
    found = page(GOOD, {"name": "odd", "description": "Says.", "annotations": READS, **odd})
    assert [tool.name for tool in found.tools] == ["good", "odd"]
    kept = found.tools[1]
    assert kept.description == "Says."
    assert kept.input_schema["type"] == "object"
    assert kept.annotations is not None
    assert kept.annotations.read_only_hint
    assert left_out_tools(found.meta) == []


def test_annotations_of_an_odd_form_are_left_out_with_all_that_they_say() -> None:
    found = page({**GOOD, "annotations": {"readOnlyHint": "mostly"}})
    assert found.tools[0].annotations is None


@pytest.mark.parametrize(
    ("bad", "called"),
    [
        ({"inputSchema": OBJECT}, "a tool without a name"),
        ({"name": 5, "inputSchema": OBJECT}, "a tool without a name"),
        ("text", "a tool without a name"),
        ({"name": "listed", "inputSchema": {"type": "array"}}, "listed"),
        ({"name": "schema", "inputSchema": "none"}, "schema"),
        ({"name": "said", "description": {"en": "x"}, "inputSchema": OBJECT}, "said"),
    ],
)
def test_what_is_no_tool_is_left_out_and_told(bad: Any, called: str) -> None:
    found = page(bad, GOOD, _meta={"theirs": 1})
    assert [tool.name for tool in found.tools] == ["good"]
    assert left_out_tools(found.meta) == [f"{called} is no tool as the protocol has them"]
    assert found.meta is not None
    assert found.meta["theirs"] == 1


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_what_fits_a_version_is_not_touched(version: str) -> None:
    modern = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    beside: dict[str, Any] = modern if version == "2026-07-28" else {}
    tools: list[Any] = [{**GOOD, "icons": [{"src": "x"}], "x-theirs": None}]
    kind: dict[str, Any] = {"resultType": "complete"} if beside else {}
    structured: Any = [1] if beside else {"a": 1}
    results: list[tuple[str, dict[str, Any]]] = [
        ("tools/list", {"tools": tools, **beside}),
        ("tools/call", {"content": [], "structuredContent": structured, **kind}),
    ]
    for method, result in results:
        before = copy.deepcopy(result)
        validate_server_result(method, version, result)
        repair(result)
        assert result == before


@pytest.mark.parametrize(
    ("result", "texts"),
    [
        ({"content": None}, []),
        ({"content": "done"}, ["done"]),
        ({"content": {"type": "text", "text": "done"}}, ["done"]),
        ({"content": ["a", {"text": "b"}, 5]}, ["a", "b", "5"]),
        ({"content": [{"type": "json", "json": {"é": 1}}]}, ['{"type": "json", "json": {"é": 1}}']),
        ({"content": [{"type": "text", "text": "a", "annotations": {"audience": 1}}]}, ["a"]),
        ({"content": [{"type": "image", "data": "aGk="}]}, ['{"type": "image"}']),
        ({"content": [], "isError": None}, []),
        ({"content": [], "structuredContent": [1, 2]}, ["[1, 2]"]),
        ({"content": [{"type": "text", "text": "x"}], "structuredContent": [1]}, ["x"]),
    ],
)
def test_an_answer_of_an_odd_form_is_read_all_the_same(
    result: dict[str, Any], texts: list[str]
) -> None:
    found = answer(**result)
    assert [getattr(block, "text", None) for block in found.content] == texts
    assert not found.is_error


def test_an_object_without_any_content_is_read() -> None:
    assert answer(structuredContent={"a": 1}).structured_content == {"a": 1}


def test_an_error_stays_one() -> None:
    assert answer(content="no such file", isError=True).is_error


def test_ordinary_answers_are_seen_at_a_glance() -> None:
    texts = [{"type": "text", "text": "a"}]
    assert needs_no_repair({"content": texts})
    assert needs_no_repair(
        {"content": texts, "structuredContent": {"a": 1}, "isError": False, "_meta": {}}
    )
    assert needs_no_repair({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}})


@pytest.mark.parametrize(
    "result",
    [
        {"tools": [{}] * (MAX_PAGE_VALUES + 1)},
        {"tools": [{**GOOD, "icons": [1] * MAX_PAGE_VALUES}]},
        {"content": [{}] * (MAX_ANSWER_VALUES + 1)},
        {"content": {"type": "text", "annotations": {"audience": [1] * MAX_ANSWER_VALUES}}},
    ],
)
def test_more_than_should_be_looked_at_twice_is_left_to_the_sdk(result: dict[str, Any]) -> None:
    before = copy.deepcopy(result)
    repair(result)
    assert result == before


def test_a_page_of_ordinary_tools_is_not_too_many() -> None:
    properties = {f"p{n}": {"type": "string", "description": "d"} for n in range(10)}
    tool = {"name": "a", "inputSchema": {**OBJECT, "properties": properties}}
    assert len(page(*[tool] * 1_000, {"name": "odd", "inputSchema": {}}).tools) == 1_001


def test_a_mark_that_a_server_writes_itself_is_no_mark() -> None:
    for mark in (5, "x", {"a": 1}, [1, None], ["a"] * 100_000):
        assert left_out_tools(page(GOOD, _meta={"mcp_bridge/left_out": mark}).meta) == []


@pytest.mark.parametrize(("written", "read"), [(5, "5"), ([], None), ("5", "5"), (None, None)])
def test_a_cursor_of_an_odd_form_costs_no_tools(written: Any, read: str | None) -> None:
    assert page(GOOD, {"name": "b"}, nextCursor=written).next_cursor == read


@pytest.mark.parametrize(
    ("written", "failed"), [("true", True), ("false", False), ("", False), (1, True), ({}, False)]
)
def test_an_error_may_be_told_in_another_way(written: Any, failed: bool) -> None:
    assert answer(content="a", isError=written).is_error is failed


def test_a_tool_costs_no_others_whatever_the_version_says_of_it() -> None:
    modern = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    result: dict[str, Any] = {"tools": [{**GOOD, "execution": 5}, GOOD], **modern}
    repair(result)
    parse_server_result("tools/list", "2026-07-28", result)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "text", "name", "inputSchema", "annotations", "icons", "data", "a"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "tools",
                "content",
                "structuredContent",
                "isError",
                "_meta",
                "nextCursor",
                "resultType",
            ]
        ),
        JSON,
        max_size=5,
    )
)
def test_any_result_is_mended_once_and_for_all_or_left_as_it_is(result: dict[str, Any]) -> None:
    repair(result)
    once = copy.deepcopy(result)
    repair(result)
    for each in (once, result):
        if isinstance(meta := each.get("_meta"), dict):
            meta.pop("mcp_bridge/left_out", None)  # What a first look has said, a second does not.
    assert result == once
