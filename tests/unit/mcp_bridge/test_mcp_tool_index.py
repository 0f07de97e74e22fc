"""Ranking by words, and the bounds on what a search may cost."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge import Example, ToolInfo
from mcp_bridge.discovery.bm25 import BM25Index, FieldWeight, split_terms
from mcp_bridge.discovery.tool_search import MAX_PATTERNS, ToolFinder, ToolIndex, discover


def tool(name: str, description: str = "", **schema: object) -> ToolInfo:
    server, own = name.split("__")
    return ToolInfo(name, server, own, description, {"type": "object", **schema})


def best(request: str, *tools: ToolInfo) -> str:
    return discover(request, tools)[0].tool


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("getForecast", "get_forecasts"),
        ("HTTPRequest", "http requests"),
        ("converting currencies", "convert_currency"),
        ("What's the weather?", "weather"),
    ],
)
def test_spellings_of_one_thing_are_one(one: str, other: str) -> None:
    assert [t for t in split_terms(one) if t != "get"] == [
        t for t in split_terms(other) if t != "get"
    ]


def test_words_of_other_languages_are_words() -> None:
    assert split_terms("Übersetze größere Texte, 翻译") == ["übersetz", "größere", "text", "翻译"]


def test_words_that_say_nothing_find_nothing() -> None:
    assert discover("can you please do it for me", (tool("a__it", "Does it."),)) == ()


def test_a_word_in_the_name_is_worth_more_than_one_in_the_description() -> None:
    named = tool("a__send_mail", "Sends a letter.")
    told = tool("a__draft", "Writes a letter that can be sent as mail.")
    assert best("mail", told, named) == "send_mail"


def test_parameters_and_their_choices_are_looked_at() -> None:
    properties = {"unit": {"type": "string", "enum": ["celsius", "kelvin"]}}
    deep = {"place": {"type": "object", "properties": {"postcode": {"type": "string"}}}}
    tools = (
        tool("a__other", "Something else."),
        tool("a__measure", "Reads a device.", properties=properties),
        tool("a__find", "Looks up.", properties=deep),
    )
    assert best("in kelvin", *tools) == "measure"
    assert best("postcode", *tools) == "find"


def test_what_people_say_for_a_tool_finds_it() -> None:
    said = ToolInfo("a__x", "a", "x", "", {}, examples=(Example("call me a cab", {}),))
    assert best("get me a cab", tool("a__other", "The station's clock."), said) == "x"


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    many = [tool(f"a__list_{n}", "Lists files.") for n in range(9)]
    scores = ToolIndex([*many, tool("a__find", "Finds invoices.")]).scores("list invoices")
    assert scores.argmax() == 9


def test_a_piece_of_a_name_finds_it_behind_whole_words() -> None:
    tools = (tool("a__geolocation"), tool("a__geo"))
    assert [found.tool for found in discover("geo", tools)] == ["geo"]
    assert [found.tool for found in discover("geoloc", tools)] == ["geolocation"]


def test_an_exact_name_stands_first() -> None:
    tools = (tool("a__read_file_lines", "read file read file"), tool("a__read_file"))
    assert best("a__read_file", *tools) == "read_file"
    assert best("READ_FILE", *tools) == "read_file"


def test_several_needs_take_turns() -> None:
    mails = [tool(f"mail__send_{n}", "Sends mail.") for n in range(20)]
    found = discover(["send mail", "weather"], [*mails, tool("sky__weather", "Weather.")])
    assert found[1].tool == "weather"


def test_further_patterns_than_the_cap_are_not_looked_for() -> None:
    patterns = [*(f"nothing{n}" for n in range(MAX_PATTERNS)), "weather"]
    assert discover(patterns, (tool("a__weather"),)) == ()


def test_a_glob_that_could_run_for_ever_does_not() -> None:
    finder = ToolFinder([tool("a__" + "a" * 60) for _ in range(50)])
    began = time.process_time()
    finder.find("*a" * 60 + "*b")
    assert time.process_time() - began < 1


@given(st.lists(st.text(max_size=40), max_size=6), st.text(max_size=80))
def test_any_text_is_harmless_on_either_side(descriptions: list[str], request: str) -> None:
    tools = [tool(f"a__t{n}", text) for n, text in enumerate(descriptions)]
    found = discover(request, tools)
    assert len({t.name for t in found}) == len(found) <= len(tools)


@given(st.lists(st.sampled_from(["mail", "send", "file", "read", "sun"]), min_size=1, max_size=5))
def test_every_tool_with_a_word_of_the_request_is_found(words: list[str]) -> None:
    tools = [tool(f"a__{word}_{n}") for n, word in enumerate(("mail", "file", "sun", "moon"))]
    found = {t.tool.partition("_")[0] for t in discover(" ".join(words), tools)}
    assert found >= {"mail", "file", "sun", "moon"} & set(words)


def test_any_texts_can_be_ranked_by_the_words_they_share_with_a_query() -> None:
    index = BM25Index([["Turn the lamps on"], ["Tells the weather of a city"], ["Lamp, lamp"]])
    lamps, weather, twice = index.scores("which lamp?")
    assert twice > lamps > weather == 0
    assert not index.scores("nothing here").any()
    assert max(index.scores("weather")) < index.most_by_one_term


def test_a_field_counts_by_its_weight_and_texts_may_be_taken_apart_in_another_way() -> None:
    documents = [["lamp", "a long text"], ["text", "lamp"]]
    fields = (FieldWeight(3.0), FieldWeight())
    named, described = BM25Index(documents, fields).scores("lamp")
    assert named > described > 0
    assert BM25Index([["a-b"]], terms_of=lambda text: text.split("-")).scores("b") > 0
    assert len(BM25Index([]).scores("lamp")) == 0
