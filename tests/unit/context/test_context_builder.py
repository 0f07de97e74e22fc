from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.context.builder import ContextBuilder
from caal_node.context.pairing import INTERRUPTED
from caal_node.context.token_estimate import items_tokens
from caal_node.context.tool_data import DATA_HEADING, ToolDataCache
from caal_node.context.window import DATA_ID
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from tests.stand_ins.context_strategies import Grown, any_items, assert_paired, grown, tried

HOTELS = [{"name": "Alpha", "price": 120}, {"name": "Beta", "price": 95}]


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def searched(data: ToolDataCache, call_id: str = "c1") -> list[Item]:
    """A turn in which a tool found hotels, kept as tool data."""
    data.add_result(call_id, "find_hotels", {"city": "Rome"}, HOTELS)
    return [
        UserItem("Find hotels in Rome."),
        CallItem(call_id, "find_hotels", '{"city":"Rome"}'),
        ResultItem(call_id, "find_hotels", json.dumps(HOTELS)),
        AssistantItem("I found Alpha and Beta."),
    ]


def small_talk(turns: int, start: int = 0) -> list[Item]:
    return [
        item
        for number in range(start, start + turns)
        for item in (UserItem(f"q{number}"), AssistantItem(f"a{number}"))
    ]


def data_of(items: tuple[Item, ...]) -> str | None:
    return next(
        (item.text for item in items if isinstance(item, UserItem) and item.id == DATA_ID), None
    )


def test_before_a_cut_the_history_stays_as_it_is() -> None:
    data = ToolDataCache()
    items = [SystemItem("s"), *searched(data), UserItem("And the second one?")]
    assert ContextBuilder(10, 10_000, data).build(items) == tuple(items)


def test_the_second_one_can_be_found_after_the_call_has_left_the_window() -> None:
    data = ToolDataCache()
    items = [
        SystemItem("s"),
        *searched(data),
        *small_talk(4),
        UserItem("More about the second one?"),
    ]
    built = ContextBuilder(4, 10_000, data).build(items)
    assert not any(isinstance(item, CallItem) for item in built)
    assert built[0] == SystemItem("s")
    assert built[1] == UserItem(
        f"{DATA_HEADING}\n"
        'find_hotels {"city":"Rome"}:\n'
        '1. {"name":"Alpha","price":120}\n'
        '2. {"name":"Beta","price":95}',
        DATA_ID,
    )
    assert built[-1] == UserItem("More about the second one?")


def test_a_list_that_was_found_twice_is_in_a_prompt_once() -> None:
    data = ToolDataCache()
    items = [SystemItem("s"), *searched(data), *small_talk(2), *searched(data, "c2")]
    dropped_both = [*items, *small_talk(4), UserItem("More about the second one?")]
    built = ContextBuilder(4, 10_000, data).build(dropped_both)
    assert str(built).count("Beta") == 1
    dropped_one = [*items, UserItem("More about the second one?")]
    built = ContextBuilder(3, 10_000, data).build(dropped_one)
    assert [item.call_id for item in built if isinstance(item, CallItem)] == ["c2"]
    assert data_of(built) is None


def test_data_of_calls_still_in_the_window_is_not_repeated() -> None:
    data = ToolDataCache()
    items = [SystemItem("s"), *small_talk(4), *searched(data), UserItem("q")]
    built = ContextBuilder(4, 10_000, data).build(items)
    assert any(isinstance(item, CallItem) for item in built)
    assert data_of(built) is None


def test_between_cuts_the_data_message_stays_the_same_whatever_happens_to_the_data() -> None:
    clock = Clock()
    data = ToolDataCache(max_age_s=60, clock=clock)
    builder = ContextBuilder(8, 10_000, data)
    items = [SystemItem("s"), *searched(data), *small_talk(8)]
    first = builder.build(items)
    assert data_of(first)

    clock.now_s = 1_000
    data.add_result("c1", "find_hotels", {}, "something else")
    items += [UserItem("q8")]
    assert builder.build(items)[: len(first)] == first

    items += [AssistantItem("a8"), *small_talk(5, start=9)]
    assert "something else" in (data_of(builder.build(items)) or "")


def test_data_that_has_expired_by_the_time_of_a_cut_is_left_out() -> None:
    clock = Clock()
    data = ToolDataCache(max_age_s=60, clock=clock)
    items = [SystemItem("s"), *searched(data), *small_talk(4)]
    clock.now_s = 61
    assert data_of(ContextBuilder(4, 10_000, data).build(items)) is None


def test_words_guessed_too_early_do_not_fix_the_data_of_those_that_came() -> None:
    clock = Clock()
    data = ToolDataCache(max_age_s=60, clock=clock)
    items = [SystemItem("s"), *searched(data), *small_talk(3)]
    builder = ContextBuilder(4, 10_000, data)
    assert data_of(builder.build([*items, UserItem("tell me")]))
    clock.now_s = 61
    came = [*items, UserItem("tell me the news")]
    assert builder.build(came) == ContextBuilder(4, 10_000, data).build(came)
    assert data_of(builder.build(came)) is None


def test_a_guess_that_would_have_cut_leaves_no_trace_where_no_cut_was_needed() -> None:
    data = ToolDataCache()
    builder = ContextBuilder(10, 500, data)
    items = [SystemItem("s"), *searched(data), *small_talk(3)]
    before = builder.build(items)
    guess = builder.build([*items, UserItem("word " * 300)])
    assert guess[: len(before)] != before
    assert builder.build([*items, UserItem("yes")]) == (*before, UserItem("yes"))


def test_a_long_round_of_tools_keeps_the_users_words_and_the_newest_result() -> None:
    items: list[Item] = [SystemItem("s"), *small_talk(2), UserItem("Research this for me.")]
    builder = ContextBuilder(10, 2_000)
    for number in range(12):
        items += [
            CallItem(f"c{number}", "look", "{}"),
            ResultItem(f"c{number}", "look", f"page {number} " + "word " * 250),
        ]
        built = builder.build(items)
        assert UserItem("Research this for me.") in built
        assert built[-1] == items[-1]
        assert items_tokens(built) <= 2_000
        assert_paired(built)


def test_tools_count_against_the_budget() -> None:
    items = [SystemItem("s"), *small_talk(40)]
    builder = ContextBuilder(100, 1_000)
    assert len(builder.build(items, tools_tokens=500)) < len(builder.build(items))


def test_a_call_without_result_is_repaired_before_the_window_is_cut() -> None:
    items = [SystemItem("s"), UserItem("u"), CallItem("a", "look", "{}"), UserItem("never mind")]
    built = ContextBuilder().build(items)
    assert ResultItem("a", "look", INTERRUPTED, is_error=True) in built


@pytest.mark.parametrize("limits", [(0, 100), (5, 0)])
def test_limits_without_room_are_refused(limits: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="above zero"):
        ContextBuilder(*limits)


def remembered(grown: Grown) -> ToolDataCache:
    data = ToolDataCache()
    for item in grown.items:
        if isinstance(item, ResultItem):
            data.add_result(item.call_id, item.name, "{}", item.output[:50])
    return data


limits_of = st.tuples(st.integers(1, 8), st.integers(200, 4_000))


def newest_turn(items: tuple[Item, ...]) -> int:
    return max(at for at, item in enumerate(items) if isinstance(item, UserItem))


@tried(60)
@given(grown(), limits_of)
def test_what_precedes_the_newest_turn_only_changes_at_a_cut(
    grown: Grown, limits: tuple[int, int]
) -> None:
    builder = ContextBuilder(*limits, remembered(grown))
    before: tuple[Item, ...] = ()
    for length in grown.requests:
        now = builder.build(grown.items[:length])
        settled = before[: newest_turn(before)] if before else ()
        # A cut takes turns away from the front, or makes results of a lone turn short.
        if now[: len(settled)] != settled:
            gone = [item for item in before if item not in now]
            assert any(isinstance(item, (UserItem, ResultItem)) for item in gone)
        before = now


@tried(60)
@given(grown(), limits_of)
def test_what_is_built_fits_the_budget_or_is_only_the_newest_turn(
    grown: Grown, limits: tuple[int, int]
) -> None:
    builder = ContextBuilder(*limits, remembered(grown))
    for length in grown.requests:
        built = builder.build(grown.items[:length])
        assert_paired(built)
        assert [item for item in built if isinstance(item, SystemItem)] == [
            item for item in grown.items[:length] if isinstance(item, SystemItem)
        ]
        if items_tokens(built) > limits[1]:
            users = [item for item in built if isinstance(item, UserItem) and item.id != DATA_ID]
            assert len(users) == 1


@tried(60)
@given(grown(), limits_of, st.data())
def test_requests_made_ahead_of_time_change_nothing(
    grown: Grown, limits: tuple[int, int], draw: st.DataObject
) -> None:
    data = remembered(grown)
    plain, guessing = ContextBuilder(*limits, data), ContextBuilder(*limits, data)
    for length in grown.requests:
        if isinstance(grown.items[length - 1], UserItem):
            guess = UserItem("guess " + "g" * draw.draw(st.integers(0, 3_000)))
            guessing.build([*grown.items[: length - 1], guess])
        items = grown.items[:length]
        assert guessing.build(items) == plain.build(items)


@tried(60)
@given(grown(), limits_of)
def test_it_is_known_behind_an_answer_whether_the_next_words_cut(
    grown: Grown, limits: tuple[int, int]
) -> None:
    builder = ContextBuilder(*limits, remembered(grown))
    for length in grown.requests:
        asked = builder.build(grown.items[:length])
        if length == len(grown.items) or not isinstance(grown.items[length], AssistantItem):
            continue
        answer = grown.items[length]
        assert isinstance(answer, AssistantItem)
        is_cut = builder.is_cut_behind(answer.text)
        following = builder.build([*grown.items[: length + 1], UserItem("")])
        assert is_cut == (following[: len(asked)] != asked)


@tried(100)
@given(any_items, limits_of)
def test_whatever_the_history_no_result_is_ever_alone(
    items: list[Item], limits: tuple[int, int]
) -> None:
    builder = ContextBuilder(*limits)
    built = builder.build(items)
    assert_paired(built)
    assert builder.build(items) == built


@given(any_items, st.integers(0, 400))
def test_tightening_shows_less_each_time_until_nothing_can_be_left_out(
    items: list[Item], tools_tokens: int
) -> None:
    builder = ContextBuilder(20, 10_000)
    sizes = [items_tokens(builder.build(items, tools_tokens))]
    while builder.tighten(items, tools_tokens):
        sizes.append(items_tokens(builder.build(items, tools_tokens)))
        assert sizes[-1] < sizes[-2]
    assert items_tokens(builder.build(items, tools_tokens)) == sizes[-1], "a last try changes none"


def test_what_was_tightened_stays_so_for_the_turns_to_come() -> None:
    builder = ContextBuilder(100, 10_000)
    said = [SystemItem("s"), *small_talk(40)]
    assert builder.tighten(said)
    fewer = len(builder.build(said))
    assert fewer < len(said)
    assert len(builder.build([*said, *small_talk(40, start=40)])) <= len(said)
