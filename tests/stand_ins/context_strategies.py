"""Conversations for the tests of the context room: any at all, and such as really grow."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st

from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem


def tried(examples: int) -> settings:
    """So many examples, however slow the machine is at the moment."""
    return settings(max_examples=examples, deadline=None)


_words = st.text(alphabet="ab é好7{}\n", max_size=12)
_ids = st.sampled_from(["", "a", "b", "a_2", "call", "call_2"])
_names = st.sampled_from(["look", "write"])

any_item: st.SearchStrategy[Item] = st.one_of(
    st.builds(SystemItem, _words),
    st.builds(UserItem, _words),
    st.builds(AssistantItem, _words),
    st.builds(CallItem, _ids, _names, st.just("{}")),
    st.builds(ResultItem, _ids, _names, _words, st.booleans()),
)
any_items = st.lists(any_item, max_size=24)


@dataclass(frozen=True)
class Grown:
    """A conversation, and the lengths at which a request to the model is made."""

    items: tuple[Item, ...]
    requests: tuple[int, ...]


@st.composite
def grown(draw: st.DrawFn, max_turns: int = 10) -> Grown:
    """As a session appends it: user, rounds of calls with their results, an answer."""
    items: list[Item] = [SystemItem("s" * draw(st.integers(0, 200)))]
    if draw(st.booleans()):
        items.append(AssistantItem("Hello there."))
    requests: list[int] = []
    number = 0
    for turn in range(draw(st.integers(1, max_turns))):
        items.append(UserItem(f"question {turn} " + "u" * draw(st.integers(0, 300))))
        requests.append(len(items))
        for _ in range(draw(st.integers(0, 3))):
            calls = draw(st.integers(1, 3))
            ids = [f"c{number + each}" for each in range(calls)]
            number += calls
            items += [CallItem(each, "look", "{}") for each in ids]
            items += [ResultItem(each, "look", "r" * draw(st.integers(0, 2_000))) for each in ids]
            requests.append(len(items))
        if draw(st.integers(0, 9)) == 0:
            items.append(SystemItem(f"instruction {turn}"))
        if draw(st.integers(0, 4)):
            items.append(AssistantItem("answer " + "w" * draw(st.integers(0, 300))))
    return Grown(tuple(items), tuple(requests))


def turn_starts(items: tuple[Item, ...]) -> list[int]:
    return [at for at, item in enumerate(items) if isinstance(item, UserItem)]


def assert_paired(items: tuple[Item, ...]) -> None:
    """Every run of calls is followed by exactly its results, in order; no other results."""
    at = 0
    seen: set[str] = set()
    while at < len(items):
        calls: list[CallItem] = []
        while at < len(items) and isinstance(call := items[at], CallItem):
            calls.append(call)
            at += 1
        for call in calls:
            assert call.call_id
            assert call.call_id not in seen
            seen.add(call.call_id)
            result = items[at] if at < len(items) else None
            assert isinstance(result, ResultItem)
            assert (result.call_id, result.name) == (call.call_id, call.name)
            at += 1
        if at < len(items) and not isinstance(items[at], CallItem):
            assert not isinstance(items[at], ResultItem)
            at += 1
