"""What was said, what fits, what is joined: the rules that look at a person's words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.items import ResultItem, UserItem
from caal_node.core.tool_spec import Example
from caal_node.models.backends.base import BackendRequest, GeneratedToken
from caal_node.models.question import Question
from caal_node.models.retry_policy import TruncationDetector, prompt_tokens
from caal_node.models.strategies.call_judge import Evidence, numbers_said
from caal_node.models.strategies.text_protocol import LogprobGate
from caal_node.models.strategies.tool_relevance import ToolRelevance

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "days": {"type": "integer"},
                "date": {"type": "string"},
                "detailed": {"type": "boolean"},
            },
            "required": ["city"],
        },
    },
}
TIMER: Any = {
    "type": "function",
    "function": {
        "name": "set_timer",
        "description": "Start a countdown.",
        "parameters": {
            "type": "object",
            "properties": {"minutes": {"type": "number"}, "label": {"type": "string"}},
            "required": ["minutes"],
        },
    },
}


def judged(words: str, **arguments: Any) -> dict[str, Any]:
    return Evidence([UserItem(words)]).judge(WEATHER, arguments).arguments


def test_an_optional_argument_that_nobody_said_is_dropped() -> None:
    made_up = {"city": "Oslo", "unit": "celsius", "days": 3, "date": "2024-01-01", "detailed": True}
    assert judged("how is the weather in Oslo", **made_up) == {"city": "Oslo"}


def test_what_was_said_is_kept() -> None:
    assert judged("weather in Oslo in celsius", city="Oslo", unit="celsius")["unit"] == "celsius"
    assert judged("the next three days in Oslo", city="Oslo", days=3)["days"] == 3
    assert judged("Oslo tomorrow", city="Oslo", date="2026-03-03")["date"] == "2026-03-03"
    assert judged("detailed weather for Oslo", city="Oslo", detailed=True)["detailed"] is True


def test_the_value_of_an_enum_that_was_said_word_for_word_is_taken() -> None:
    assert judged("Boston in fahrenheit", city="Boston", unit="celsius")["unit"] == "fahrenheit"
    both = judged("is that celsius or fahrenheit", city="Boston", unit="celsius")
    assert both["unit"] == "celsius"


def test_a_required_number_needs_a_number() -> None:
    def unsaid(*items: Any) -> tuple[str, ...]:
        return Evidence(items).judge(TIMER, {"minutes": 5}).unsaid

    assert unsaid(UserItem("set a timer please")) == ("minutes",)
    for words in ("five minutes", "5", "half an hour", "a quarter of an hour", "zehn Minuten"):
        assert unsaid(UserItem(words)) == ()
    assert unsaid(UserItem("as long as it says"), ResultItem("1", "recipe", '{"minutes":12}')) == ()


def test_words_copied_from_an_example_are_no_request() -> None:
    examples = (Example("rain in Bergen", {"city": "Bergen"}),)
    said = Evidence([UserItem("what is the weather like")])
    assert said.judge(WEATHER, {"city": "Bergen"}, examples).unsaid == ("city",)
    said = Evidence([UserItem("and in bergen")])
    assert said.judge(WEATHER, {"city": "Bergen"}, examples).unsaid == ()


def test_a_value_in_other_words_than_the_persons_is_the_models_to_know() -> None:
    assert (
        Evidence([UserItem("the weather in the capital of Norway")])
        .judge(WEATHER, {"city": "Oslo"})
        .unsaid
        == ()
    )


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("set a timer", 0),
        ("an hour", 1),
        ("forty two euros", 1),
        ("from 9 to 5", 2),
        ("add a note", 0),
        ("half an hour", 1),
        ("三分钟", 1),
    ],
)
def test_numbers_are_counted_in_digits_and_words(words: str, count: int) -> None:
    assert numbers_said(words) == count


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.text(max_size=60), st.dictionaries(st.text(max_size=6), _json, max_size=4))
def test_no_words_and_no_arguments_raise_and_nothing_is_added(
    words: str, arguments: dict[str, Any]
) -> None:
    left = Evidence([UserItem(words)]).judge(WEATHER, arguments).arguments
    assert left.keys() <= arguments.keys()
    again = Evidence([UserItem(words)]).judge(WEATHER, left).arguments
    assert again == left


RELEVANCE = ToolRelevance(
    [WEATHER, TIMER], {"set_timer": (Example("wake me in an hour", {"minutes": 60}),)}
)


def test_the_tool_whose_words_are_said_fits_best() -> None:
    weather, timer = RELEVANCE.scores("what's the weather").values()
    assert weather > timer == 0
    weather, timer = RELEVANCE.scores("wake me up").values()
    assert timer > weather == 0
    assert set(RELEVANCE.scores("hello there").values()) == {0}


@given(st.text(max_size=80))
def test_any_words_have_scores(words: str) -> None:
    assert set(RELEVANCE.scores(words)) == {"get_weather", "set_timer"}


def _margin(*tokens: GeneratedToken) -> float | None:
    gate = LogprobGate()
    gate.see(tokens)
    return gate.margin


def test_the_margin_is_read_at_the_key_however_it_is_cut_into_tokens() -> None:
    whole = (GeneratedToken('{"', ()), GeneratedToken("calls", (("calls", -0.2), ("say", -2.2))))
    assert _margin(*whole) == pytest.approx(2.0)
    split = (
        GeneratedToken("{", ()),
        GeneratedToken('"', ()),
        GeneratedToken("c", (("c", -0.5), ("calls", -1.5), ("say", -3.0))),
    )
    assert _margin(*split) == pytest.approx(2.813, abs=0.01)
    assert _margin(GeneratedToken('{"say', (('{"say', -0.1), ('{"calls', -4.1)))) == pytest.approx(
        -4.0
    )


def test_a_key_below_the_candidates_counts_as_the_least_likely() -> None:
    top = (("calls", -0.01), ("other", -7.0))
    assert _margin(GeneratedToken('{"', ()), GeneratedToken("calls", top)) == pytest.approx(6.99)
    assert _margin(GeneratedToken('{"', ()), GeneratedToken("calls", ())) is None


@given(st.lists(st.tuples(st.text(max_size=4), st.floats(-50, 0)), max_size=4), st.text(max_size=8))
def test_no_tokens_break_the_gate(top: list[tuple[str, float]], text: str) -> None:
    _margin(GeneratedToken(text[:3], ()), GeneratedToken(text[3:], tuple(top)))


def test_the_detector_learns_how_far_its_estimate_is_off() -> None:
    detector = TruncationDetector()
    long = Question((UserItem("word " * 3_000),))
    estimated = prompt_tokens(long, BackendRequest(long.items))
    assert not detector.is_cut(estimated, 3_000, None)
    assert not detector.is_cut(estimated, 2_900, None)
    assert detector.is_cut(estimated, 1_600, None)
    assert detector.room == 1_600


def test_a_short_prompt_is_never_called_cut() -> None:
    assert not TruncationDetector().is_cut(8, 3, None)


@given(st.lists(st.integers(1, 699), min_size=1), st.integers(2_000, 100_000))
def test_counts_that_no_context_could_leave_take_nothing_from_a_conversation(
    counts: list[int], estimated: int
) -> None:
    detector = TruncationDetector()
    for counted in counts:
        assert not detector.is_cut(estimated, counted, 8_192)
        assert detector.room is None


@pytest.mark.parametrize("counted", [700, 1_024, 3_000])
def test_a_server_that_always_reports_the_same_count_is_not_believed_twice(counted: int) -> None:
    detector = TruncationDetector()
    assert detector.is_cut(9_000, counted, None)  # it might have been
    assert not detector.is_cut(min(counted, 1_900), counted, None)
    assert detector.room is None
    assert not detector.is_cut(9_000, counted, None)
