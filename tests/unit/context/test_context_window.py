from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.context import window as window_module
from caal_node.context.token_estimate import item_tokens, items_tokens
from caal_node.context.window import Window, WindowLimits, cut
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from tests.stand_ins.context_strategies import Grown, assert_paired, grown, tried

WIDE = WindowLimits(turns=1_000, tokens=1_000_000)


def chat(turns: int) -> list[Item]:
    items: list[Item] = [SystemItem("s")]
    for number in range(turns):
        items += [UserItem(f"q{number}"), AssistantItem(f"a{number}")]
    return items


def tool_round(call_id: str, output: str) -> list[Item]:
    return [CallItem(call_id, "look", "{}"), ResultItem(call_id, "look", output)]


def users(window: Window) -> list[str]:
    return [item.text for item in window.kept if isinstance(item, UserItem)]


def test_a_short_conversation_is_kept_whole() -> None:
    items = chat(3)
    window = cut(items, WIDE)
    assert (*window.head, *window.kept) == tuple(items)
    assert (window.dropped, window.cut_at, window.data_tokens) == ((), None, 0)


def test_too_many_turns_are_cut_to_half_at_once() -> None:
    assert len(users(cut(chat(8), WindowLimits(8, 100_000)))) == 8
    assert users(cut(chat(9), WindowLimits(8, 100_000))) == ["q5", "q6", "q7", "q8"]
    assert len(users(cut(chat(13), WindowLimits(8, 100_000)))) == 8
    assert len(users(cut(chat(14), WindowLimits(8, 100_000)))) == 4


def test_too_many_tokens_are_cut_to_half_of_the_room() -> None:
    items: list[Item] = [SystemItem("s")]
    for number in range(30):
        items += [UserItem(f"q{number} " + "word " * 40), AssistantItem("word " * 40)]
    window = cut(items, WindowLimits(100, 2_000))
    room = 2_000 - window_module.FIXED_STEP
    assert window.dropped
    assert items_tokens(window.kept) <= room

    assert window.cut_at is not None
    at_the_cut = cut(items[: window.cut_at + 1], WindowLimits(100, 2_000))
    newest = item_tokens(items[window.cut_at])
    assert room / 3 < items_tokens(at_the_cut.kept) - newest <= room * window_module.KEPT


def test_a_cut_that_is_coming_is_made_where_a_turn_begins() -> None:
    items: list[Item] = [SystemItem("s")]
    limits = WindowLimits(100, 2_000)
    for number in range(100):
        items += [UserItem(f"q{number}"), AssistantItem("word " * 100)]
        if (at := cut(items, limits).cut_at) is not None:
            assert items[at] == UserItem(f"q{number}")
            break
    else:
        pytest.fail("nothing was cut")


def test_what_a_large_turn_brought_is_still_there_in_the_next_one() -> None:
    room = 2_000 - window_module.FIXED_STEP
    large = "word " * int(room * 0.95 / item_tokens(AssistantItem("word " * 1_000)) * 1_000)
    items = [SystemItem("s"), UserItem("q0"), AssistantItem(large), UserItem("q1")]
    assert users(cut(items, WindowLimits(100, 2_000))) == ["q0", "q1"]


def test_a_greeting_belongs_to_the_first_turn() -> None:
    items = [SystemItem("s"), AssistantItem("Hello!"), *chat(9)[1:]]
    assert users(cut(items, WindowLimits(8, 100_000)))[0] == "q5"
    assert cut(items[:-2], WindowLimits(8, 100_000)).cut_at is None


def test_instructions_of_dropped_turns_move_behind_the_first_ones() -> None:
    items = chat(2)
    items.append(SystemItem("Now speak German."))
    items += chat(8)[1:]
    window = cut(items, WindowLimits(4, 100_000))
    assert window.head == (SystemItem("s"), SystemItem("Now speak German."))
    assert SystemItem("Now speak German.") not in window.kept + window.dropped


def test_instructions_that_moved_to_the_head_still_count() -> None:
    items: list[Item] = [SystemItem("s"), UserItem("u"), SystemItem("word " * 200)]
    for number in range(20):
        items += [UserItem(f"q{number}"), AssistantItem("word " * 20)]
        window = cut(items, WindowLimits(100, 1_000))
        assert items_tokens((*window.head, *window.kept)) <= 1_000
    assert SystemItem("word " * 200) in window.head


def test_instructions_of_kept_turns_stay_where_they_are() -> None:
    items = [*chat(3), SystemItem("Now speak German.")]
    window = cut(items, WIDE)
    assert window.head == (SystemItem("s"),)
    assert window.kept[-1] == SystemItem("Now speak German.")


def test_the_newest_turn_stays_however_long_it_is() -> None:
    items = [*chat(3), UserItem("word " * 5_000)]
    window = cut(items, WindowLimits(10, 500))
    assert window.kept == (items[-1],)


def test_in_a_turn_too_long_the_oldest_results_become_notes() -> None:
    items: list[Item] = [SystemItem("s"), UserItem("research this")]
    for number in range(6):
        items += tool_round(f"c{number}", f"result {number} " + "word " * 300)
    window = cut(items, WindowLimits(10, 2_000))
    results = [item for item in window.kept if isinstance(item, ResultItem)]
    assert window.kept[0] == UserItem("research this")
    assert results[0].output.startswith("(shortened to make room: 1509 characters, beginning resu")
    assert results[-1] == items[-1]
    assert items_tokens(window.kept) <= 2_000
    assert_paired(window.kept)


def test_the_newest_result_stays_whole_even_if_it_alone_is_too_long() -> None:
    items = [SystemItem("s"), UserItem("u"), *tool_round("c", "word " * 5_000)]
    assert cut(items, WindowLimits(10, 500)).kept == tuple(items[1:])


def test_errors_that_are_short_already_are_not_made_longer() -> None:
    items: list[Item] = [SystemItem("s"), UserItem("u")]
    for number in range(60):
        items += tool_round(f"c{number}", '{"error":"timeout"}')
    assert cut(items, WindowLimits(10, 500)).kept == tuple(items[1:])


def test_tools_that_leave_no_room_still_leave_the_newest_turn() -> None:
    window = cut(chat(5), WindowLimits(10, 1_000, tools_tokens=5_000))
    assert window.kept == (UserItem("q4"), AssistantItem("a4"))


def test_instructions_that_change_by_a_word_do_not_move_the_cut() -> None:
    body = chat(60)[1:]
    limits = WindowLimits(100, 700)
    at_ten = cut([SystemItem("It is ten o'clock."), *body], limits)
    at_nine = cut([SystemItem("It is nine minutes past ten o'clock."), *body], limits)
    assert at_ten.cut_at is not None
    assert at_ten.kept == at_nine.kept


def test_each_item_is_weighed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed = 0

    def count(item: Item) -> int:
        nonlocal weighed
        weighed += 1
        return item_tokens(item)

    monkeypatch.setattr(window_module, "item_tokens", count)
    items = chat(2_000)
    cut(items, WindowLimits(10, 300))
    assert weighed == len(items) - 1


limits_of = st.builds(
    WindowLimits,
    turns=st.integers(1, 8),
    tokens=st.integers(200, 4_000),
    tools_tokens=st.sampled_from([0, 0, 300]),
)


def output(window: Window) -> tuple[Item, ...]:
    return (*window.head, *window.kept)


@tried(100)
@given(grown(), limits_of)
def test_between_two_cuts_the_window_only_grows_at_its_end(
    grown: Grown, limits: WindowLimits
) -> None:
    before: Window | None = None
    for length in grown.requests:
        now = cut(grown.items[:length], limits)
        if before is not None and now.cut_at == before.cut_at:
            shortened = [
                each
                for each in now.kept[: len(before.kept)]
                if isinstance(each, ResultItem) and each not in before.kept
            ]
            if not shortened:
                assert output(now)[: len(output(before))] == output(before)
            else:
                # Only a turn that fills the window alone has its results shortened.
                assert len(users(before)) == 1
        before = now


@tried(100)
@given(grown(), limits_of)
def test_a_cut_once_made_stays_wherever_the_conversation_goes(
    grown: Grown, limits: WindowLimits
) -> None:
    seen: int | None = None
    length_then = 0
    for length in range(1, len(grown.items) + 1):
        now = cut(grown.items[:length], limits).cut_at
        assert now == seen or (now is not None and now >= length_then)
        seen, length_then = now, length


@tried(100)
@given(grown(), limits_of)
def test_nothing_is_lost_or_doubled(grown: Grown, limits: WindowLimits) -> None:
    for length in grown.requests:
        items = grown.items[:length]
        window = cut(items, limits)
        systems = [item for item in items if isinstance(item, SystemItem)]
        others = [item for item in items if not isinstance(item, SystemItem)]
        assert [item for item in output(window) if isinstance(item, SystemItem)] == systems
        shown = [item for item in window.kept if not isinstance(item, SystemItem)]
        assert len(window.dropped) + len(shown) == len(others)
        for item, original in zip((*window.dropped, *shown), others, strict=True):
            assert item == original or (
                isinstance(item, ResultItem)
                and isinstance(original, ResultItem)
                and item.call_id == original.call_id
                and item.output.startswith("(shortened")
            )


@tried(100)
@given(grown(), limits_of)
def test_calls_and_results_are_never_parted_and_turns_never_split(
    grown: Grown, limits: WindowLimits
) -> None:
    for length in grown.requests:
        window = cut(grown.items[:length], limits)
        assert_paired(window.kept)
        assert_paired(window.dropped)
        if window.cut_at is not None:
            assert isinstance(window.kept[0], UserItem)
        last_user = max(
            at for at, item in enumerate(grown.items[:length]) if isinstance(item, UserItem)
        )
        assert grown.items[last_user] in window.kept


@tried(100)
@given(grown(), limits_of)
def test_the_budget_is_kept_unless_the_newest_turn_cannot_be_made_smaller(
    grown: Grown, limits: WindowLimits
) -> None:
    for length in grown.requests:
        window = cut(grown.items[:length], limits)
        turns = len(users(window))
        assert turns <= limits.turns
        used = limits.tools_tokens + items_tokens(output(window)) + window.data_tokens
        if used > limits.tokens:
            assert turns == 1
            results = [item for item in window.kept if isinstance(item, ResultItem)]
            assert all(item_tokens(item) < 100 for item in results[:-1])
