"""The newest turn of a conversation, read from the person's words on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.items import (
    AssistantItem,
    CallItem,
    Item,
    ResultItem,
    SystemItem,
    Turn,
    UserItem,
)


def call(reply: str, n: int) -> list[Item]:
    return [
        CallItem(f"{reply}{n}", "t", "{}", f"{reply}/fnc_{n}"),
        ResultItem(f"{reply}{n}", "t", "1"),
    ]


def test_two_calls_of_one_reply_are_one_round() -> None:
    assert Turn([UserItem("a"), *call("r1", 0), *call("r1", 1)]).rounds == 1


def test_each_reply_with_calls_is_a_round() -> None:
    turn = Turn([UserItem("a"), *call("r1", 0), AssistantItem("hm"), *call("r2", 0)])
    assert turn.rounds == turn.adjacent_rounds == 2


def test_the_rounds_of_earlier_turns_do_not_count() -> None:
    turn = Turn([UserItem("a"), *call("r1", 0), AssistantItem("ok"), UserItem("b")])
    assert (turn.rounds, turn.adjacent_rounds, turn.is_new) == (0, 0, True)


def test_a_call_with_an_id_of_its_own_is_a_round() -> None:
    turn = Turn([UserItem("a"), CallItem("1", "t", "{}", "x"), CallItem("2", "t", "{}", "y")])
    assert (turn.rounds, turn.adjacent_rounds) == (2, 1)


ITEMS = st.lists(
    st.sampled_from(
        [
            SystemItem("be brief"),
            UserItem("hello"),
            AssistantItem("hi"),
            CallItem("c", "t", "{}"),
            ResultItem("c", "t", "1"),
        ]
    )
)


@given(ITEMS)
def test_before_words_and_since_are_the_whole_conversation(items: list[Item]) -> None:
    turn = Turn(items)
    words = () if turn.words is None else (turn.words,)
    assert [*turn.before, *words, *turn.since] == items
    assert not any(isinstance(item, UserItem) for item in turn.since)
    assert turn.is_new is (bool(items) and isinstance(items[-1], UserItem))
    said = [item for item in items if isinstance(item, UserItem)]
    assert [*words, *turn.earlier_words()] == said[::-1]
    assert turn.request == (said[-1].text if said else "")
