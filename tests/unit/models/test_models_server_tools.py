"""Calls that a server runs, and their results, paired whatever it leaves out."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from caal_node.models.backends.base import ServerCall, ServerResult
from caal_node.models.backends.tool_calls import ServerRuns, ToolResult
from caal_node.models.reply_limits import CALLS_MAX


def result(**fields: Any) -> ToolResult:
    return ToolResult.model_validate(fields)


def test_results_without_ids_go_to_the_call_of_their_name() -> None:
    runs = ServerRuns()
    [first] = runs.started("", "a", {"x": 1})
    [second] = runs.started("", "b", None)
    assert (first.arguments, second.arguments) == ('{"x": 1}', "{}")
    assert list(runs.ended([result(tool_name="b", error="no"), result(name="a")])) == [
        ServerResult(second.id, True),
        ServerResult(first.id, False),
    ]


def test_a_call_that_is_announced_again_is_one_call() -> None:
    runs = ServerRuns()
    assert len([*runs.started("1", "a", {}), *runs.started("1", "a", {})]) == 1


def test_a_result_without_its_call_is_told_with_one() -> None:
    [call, end] = ServerRuns().ended([result(tool_call_id="9", tool_name="a", is_error=True)])
    assert call == ServerCall("9", "a", "{}")
    assert end == ServerResult("9", True)


names = st.sampled_from(["", "a", "b"])
ids = st.sampled_from(["", "1", "2"])


@given(st.lists(st.tuples(st.booleans(), ids, names), max_size=100))
def test_each_call_ends_at_most_once_and_none_ends_that_was_not_begun(
    steps: list[tuple[bool, str, str]],
) -> None:
    runs, open_ids, begun = ServerRuns(), set[str](), 0
    for begins, call_id, name in steps:
        found = (
            runs.started(call_id, name, {})
            if begins
            else runs.ended([result(tool_call_id=call_id, tool_name=name)])
        )
        for one in found:
            if isinstance(one, ServerCall):
                begun += 1
                assert one.id not in open_ids
                open_ids.add(one.id)
            else:
                open_ids.remove(one.id)
    assert begun <= CALLS_MAX
