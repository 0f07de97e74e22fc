"""Where a turn stands, read off the conversation."""

from __future__ import annotations

from caal_node.context.items import Assistant, Call, Item, Result, User
from caal_node.turns import rounds_done


def call(reply: str, n: int) -> list[Item]:
    return [Call(f"{reply}{n}", "t", "{}", f"{reply}/fnc_{n}"), Result(f"{reply}{n}", "t", "1")]


def test_two_calls_of_one_reply_are_one_round() -> None:
    assert rounds_done([User("a"), *call("r1", 0), *call("r1", 1)]) == 1


def test_each_reply_with_calls_is_a_round() -> None:
    assert rounds_done([User("a"), *call("r1", 0), Assistant("hm"), *call("r2", 0)]) == 2


def test_the_rounds_of_earlier_turns_do_not_count() -> None:
    assert rounds_done([User("a"), *call("r1", 0), Assistant("ok"), User("b")]) == 0


def test_a_call_with_an_id_of_its_own_is_a_round() -> None:
    assert rounds_done([User("a"), Call("1", "t", "{}", "x"), Call("2", "t", "{}", "y")]) == 2
