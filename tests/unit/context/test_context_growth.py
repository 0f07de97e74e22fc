"""What a request costs depends on its window, and not on how many turns are behind it.

Steps are Python's own calls, of functions in Python and in C, which no clock and no busy machine
changes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from livekit.agents import llm

from caal_node.context.builder import ContextBuilder
from caal_node.context.pairing import Pairing, repair
from caal_node.context.tool_data import ToolDataCache
from caal_node.context.window import Cutter, WindowLimits, cut
from caal_node.core.items import (
    AssistantItem,
    CallItem,
    Item,
    ResultItem,
    SystemItem,
    ToolsItem,
    UserItem,
)
from caal_node.models.chat_context import ItemsOfContext, to_items

EARLY, LATE, SEEN = 60, 500, 12
"""By `EARLY` the window is full; `SEEN` turns have at least one cut among them."""
ITEMS_OF_TURN = 4
OUTPUT = '{"rows":"' + "row " * 60 + '"}'


def steps(work: Callable[[], object]) -> int:
    """Count the calls that `work` makes."""
    count = 0

    def called(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def add_turn(talk: llm.ChatContext, data: ToolDataCache, turn: int) -> None:
    words = f"What is on in week {turn}?"
    talk.add_message(role="user", content=words, id=f"u{turn}")
    call_id = f"c{turn}"
    output = f'{OUTPUT[:-1]},"week":{turn}}}'
    talk.items.append(llm.FunctionCall(call_id=call_id, name="look", arguments="{}"))
    talk.items.append(
        llm.FunctionCallOutput(call_id=call_id, name="look", output=output, is_error=False)
    )
    data.add_result(call_id, "look", "{}", output)
    talk.add_message(role="assistant", content=f"There are {turn} rows.")


def test_the_work_of_a_request_does_not_grow_with_the_turns_behind_the_window() -> None:
    talk, data, read = llm.ChatContext.empty(), ToolDataCache(), ItemsOfContext()
    talk.add_message(role="system", content="Be brief.")
    builder = ContextBuilder(data=data)
    told: dict[str, ToolsItem] = {}
    taken: list[int] = []
    for turn in range(LATE):
        add_turn(talk, data, turn)
        if turn % 40 == 0:
            told[f"u{turn}"] = ToolsItem((), id=f"told:u{turn}")
            data.add("doorbell", {"seen": "a parcel"})
        history = read.read(talk)
        taken.append(steps(lambda history=history: builder.build(history, told=told)))
    early, late = max(taken[EARLY : EARLY + SEEN]), max(taken[-SEEN:])
    # Each item behind the window is still looked at once, for whether a person said it.
    behind = ITEMS_OF_TURN * (LATE - EARLY - SEEN)
    assert late < early + 1.1 * behind, (early, late)


def test_only_what_is_new_is_converted() -> None:
    talk, data, read = llm.ChatContext.empty(), ToolDataCache(), ItemsOfContext()
    for turn in range(LATE):
        add_turn(talk, data, turn)
        before, now = set(map(id, read.read(talk.copy()))), read.read(talk.copy())
        assert {id(item) for item in now} == before


ids = st.sampled_from(["", "a", "b", "c"])
texts = st.sampled_from(["", " ", "tea", "tea " * 40])
items = st.one_of(
    st.builds(SystemItem, texts, ids),
    st.builds(UserItem, texts, ids),
    st.builds(UserItem, texts, ids),
    st.builds(AssistantItem, texts, ids),
    st.builds(CallItem, ids, st.sampled_from(["look", "turn"]), st.just("{}"), ids),
    st.builds(ResultItem, ids, st.sampled_from(["look", "turn"]), texts, st.booleans(), ids),
)
History = tuple[Item, ...]


@st.composite
def histories(draw: st.DrawFn) -> list[History]:
    """Histories of one conversation, one after the other: it grows, and is edited and cut."""
    found: list[History] = []
    now: list[Item] = []
    for _ in range(draw(st.integers(1, 8))):
        match draw(st.sampled_from(["grow", "grow", "grow", "edit", "shorten", "insert", "drop"])):
            case "edit" if now:
                now[draw(st.integers(0, len(now) - 1))] = draw(items)
            case "insert":
                now.insert(draw(st.integers(0, len(now))), draw(items))
            case "shorten":
                del now[draw(st.integers(0, len(now))) :]
            case "drop":
                del now[: draw(st.integers(0, len(now)))]
            case _:
                now += draw(st.lists(items, max_size=6))
        found.append(tuple(now))
    return found


_ROUND = (CallItem("a", "look", "{}"), CallItem("b", "look", "{}"))


@settings(max_examples=200)
@given(histories())
@example([(_ROUND[0], UserItem("tea"), UserItem("tea")), _ROUND])
def test_what_is_kept_of_a_repair_never_changes_one(conversation: list[History]) -> None:
    pairing = Pairing()
    for history in conversation:
        assert pairing.repair(history) == repair(history)
        assert pairing.repair(history) == repair(history)


@settings(max_examples=200)
@given(
    histories(),
    st.lists(
        st.builds(
            WindowLimits,
            st.integers(1, 4),
            st.integers(20, 300),
            st.sampled_from([0, 60]),
            st.sampled_from([0, 50]),
        ),
        min_size=1,
        max_size=2,
    ),
)
def test_what_is_kept_of_a_cut_never_changes_one(
    conversation: list[History], limits: list[WindowLimits]
) -> None:
    cutter = Cutter()
    for at, history in enumerate(conversation):
        repaired, held = repair(history), limits[at // 3 % len(limits)]
        assert cutter.cut(repaired, held) == cut(repaired, held)


@given(histories(), st.integers(60, 300))
def test_the_bytes_of_a_request_do_not_depend_on_what_is_kept(
    conversation: list[History], max_tokens: int
) -> None:
    data = ToolDataCache(), ToolDataCache()
    warm, cold = (ContextBuilder(max_turns=3, max_tokens=max_tokens, data=each) for each in data)
    for history in conversation:
        for item in history:
            if isinstance(item, ResultItem) and item.call_id:
                for each in data:
                    each.add_result(item.call_id, item.name, "{}", item.output)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cold, "_pairing", Pairing())
            patch.setattr(cold, "_cutter", Cutter())
            assert warm.build(history) == cold.build(history)


@given(st.data())
def test_an_item_that_was_edited_in_place_is_read_anew(data: st.DataObject) -> None:
    talk, read = llm.ChatContext.empty(), ItemsOfContext()
    for number in range(data.draw(st.integers(1, 6))):
        talk.add_message(role="user", content=f"What is {number}?", id=f"u{number}")
        talk.items.append(llm.FunctionCall(call_id=f"c{number}", name="look", arguments="{}"))
        talk.items.append(
            llm.FunctionCallOutput(call_id=f"c{number}", name="look", output="5", is_error=False)
        )
        assert read.read(talk) == to_items(talk)
        item = data.draw(st.sampled_from(talk.items))
        if isinstance(item, llm.ChatMessage):
            item.content = data.draw(st.sampled_from([["Tea."], ["Tea.", "Milk."], []]))
        elif isinstance(item, llm.FunctionCall):
            item.arguments = data.draw(st.sampled_from(["{}", '{"a": 1}']))
        elif isinstance(item, llm.FunctionCallOutput):
            item.output, item.is_error = data.draw(st.sampled_from([("6", True), ("5", False)]))
        assert read.read(talk) == to_items(talk)
