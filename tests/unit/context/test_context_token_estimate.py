from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.context.token_estimate import item_tokens, items_tokens, text_tokens, tools_tokens
from caal_node.core.items import AssistantItem, CallItem, ResultItem, SystemItem, UserItem
from tests.stand_ins.context_strategies import tried

# Counted with the vocabulary of Qwen2.5: (text, its tokens).
COUNTED = [
    (
        "I found three appointments for tomorrow. The first one is the dentist at nine thirty, "
        "then lunch with Maria at noon.",
        24,
    ),
    ('{"id":1,"title":"Dentist","start":"2026-03-02T09:30:00Z","price":84.72}', 42),
    ("我找到了明天的三个约会。第一个是九点半看牙医。", 15),
    ("Ich habe drei Termine für morgen gefunden.", 10),
    ("[446,902,18,7731]", 17),
]


@pytest.mark.parametrize(("text", "counted"), COUNTED)
def test_the_estimate_errs_high_but_not_wildly(text: str, counted: int) -> None:
    assert counted <= text_tokens(text) <= counted * 2.5


@tried(100)
@given(st.text(), st.text())
def test_more_text_is_never_fewer_tokens(one: str, other: str) -> None:
    together = text_tokens(one + other)
    assert max(text_tokens(one), text_tokens(other)) <= together
    assert together <= text_tokens(one) + text_tokens(other)


def test_an_empty_text_costs_only_what_the_template_puts_around_it() -> None:
    assert text_tokens("") == 0
    assert all(
        0 < item_tokens(item) < 30
        for item in (
            SystemItem(""),
            UserItem(""),
            AssistantItem(""),
            CallItem("a", "", ""),
            ResultItem("a", "", ""),
        )
    )


def test_half_a_character_is_counted_and_not_refused() -> None:
    assert text_tokens("\ud800") > 0


def test_items_add_up() -> None:
    items = [UserItem("hello"), CallItem("a", "look", '{"a":1}'), ResultItem("a", "look", "found")]
    assert items_tokens(items) == sum(item_tokens(item) for item in items)


def test_no_tools_cost_nothing_and_each_costs_its_schema() -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    assert tools_tokens([]) == 0
    one, two = tools_tokens([tool]), tools_tokens([tool, tool])
    assert 0 < two - one < one
