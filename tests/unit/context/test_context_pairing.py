from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hypothesis import given

from caal_node.context.pairing import INTERRUPTED, repair
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from tests.stand_ins.context_strategies import Grown, any_items, assert_paired, grown, tried


def call(call_id: str, name: str = "look", arguments: str = "{}") -> CallItem:
    return CallItem(call_id, name, arguments)


def result(call_id: str, output: str = "found", name: str = "look") -> ResultItem:
    return ResultItem(call_id, name, output)


def interrupted(call_id: str, name: str = "look") -> ResultItem:
    return ResultItem(call_id, name, INTERRUPTED, is_error=True)


def test_a_right_conversation_is_left_as_it_is() -> None:
    items = (
        SystemItem("s"),
        UserItem("u"),
        AssistantItem("One moment."),
        call("a"),
        call("b"),
        result("a"),
        result("b"),
        call("c"),
        result("c"),
        AssistantItem("done"),
    )
    assert repair(items) == items


def test_results_in_another_order_take_the_order_of_their_calls() -> None:
    assert repair([call("a"), call("b"), result("b", "2"), result("a", "1")]) == (
        call("a"),
        call("b"),
        result("a", "1"),
        result("b", "2"),
    )


def test_a_call_the_person_spoke_over_gets_a_short_error() -> None:
    assert repair([UserItem("u"), call("a"), UserItem("no, wait")]) == (
        UserItem("u"),
        call("a"),
        interrupted("a"),
        UserItem("no, wait"),
    )


def test_a_late_result_moves_up_to_its_call() -> None:
    items = [call("a"), AssistantItem("Still looking."), UserItem("and?"), result("a")]
    assert repair(items) == (
        call("a"),
        result("a"),
        AssistantItem("Still looking."),
        UserItem("and?"),
    )


def test_only_one_of_two_calls_in_a_reply_was_answered() -> None:
    assert repair([call("a"), call("b"), result("b")]) == (
        call("a"),
        call("b"),
        interrupted("a"),
        result("b"),
    )


def test_a_result_whose_call_was_truncated_away_is_dropped() -> None:
    assert repair([result("gone"), UserItem("u"), result("gone")]) == (UserItem("u"),)


def test_of_two_results_for_one_call_the_first_stays() -> None:
    items = [call("a"), result("a", "first"), result("a", "second")]
    assert repair(items) == (call("a"), result("a", "first"))


def test_an_assistant_text_without_words_is_dropped() -> None:
    assert repair([UserItem("u"), AssistantItem(" \n"), AssistantItem("")]) == (UserItem("u"),)


def test_ids_that_begin_again_in_each_turn_are_made_unique() -> None:
    items = [
        call("call_0"),
        result("call_0", "1"),
        UserItem("again"),
        call("call_0"),
        result("call_0", "2"),
    ]
    assert repair(items) == (
        call("call_0"),
        result("call_0", "1"),
        UserItem("again"),
        call("call_0_2"),
        result("call_0_2", "2"),
    )


def test_an_id_used_twice_in_one_reply_keeps_both_results_with_their_calls() -> None:
    items = [call("x", "look"), call("x", "write"), result("x", "w", "write"), result("x", "l")]
    assert repair(items) == (
        call("x", "look"),
        call("x_2", "write"),
        result("x", "l"),
        result("x_2", "w", "write"),
    )


def test_a_result_goes_to_the_newest_round_that_waits_for_its_id() -> None:
    items = [call("x"), UserItem("forget it, again"), call("x"), result("x", "new")]
    assert repair(items) == (
        call("x"),
        interrupted("x"),
        UserItem("forget it, again"),
        call("x_2"),
        result("x_2", "new"),
    )


def test_calls_of_one_id_in_the_newest_round_are_answered_in_order() -> None:
    items = [call("x"), UserItem("again"), call("x"), call("x"), result("x", "1"), result("x", "2")]
    assert repair(items) == (
        call("x"),
        interrupted("x"),
        UserItem("again"),
        call("x_2"),
        call("x_3"),
        result("x_2", "1"),
        result("x_3", "2"),
    )


def test_an_empty_id_is_replaced() -> None:
    assert repair([call(""), result("")]) == (call("call"), result("call"))


def test_a_result_takes_the_name_of_its_call() -> None:
    assert repair([call("a"), result("a", name="")]) == (call("a"), result("a"))


def test_many_calls_of_one_id_take_no_more_than_a_step_each() -> None:
    items: list[Item] = []
    for _ in range(20_000):
        items += [call("call_0"), result("call_0")]
    repaired = repair(items)
    assert repaired[-1] == result("call_0_20000")


@tried(100)
@given(any_items)
def test_every_call_has_exactly_one_result_after_repair(items: list[Item]) -> None:
    assert_paired(repair(items))


@tried(100)
@given(any_items)
def test_repair_is_idempotent(items: list[Item]) -> None:
    once = repair(items)
    assert repair(once) == once


@tried(100)
@given(any_items)
def test_nothing_but_results_moves_and_no_words_are_lost(items: list[Item]) -> None:
    def spoken(of: Iterable[Item]) -> list[Item]:
        texts = [each for each in of if isinstance(each, (SystemItem, UserItem, AssistantItem))]
        return [each for each in texts if each.text.strip() or not isinstance(each, AssistantItem)]

    repaired = repair(items)
    assert spoken(repaired) == spoken(items)
    names = [each.name for each in items if isinstance(each, CallItem)]
    assert [each.name for each in repaired if isinstance(each, CallItem)] == names
    before = Counter(each.output for each in items if isinstance(each, ResultItem))
    after = Counter(
        each.output
        for each in repaired
        if isinstance(each, ResultItem) and each.output != INTERRUPTED
    )
    assert after <= before


@tried(100)
@given(any_items, any_items)
def test_ids_given_once_do_not_change_when_the_conversation_grows(
    items: list[Item], more: list[Item]
) -> None:
    before = [each.call_id for each in repair(items) if isinstance(each, CallItem)]
    after = [each.call_id for each in repair([*items, *more]) if isinstance(each, CallItem)]
    assert after[: len(before)] == before


@tried(100)
@given(grown())
def test_what_a_session_appends_is_right_already(conversation: Grown) -> None:
    assert repair(conversation.items) == conversation.items
