"""Ranking by words and meaning finds the right tools in order, and loses none that words find."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from mcp_bridge import Example, ToolInfo
from mcp_bridge.discovery.tool_search import ToolFinder
from mcp_bridge.embedding.embedders import unit
from mcp_bridge.embedding.semantic_index import (
    MAX_LONG_CHARS,
    MAX_SEMANTIC_MATCHES,
    MAX_SHORT_CHARS,
    SemanticQuery,
    ToolVectors,
    tool_texts,
)
from tests.stand_ins.embedding_stand_ins import vector

WORDS = ("lamp", "light", "music", "mail", "weather", "forecast", "timer", "door")


def tool(name: str, description: str = "", **schema: object) -> ToolInfo:
    return ToolInfo(f"s__{name}", "s", name, description, {"type": "object", **schema})


HOME = (
    tool("set_thermostat", "Set the temperature of a room."),
    tool("switch_lamp", "Switch a light on or off."),
    tool("play_music", "Play a song."),
    tool("send_mail", "Write a letter to somebody."),
    tool("get_time", "What the clock says."),
)


def meaning(tools: tuple[ToolInfo, ...], *asked: str) -> SemanticQuery:
    rows = np.stack([vector(" ".join(tool_texts(each))) for each in tools])
    return SemanticQuery(ToolVectors(rows), {text: vector(text) for text in asked})


def found(asked: str, tools: tuple[ToolInfo, ...] = HOME) -> list[str]:
    return [each.tool for each in ToolFinder(tools).find(asked, meaning(tools, asked))]


@pytest.mark.parametrize(
    ("said", "right"),
    [("I am freezing", "set_thermostat"), ("so dark in here", "switch_lamp")],
)
def test_a_request_without_a_word_in_common_finds_the_tool_that_it_means(
    said: str, right: str
) -> None:
    assert ToolFinder(HOME).find(said, SemanticQuery(meaning(HOME).tools, {})) == ()
    assert found(said)[0] == right


def test_what_means_something_else_altogether_does_not_match() -> None:
    assert "get_time" not in found("freezing cold")


def test_only_the_nearest_match_without_a_word_in_common() -> None:
    tools = tuple(tool(f"lamp{n}", "A light.") for n in range(3 * MAX_SEMANTIC_MATCHES)) + HOME
    assert len(found("so dark in here", tools)) == MAX_SEMANTIC_MATCHES


def test_an_exact_name_stands_first_and_is_not_embedded() -> None:
    finder = ToolFinder(HOME)
    assert finder.patterns_of_words(["s__send_mail", "Play_Music", "*lamp*", "a song"]) == [
        "a song"
    ]
    together = finder.find(["send_mail", "dark"], meaning(HOME, "send_mail", "dark"))
    assert [each.tool for each in together][:2] == ["send_mail", "switch_lamp"]


def test_a_glob_is_found_as_without_vectors() -> None:
    finder = ToolFinder(HOME)
    assert finder.find("*m*", meaning(HOME, "dark")) == finder.find("*m*")


def test_several_patterns_take_turns() -> None:
    both = ToolFinder(HOME).find(["freezing", "dark"], meaning(HOME, "freezing", "dark"))
    assert {each.tool for each in both[:2]} == {"set_thermostat", "switch_lamp"}


def test_one_tool_alone_is_found_by_its_meaning() -> None:
    assert found("freezing", HOME[:1]) == ["set_thermostat"]


@st.composite
def searches(draw: st.DrawFn) -> tuple[tuple[ToolInfo, ...], SemanticQuery, list[str]]:
    texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
    names = draw(st.lists(texts, min_size=1, max_size=12))
    tools = tuple(tool(f"{name.replace(' ', '_')}_{n}", name) for n, name in enumerate(names))
    asked = draw(st.lists(texts | st.sampled_from([t.name for t in tools]), max_size=4))
    # Not whole numbers alone: 0 is a vector without a direction, and must do no harm.
    numbers = st.floats(-1, 1, width=32)
    shape = (len(tools) + len(asked), 5)
    rows = unit(draw(npst.arrays(np.float32, shape, elements=numbers)))
    vectors = dict(zip(asked, rows[len(tools) :], strict=True))
    return tools, SemanticQuery(ToolVectors(rows[: len(tools)]), vectors), asked


@given(searches())
def test_nothing_that_words_find_is_lost_and_nothing_comes_twice(
    search: tuple[tuple[ToolInfo, ...], SemanticQuery, list[str]],
) -> None:
    tools, query, asked = search
    finder = ToolFinder(tools)
    by_words = finder.find(asked, SemanticQuery(query.tools, {}))
    by_both = finder.find(asked, query)
    assert {each.name for each in by_words} <= {each.name for each in by_both}
    assert len(by_both) == len({each.name for each in by_both})
    assert by_both == finder.find(asked, query)
    assert len(by_both) - len(by_words) <= MAX_SEMANTIC_MATCHES * len(asked)


@given(searches())
def test_an_exact_name_is_always_first_of_its_pattern(
    search: tuple[tuple[ToolInfo, ...], SemanticQuery, list[str]],
) -> None:
    tools, query, _ = search
    for each in tools:
        asked = SemanticQuery(query.tools, {each.name: query.tools.rows[0]})
        assert ToolFinder(tools).find(each.name, asked)[0] == each


def test_the_texts_of_a_tool_are_its_words_and_then_its_parameters_too() -> None:
    city = {"city_name": {"type": "string", "description": "Which city."}}
    made = ToolInfo(
        "s__getHTTPForecast",
        "s",
        "getHTTPForecast",
        "Says the weather.",
        {"properties": city},
        examples=(Example("is it wet", {}),),
    )
    assert tool_texts(made) == (
        "get HTTPForecast. Says the weather. is it wet city name",
        "get HTTPForecast. Says the weather. is it wet city name: Which city.",
    )
    assert tool_texts(tool("x", "y")) == ("x. y",)


@given(
    st.text(max_size=30),
    st.text(max_size=3_000),
    st.recursive(
        st.none() | st.text() | st.integers(),
        lambda inner: st.dictionaries(st.text(max_size=300), inner, max_size=4),
    ),
)
def test_any_schema_gives_texts_within_their_caps(
    name: str, description: str, properties: object
) -> None:
    texts = tool_texts(ToolInfo("n", "s", name, description, {"properties": properties}))
    assert 1 <= len(texts) <= 2
    assert len(texts[0]) <= MAX_SHORT_CHARS
    assert len(texts[-1]) <= max(MAX_LONG_CHARS, MAX_SHORT_CHARS)
