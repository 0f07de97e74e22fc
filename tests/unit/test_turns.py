"""Where a turn stands, read off the conversation."""

from __future__ import annotations

from caal_node.context.pairing import rounds_done
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, UserItem


def call(reply: str, n: int) -> list[Item]:
    return [
        CallItem(f"{reply}{n}", "t", "{}", f"{reply}/fnc_{n}"),
        ResultItem(f"{reply}{n}", "t", "1"),
    ]


def test_two_calls_of_one_reply_are_one_round() -> None:
    assert rounds_done([UserItem("a"), *call("r1", 0), *call("r1", 1)]) == 1


def test_each_reply_with_calls_is_a_round() -> None:
    assert rounds_done([UserItem("a"), *call("r1", 0), AssistantItem("hm"), *call("r2", 0)]) == 2


def test_the_rounds_of_earlier_turns_do_not_count() -> None:
    assert rounds_done([UserItem("a"), *call("r1", 0), AssistantItem("ok"), UserItem("b")]) == 0


def test_a_call_with_an_id_of_its_own_is_a_round() -> None:
    assert (
        rounds_done([UserItem("a"), CallItem("1", "t", "{}", "x"), CallItem("2", "t", "{}", "y")])
        == 2
    )
