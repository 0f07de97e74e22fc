"""What a search answers: tools under a budget, every name, and what was left out."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge import ToolInfo, discover_tool, offer
from mcp_bridge.discovery.tool_search import TOOLS_MAX


def names(count: int) -> list[str]:
    return [f"s__t{n}" for n in range(count)]


def text(size: int) -> str:
    return "x" * size


def test_the_best_are_callable_and_the_rest_are_named() -> None:
    found = offer(names(30), lambda _: text(400), text_bytes=1_200)
    assert dict(found.ready) == dict.fromkeys(names(3), text(400))
    assert found.others == tuple(names(30)[3:])
    assert found.left_out == 0
    answer = found.answer()
    assert answer["callable_now"] == found.ready
    assert "callable" in answer["note"]


def test_only_a_few_are_told_with_all_they_need() -> None:
    assert list(offer(names(30), lambda _: "small").ready) == names(TOOLS_MAX)


def test_what_found_no_room_is_counted_and_not_written() -> None:
    written: list[str] = []

    def write(name: str) -> str:
        written.append(name)
        return text(400)

    found = offer(names(500), write)
    assert found.left_out > 0
    assert len(found.ready) + len(found.others) + found.left_out == 500
    assert str(found.left_out) in found.answer()["left_out"]
    assert len(written) <= 2 * TOOLS_MAX


def test_the_best_match_is_callable_however_large() -> None:
    assert list(offer(names(2), lambda _: text(90_000)).ready) == ["s__t0"]


def test_a_large_tool_keeps_no_smaller_one_out() -> None:
    found = offer(names(3), lambda name: text(90_000 if name == "s__t1" else 9))
    assert list(found.ready) == ["s__t0", "s__t2"]
    assert found.others == ("s__t1",)


def test_nothing_found_is_said() -> None:
    assert offer([], str).answer()["found"] == 0


def test_twenty_servers_are_named_in_few_bytes() -> None:
    tool = discover_tool([f"server{n}" for n in range(20)])
    assert "server19" in tool.description
    assert size(tool) < 700
    many = discover_tool([f"a-server-with-a-long-name-{n}" for n in range(200)])
    assert "more" in many.description
    assert size(many) < 1_000


def size(tool: ToolInfo) -> int:
    return len(json.dumps([tool.name, tool.description, dict(tool.input_schema)]))


@given(
    st.lists(st.integers(0, 3_000), max_size=40),
    st.integers(0, 8_000),
    st.integers(0, 400),
)
def test_nothing_is_lost_and_budgets_hold(sizes: list[int], texts: int, told: int) -> None:
    given_names = names(len(sizes))
    by_name = dict(zip(given_names, sizes, strict=True))
    found = offer(given_names, lambda n: text(by_name[n]), text_bytes=texts, names_bytes=told)
    assert len(found.ready) + len(found.others) + found.left_out == len(sizes)
    assert not set(found.ready) & set(found.others)
    assert sum(map(len, list(found.ready.values())[1:])) <= texts
    assert sum(len(name) + 2 for name in found.others) <= told
    json.dumps(found.answer())
