"""Conversations as chat messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.models.backends.openai import to_prompt
from caal_node.models.backends.tool_calls import arguments_object, arguments_text, to_messages

A = CallItem("a", "f", "{}")
B = CallItem("b", "g", "{}")


def shape(*items: Item) -> list[tuple[str, str, list[str]]]:
    messages = to_messages(
        items,
        lambda call, index: {"id": call.call_id, "index": index},
        lambda result: {"role": "tool", "content": result.output},
    )
    for message in messages:
        calls: list[dict[str, Any]] = message.get("tool_calls", [])
        assert [call["index"] for call in calls] == list(range(len(calls)))
    return [
        (m["role"], m["content"], [call["id"] for call in m.get("tool_calls", [])])
        for m in messages
    ]


def test_adjacent_calls_are_one_message() -> None:
    assert shape(UserItem("u"), A, B, ResultItem("a", "f", "1"), ResultItem("b", "g", "2")) == [
        ("user", "u", []),
        ("assistant", "", ["a", "b"]),
        ("tool", "1", []),
        ("tool", "2", []),
    ]


def test_words_right_before_calls_belong_to_their_message() -> None:
    assert shape(AssistantItem("Wait."), A, AssistantItem("So.")) == [
        ("assistant", "Wait.", ["a"]),
        ("assistant", "So.", []),
    ]


def test_rounds_stay_apart() -> None:
    rounds = shape(A, ResultItem("a", "f", "1"), B, ResultItem("b", "g", "2"), SystemItem("late"))
    assert [row[0] for row in rounds] == ["assistant", "tool", "assistant", "tool", "system"]


@pytest.mark.parametrize(
    ("written", "value", "text"),
    [
        ('{"a": 1}', {"a": 1}, '{"a": 1}'),
        ("", {}, "{}"),
        ("[1]", {}, "{}"),
        ('{"a": NaN}', {}, "{}"),
        ('{"a": ', {}, "{}"),
        ("[" * 100_000, {}, "{}"),
    ],
)
def test_broken_arguments_do_not_break_the_request(
    written: str, value: dict[str, Any], text: str
) -> None:
    call = CallItem("a", "f", written)
    assert arguments_object(call) == value
    assert arguments_text(call) == text


@given(
    st.lists(
        st.sampled_from(
            [SystemItem("s"), UserItem("u"), AssistantItem("a"), A, B, ResultItem("a", "f", "r")]
        ),
        max_size=12,
    )
)
def test_a_longer_conversation_only_appends(items: list[Item]) -> None:
    """The prompt's prefix holds: all but the last message stay as they were."""
    for end in range(len(items)):
        shorter, longer = shape(*items[:end]), shape(*items[: end + 1])
        assert longer[: max(0, len(shorter) - 1)] == shorter[: max(0, len(shorter) - 1)]


def test_a_plain_prompt_has_a_role_a_line_and_ends_with_the_assistant() -> None:
    items = (SystemItem("Be short."), UserItem("Time?"), A, ResultItem("a", "f", "noon"))
    assert to_prompt(items) == (
        "System: Be short.\nUser: Time?\n"
        'Assistant: {"type": "tool_call", "name": "f", "arguments": {}}\n'
        "Tool f: noon\nAssistant:"
    )
