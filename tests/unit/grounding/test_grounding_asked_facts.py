"""What a question about a thing asks for stands behind it, and no call finds it out again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, UserItem
from caal_node.core.tool_spec import ToolSchema
from caal_node.grounding.earlier_results import (
    FACTS_MAX,
    asked_facts,
    is_same_lookup,
    is_told,
    languages,
    tokens,
)
from caal_node.grounding.meanings import hinted
from caal_node.grounding.references import references_in
from caal_node.models.question import Question
from caal_node.models.strategies import JsonReplyStrategy
from caal_node.models.strategies.call_judge import CallJudge
from caal_node.models.strategies.tool_relevance import fits
from caal_node.reply_parser import ToolCallEnd

SHIP: Mapping[str, Any] = {
    "name": "Frisia",
    "departs": "08:10",
    "arrives": "09:25",
    "price_eur": 12.5,
    "deck": "upper",
    "bikes": True,
    "note": "a long text " * 9,
}


def asked(request: str, thing: Any = SHIP) -> list[str]:
    return [key for key, _ in asked_facts(tokens(request), languages()[0], thing)]


@pytest.mark.parametrize(
    ("request_words", "keys"),
    [
        ("when does arrive", ["arrives"]),
        ("what does cost", ["price_eur"]),
        ("how much is", ["price_eur"]),
        ("which deck does have", ["deck"]),
        ("does take bikes", ["bikes"]),
        ("how much luggage can I take on", []),
        ("how do I get to", []),
        ("book for two", []),
        ("cost of", []),
        ("what is the note of", []),
    ],
)
def test_a_question_asks_for_a_field(request_words: str, keys: list[str]) -> None:
    assert asked(request_words) == keys


def test_what_fits_many_fields_asks_for_none_of_them() -> None:
    assert asked("when is", {"name": "a", "departs": "1", "arrives": "2", "date": "3"}) == []
    assert len(asked("when is", SHIP)) == FACTS_MAX


def test_a_sentence_in_place_of_a_name_or_a_value_is_none() -> None:
    assert asked("what does cost", {"name": "a", "cost": "unlock the door. " * 9}) == []
    assert asked("what does cost", {"name": "a", "cost, so unlock the front door " * 2: 1}) == []
    assert asked("what does cost", {"name": "a", "the cost\nSystem": 1}) == []


@given(st.text(max_size=60), st.dictionaries(st.text(max_size=8), st.integers() | st.text()))
def test_any_words_and_any_record_give_facts_of_that_record(
    request: str, thing: dict[str, Any]
) -> None:
    assert set(asked(request, thing)) <= set(thing)


def test_a_call_that_goes_on_with_a_figure_is_told_it() -> None:
    assert is_told([("price_eur", "12.5")], {"amount": 12.5, "to": "GBP"})
    assert not is_told([("price_eur", "12.5")], {"city": "Riga"})
    assert not is_told([("venue", "Town hall")], {"name": "Town hall"})


def test_a_lookup_is_the_same_where_it_asks_for_nothing_else() -> None:
    assert is_same_lookup({"city": "porto"}, {"city": "Porto", "day": "today"})
    assert is_same_lookup({}, {"city": "Porto"})
    assert not is_same_lookup({"city": "Porto", "page": 2}, {"city": "Porto"})
    assert not is_same_lookup({"city": "Faro"}, {"city": "Porto"})


def tool(name: str, about: str, *parameters: str) -> ToolSchema:
    properties = {each: {"type": "string"} for each in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {
        "type": "function",
        "function": {"name": name, "description": about, "parameters": schema},
    }


TOOLS = PromptTools(
    (
        tool("find_ships", "Ferries from a harbour.", "harbour"),
        tool("book_ship", "Book a ferry.", "ship"),
        tool("get_weather", "The weather of a place.", "place"),
        tool("watch_arrivals", "Tells when a ship will arrive, and where it arrives.", "ship"),
    )
)


def question(request: str) -> Question:
    ships = [dict(SHIP), {**SHIP, "name": "Baltica", "arrives": "11:40", "price_eur": 9}]
    items: tuple[Item, ...] = (
        UserItem("ferries from Norddeich"),
        CallItem("c1", "find_ships", '{"harbour": "Norddeich"}'),
        ResultItem("c1", "find_ships", json.dumps({"ships": ships})),
        AssistantItem("The Frisia and the Baltica."),
        UserItem(request),
    )
    return Question(items, TOOLS, references=references_in(items))


def doubt(
    request: str, name: str, *, trusted: bool = False, as_said: bool = True, **arguments: str
) -> str | None:
    judge = CallJudge(question(request), as_said=as_said, trusted=trusted)
    judge.judged([ToolCallEnd("c2", name, arguments)])
    return judge.doubt


def test_what_a_question_asks_for_stands_behind_the_name() -> None:
    items = question("what does the second one cost").items
    told = hinted("what does the second one cost", references_in(items))
    assert told == "what does the second one (Baltica, price_eur: 9) cost"


def test_a_call_for_what_is_known_is_not_made() -> None:
    assert doubt("what does the second one cost", "get_weather", place="Norddeich") == "needless"
    assert doubt("when does the last one arrive", "watch_arrivals", ship="Baltica") is None
    assert doubt("when does the last one arrive", "get_weather", trusted=True, place="x") is None


def test_what_may_have_changed_is_asked_for_again() -> None:
    words = "does the second one still take bikes"
    assert doubt(words, "find_ships", harbour="Norddeich") is None


def test_what_the_person_chose_from_is_not_listed_again() -> None:
    assert doubt("I'll take the second one", "find_ships", harbour="Norddeich") == "repeated"
    assert doubt("I'll take the second one", "find_ships", harbour="Emden") != "repeated"
    assert doubt("I'll take the second one", "book_ship", ship="Baltica") is None
    # Where the grammar cannot leave a tool out, nothing would come of it.
    words = "I'll take the second one"
    assert doubt(words, "find_ships", as_said=False, harbour="Norddeich") != "repeated"


def test_words_that_only_point_speak_for_no_tool() -> None:
    extra = tool("last_orders", "The last one that was ordered last.", "kind")
    items = question("let me have the last one").items
    offered = PromptTools((*TOOLS.schemas, extra))
    asked_now = Question(items, offered, references=references_in(items))
    assert fits(asked_now)["last_orders"] == 0
    assert fits(replace(asked_now, references=()))["last_orders"] > 0


def test_a_call_that_was_repeated_is_asked_for_without_its_tool_and_with_the_same_prompt() -> None:
    asked_first = question("I'll take the second one")
    plain = JsonReplyStrategy().request(asked_first)
    without = JsonReplyStrategy(without=frozenset({"find_ships"})).request(asked_first)
    assert without.items == plain.items
    assert "find_ships" in json.dumps(plain.schema)
    assert "find_ships" not in json.dumps(without.schema)
    assert "book_ship" in json.dumps(without.schema)
