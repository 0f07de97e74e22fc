"""Values of a request count as the words that tools have for their kinds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge import ToolInfo
from mcp_bridge.discovery.tool_search import MAX_PATTERN_CHARS, discover, value_kinds


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("what is on tomorrow", ["date"]),
        ("on March 4th", ["date"]),
        ("the 4th of march", ["date"]),
        ("am 4.3.2026", ["date"]),
        ("on 2026-03-04, please", ["date"]),
        ("this Friday at 8 p.m.", ["date", "time"]),
        ("wake me at 7:30", ["time"]),
        ("at ten, or 9 o'clock", ["time"]),
        ("is it more than $40?", ["amount"]),
        ("twenty euros in dollars", ["amount"]),
        ("a hotel in Oslo", ["city"]),
        ("Portland, OR", ["city"]),
        ("from Leeds on Monday, under £30", ["date", "amount", "city"]),
    ],
)
def test_a_value_is_known_by_its_kind(said: str, found: list[str]) -> None:
    assert value_kinds(said) == found


@pytest.mark.parametrize(
    "said",
    [
        "",
        "may I ask you something",
        "march on",
        "the second of two",
        "version 2.11",
        "a ratio of 3:2",
        "update the sundial",
        "in the kitchen",
        "play it at half the volume",
    ],
)
def test_other_words_are_no_value(said: str) -> None:
    assert value_kinds(said) == []


def test_of_two_alike_the_one_that_takes_such_a_value_comes_first() -> None:
    plain = tool("forecast", "The weather forecast.", "city")
    dated = tool("forecast_on", "The weather forecast.", "city", "date")
    assert discover("forecast for Oslo", [plain, dated])[0] is plain
    assert discover("forecast for Oslo on March 4th", [plain, dated])[0] is dated


def test_a_glob_that_looks_like_a_value_is_a_glob() -> None:
    dated = tool("events", "What is on.", "date")
    assert discover("2026-03-0[1-9]", [dated]) == ()


@given(st.text(alphabet="ain ,.:/-13thMayOslo$@é\n", max_size=200))
def test_any_text_has_each_kind_at_most_once(said: str) -> None:
    found = value_kinds(said)
    assert len(found) == len(set(found))
    assert set(found) <= {"date", "time", "amount", "city"}


@pytest.mark.parametrize("noise", ["in ", "A, ", "12 of ", "1/1/", "1\t", "may "])
def test_a_kind_is_found_behind_much_that_looks_like_one(noise: str) -> None:
    said = noise * ((MAX_PATTERN_CHARS - 20) // len(noise))
    assert "time" in value_kinds(f"{said} at 7:30")


def tool(name: str, description: str, *parameters: str) -> ToolInfo:
    schema = {"type": "object", "properties": {each: {"type": "string"} for each in parameters}}
    return ToolInfo(f"s__{name}", "s", name, description, schema)
