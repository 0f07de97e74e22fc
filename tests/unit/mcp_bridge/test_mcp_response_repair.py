"""What breaks the protocol in what does not matter is mended, and nothing else is touched."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import CallToolResult
from mcp_types.methods import validate_server_result

from mcp_bridge.protocol.inbound_filter import MAX_ANSWER_VALUES, needs_no_repair, repair


def answer(**result: Any) -> CallToolResult:
    if not needs_no_repair(result):
        repair(result)
    validate_server_result("tools/call", "2025-11-25", result)
    return CallToolResult.model_validate(result, by_name=False)


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_what_fits_a_version_is_not_touched(version: str) -> None:
    kind: dict[str, Any] = {"resultType": "complete"} if version == "2026-07-28" else {}
    structured: Any = [1] if kind else {"a": 1}
    result: dict[str, Any] = {"content": [], "structuredContent": structured, **kind}
    before = copy.deepcopy(result)
    validate_server_result("tools/call", version, result)
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
        {"content": [{}] * (MAX_ANSWER_VALUES + 1)},
        {"content": {"type": "text", "annotations": {"audience": [1] * MAX_ANSWER_VALUES}}},
    ],
)
def test_more_than_should_be_looked_at_twice_is_left_to_the_sdk(result: dict[str, Any]) -> None:
    before = copy.deepcopy(result)
    repair(result)
    assert result == before


@pytest.mark.parametrize(
    ("written", "failed"), [("true", True), ("false", False), ("", False), (1, True), ({}, False)]
)
def test_an_error_may_be_told_in_another_way(written: Any, failed: bool) -> None:
    assert answer(content="a", isError=written).is_error is failed


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "name", "annotations", "icons", "data", "a"]),
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
                "content",
                "structuredContent",
                "isError",
                "_meta",
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
    assert result == once
