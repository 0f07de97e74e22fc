"""What a search answers: schemas under a budget, every name, and what was left out."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge import ToolInfo, discover_tool, offer, schema_size


def tool(n: int, size: int = 0) -> ToolInfo:
    return ToolInfo(f"s__t{n}", "s", f"t{n}", f"Does {n}. " + "x" * size, {"type": "object"})


def test_the_best_are_callable_and_the_rest_are_named() -> None:
    tools = [tool(n, 400) for n in range(30)]
    found = offer(tools, schema_bytes=3_000)
    assert 5 <= len(found.ready) <= 7
    assert found.ready == tuple(tools[: len(found.ready)])
    assert found.others == tuple(t.name for t in tools[len(found.ready) :])
    assert found.left_out == 0
    answer = found.answer()
    assert list(answer["callable_now"]) == [t.name for t in found.ready]
    assert "callable" in answer["note"]


def test_what_found_no_room_is_counted() -> None:
    found = offer([tool(n, 400) for n in range(500)])
    assert found.left_out > 0
    assert len(found.ready) + len(found.others) + found.left_out == 500
    assert str(found.left_out) in found.answer()["left_out"]


def test_the_best_match_is_callable_however_large() -> None:
    assert len(offer([tool(1, 90_000), tool(2)]).ready) == 1


def test_a_large_tool_keeps_no_smaller_one_out() -> None:
    found = offer([tool(1), tool(2, 90_000), tool(3)])
    assert [t.tool for t in found.ready] == ["t1", "t3"]
    assert found.others == ("s__t2",)


def test_what_is_callable_already_costs_nothing() -> None:
    tools = [tool(n, 400) for n in range(9)]
    found = offer(tools, known=frozenset(t.name for t in tools[:8]), schema_bytes=600)
    assert len(found.ready) == 9


def test_nothing_found_is_said() -> None:
    assert offer([]).answer()["found"] == 0


def test_twenty_servers_are_named_in_few_bytes() -> None:
    tool = discover_tool([f"server{n}" for n in range(20)])
    assert "server19" in tool.description
    assert schema_size(tool) < 700
    many = discover_tool([f"a-server-with-a-long-name-{n}" for n in range(200)])
    assert "more" in many.description
    assert schema_size(many) < 1_000


@given(
    st.lists(st.integers(0, 3_000), max_size=40),
    st.integers(0, 8_000),
    st.integers(0, 400),
)
def test_nothing_is_lost_and_budgets_hold(sizes: list[int], schemas: int, names: int) -> None:
    tools = [tool(n, size) for n, size in enumerate(sizes)]
    found = offer(tools, schema_bytes=schemas, names_bytes=names)
    assert len(found.ready) + len(found.others) + found.left_out == len(tools)
    assert not {t.name for t in found.ready} & set(found.others)
    assert sum(map(schema_size, found.ready[1:])) <= schemas
    assert sum(len(name) + 2 for name in found.others) <= names
    json.dumps(found.answer())
