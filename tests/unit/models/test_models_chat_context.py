"""Calls and results stand in the order in which the model wrote the calls."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from livekit.agents import llm

from caal_node.models.chat_context import in_the_models_order


def call(n: int, reply: int = 0) -> llm.FunctionCall:
    return llm.FunctionCall(
        id=f"r{reply}/fnc_{n}", call_id=f"{reply}.{n}", name="t", arguments="{}", created_at=reply
    )


def result(n: int, reply: int = 0) -> llm.FunctionCallOutput:
    return llm.FunctionCallOutput(call_id=f"{reply}.{n}", name="t", output="x", is_error=False)


@given(st.integers(1, 14).flatmap(lambda n: st.permutations(range(n))))
def test_whatever_ended_first_the_models_order_stands(ended: list[int]) -> None:
    words = llm.ChatMessage(role="user", content=["hi"])
    items = [words, *(call(n) for n in ended), *(result(n) for n in ended), words]
    ordered = in_the_models_order(items)
    count = len(ended)
    assert [item.id for item in ordered[1 : 1 + count]] == [f"r0/fnc_{n}" for n in range(count)]
    assert [r.call_id for r in ordered[1 + count : -1]] == [f"0.{n}" for n in range(count)]  # type: ignore[union-attr]
    assert (ordered[0], ordered[-1]) == (words, words)
    assert in_the_models_order(ordered) == ordered


def test_rounds_stay_apart() -> None:
    items = [call(0), result(0), call(1, 1), call(0, 1), result(1, 1), result(0, 1)]
    order = [item.call_id for item in in_the_models_order(items)]  # type: ignore[union-attr]
    assert order == ["0.0", "0.0", "1.0", "1.1", "1.0", "1.1"]


def test_a_result_without_its_call_loses_nothing() -> None:
    items = [result(5), result(0), call(0)]
    assert len(in_the_models_order(items)) == 3
