"""Which tools are told for a person's words, and how many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge import ToolInfo
from mcp_bridge.discovery.bm25 import MAX_PIECES, MAX_REPLY_CHARS, Vocabulary
from mcp_bridge.discovery.tool_search import (
    MAX_PATTERN_CHARS,
    MAX_SPLIT_CHARS,
    MAX_TOLD,
    ToolFinder,
    fitting,
)

MEANINGS = (
    (("freezing", "cold", "it is * in here"), ("thermostat", "heating")),
    (("dark",), ("light",)),
)
VOCABULARY = Vocabulary(MEANINGS, ("and", "and then"), ("thank you", "all right", "much better"))


def tool(name: str, description: str) -> ToolInfo:
    return ToolInfo(name, "home", name, description, {"type": "object"})


TOOLS = (
    tool("set_light", "Switches the lamps of a room."),
    tool("set_thermostat", "Sets the temperature of a room."),
    tool("play_music", "Plays songs of an artist."),
    tool("get_forecast", "The weather of the next days."),
    tool("add_to_shopping", "Puts articles on a list."),
)
FINDER = ToolFinder(TOOLS, VOCABULARY)


def told(words: str, finder: ToolFinder = FINDER, caution: float = 1.0) -> list[str]:
    return [tool.name for tool in finder.fitting(finder.parts_of(words), caution=caution)]


def test_one_that_is_far_ahead_is_told_alone_and_close_ones_together() -> None:
    assert fitting(np.array([0.1, 3.0, 0.9]), 0.5) == [1]
    assert fitting(np.array([2.0, 3.0, 2.5]), 0.5) == [1, 2, 0]


def test_the_second_best_is_told_sooner_than_further_ones() -> None:
    assert fitting(np.array([1.0, 0.45, 0.45]), 0.5) == [0, 1]


def test_none_is_told_where_the_best_fits_too_little() -> None:
    assert fitting(np.array([0.4, 0.3]), 0.5) == []
    assert fitting(np.array([]), 0.5) == []


@given(st.lists(st.floats(-5, 5, allow_nan=False), max_size=40))
def test_what_is_told_stands_in_the_order_of_its_scores_and_within_the_cap(
    scores: list[float],
) -> None:
    numbers = fitting(np.array(scores), 0.2)
    assert len(numbers) <= MAX_TOLD
    assert [scores[at] for at in numbers] == sorted((scores[at] for at in numbers), reverse=True)
    assert not numbers or scores[numbers[0]] == max(scores)


def test_everyday_words_find_what_shares_no_word() -> None:
    assert told("I am freezing")[0] == "set_thermostat"


def test_a_word_that_was_said_counts_more_than_one_that_may_be_meant() -> None:
    assert "play_music" in told("cold music")


@pytest.mark.parametrize("words", ["it is awfully cold in here", "It’s DARK", "freezing!"])
def test_phrases_are_found_however_they_are_written(words: str) -> None:
    assert VOCABULARY.meant(words)


def test_a_gap_in_a_phrase_is_one_to_three_words() -> None:
    assert Vocabulary(MEANINGS).meant("it is so very awfully in here")
    assert not Vocabulary(MEANINGS).meant("it is in here")
    assert not Vocabulary(MEANINGS).meant("it is one two three four in here")


def test_each_part_of_a_request_has_its_tool_before_any_has_a_second() -> None:
    found = told("switch the lamps of my room and then play songs by an artist")
    assert set(found[:2]) == {"set_light", "play_music"}


def test_a_list_of_things_is_one_request() -> None:
    words = "put tea and sugar on the list of articles"
    assert FINDER.parts_of(words) == (words,)


def test_words_that_ask_for_nothing_tell_nothing() -> None:
    assert told("All right, thank you. Much better!") == []
    assert told("") == []
    assert told("All right, play songs")[0] == "play_music"


def test_caution_asks_for_a_better_fit() -> None:
    assert told("how is the weather") == ["get_forecast"]
    assert told("how is the weather", caution=100.0) == []


def test_no_vocabulary_and_no_tools_are_no_error() -> None:
    assert told("thank you and good bye", ToolFinder(())) == []


def test_long_words_are_not_split_and_pieces_are_bounded() -> None:
    many = "play songs and then " * 200
    assert FINDER.parts_of(many[:MAX_PATTERN_CHARS]) == (many[:MAX_PATTERN_CHARS].strip(),)
    assert len(VOCABULARY.pieces(many[:MAX_SPLIT_CHARS])) == MAX_PIECES
    assert not VOCABULARY.asks_nothing("thank you " * MAX_REPLY_CHARS)


@given(st.text(max_size=200))
def test_any_words_have_tools_of_the_table_and_the_same_ones_again(words: str) -> None:
    found = told(words)
    assert found == told(words)
    assert set(found) <= {tool.name for tool in TOOLS}
    assert len(set(found)) == len(found)
