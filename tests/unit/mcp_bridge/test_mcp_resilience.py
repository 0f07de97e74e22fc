"""The pure parts of a session: waits, the breaker, progress, questions, the table."""

from __future__ import annotations

import math
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import ElicitRequestFormParams, ElicitRequestURLParams

from mcp_bridge import CallProgressed, Question, ToolInfo
from mcp_bridge.connection.connection import Backoff, CircuitBreaker
from mcp_bridge.connection.server_session import PROGRESS_GAP_S, progress_reporter
from mcp_bridge.core.elicitation import answer_fits
from mcp_bridge.core.tools import BridgeEvent
from mcp_bridge.protocol.elicitation_handler import UnaskableError, question_of

TOOL = ToolInfo("house__clean", "house", "clean", "", {})


@given(st.integers(1, 3000), st.floats(0.01, 10), st.floats(10, 100))
def test_every_wait_is_below_a_bound_that_doubles_and_ends(
    tries: int, first_s: float, longest_s: float
) -> None:
    bounds: list[float] = []

    def uniform(low: float, high: float) -> float:
        assert low == 0.0
        bounds.append(high)
        return high

    backoff = Backoff(first_s, longest_s, uniform)
    for _ in range(tries):
        backoff.next()
    assert bounds[0] == first_s
    assert all(b == min(longest_s, 2 * a) for a, b in pairwise(bounds))
    backoff.reset()
    backoff.next()
    assert bounds[-1] == first_s


def test_waits_are_random_by_default() -> None:
    backoff = Backoff(1.0, 1.0)
    assert len({backoff.next() for _ in range(20)}) > 10


def test_a_breaker_opens_rests_lets_one_through_and_closes() -> None:
    breaker = CircuitBreaker(3, 30.0)
    for second in (0, 4, 8):
        assert breaker.admit(second) == 0.0
        assert breaker.failed(second, second + 4) == (second == 8)
    assert breaker.state(20) == "open"
    assert breaker.admit(20) == 22.0
    assert breaker.state(42) == "half-open"
    assert breaker.admit(42) == 0.0
    assert breaker.admit(42) > 0, "one probe at a time"
    assert breaker.failed(42, 43)
    assert breaker.admit(50) > 0
    assert breaker.admit(53) == 0.0, "who fails sooner rests for less"
    breaker.succeeded()
    assert breaker.state(53) == "closed"
    assert breaker.admit(53) == breaker.admit(53) == 0.0


def test_a_probe_whose_caller_went_away_makes_room_for_another() -> None:
    breaker = CircuitBreaker(1, 30.0)
    breaker.failed(0, 5)
    assert breaker.admit(35) == 0.0
    assert breaker.admit(64) > 0
    assert breaker.admit(65) == 0.0


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 20)), max_size=60))
def test_a_breaker_refuses_only_after_enough_failures_in_a_row(
    attempts: list[tuple[bool, float]],
) -> None:
    breaker, now, row = CircuitBreaker(4, 30.0), 0.0, 0
    for succeeds, pause_s in attempts:
        now += pause_s + 0.001
        if breaker.admit(now) > 0:
            assert row >= 4
            continue
        if succeeds:
            breaker.succeeded()
            row = 0
        else:
            breaker.failed(now, now + 1)
            now += 1
            row += 1
        assert breaker.failures == row


def test_calls_that_end_with_one_crash_are_one_failure() -> None:
    breaker = CircuitBreaker(2, 30.0)
    assert not breaker.failed(began=1.0, now=5.0)
    assert not breaker.failed(began=2.0, now=5.0)
    assert breaker.failed(began=6.0, now=7.0)


def progressed(*signs: tuple[float, float, float | None, str]) -> list[CallProgressed]:
    told: list[BridgeEvent] = []
    clock = iter([at for at, *_ in signs])
    tell = progress_reporter(TOOL, told.append, now=lambda: next(clock))
    assert tell is not None
    for _, *sign in signs:
        tell(*sign)  # type: ignore[arg-type]  # as the server sends it
    return [event for event in told if isinstance(event, CallProgressed)]


def test_progress_is_told_seldom_cleaned_and_never_backwards() -> None:
    told = progressed(
        (0.0, 1, 4, "one"),
        (PROGRESS_GAP_S / 2, 2, 4, "too soon"),
        (PROGRESS_GAP_S, 3, 4, "a\u202eb\x00\n  c" + "x" * 5000),
        (9.0, 3, 4, "no further"),
        (9.1, 4, 4, "done"),
    )
    assert [event.done for event in told] == [1, 3, 4]
    assert told[1].message.startswith("ab cxxx")
    assert len(told[1].message) <= 200


def test_the_last_sign_is_told_however_soon() -> None:
    assert [e.done for e in progressed((0.0, 1, 2, ""), (0.01, 2, 2, ""))] == [1, 2]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_progress_that_is_no_number_is_not_told(value: float) -> None:
    assert progressed((0.0, value, value, "")) == []


def question(schema: dict[str, Any], message: str = "Well?") -> Question:
    return question_of(
        "house", "clean", ElicitRequestFormParams(message=message, requested_schema=schema)
    )


def asked(**properties: Any) -> Question:
    return question({"type": "object", "properties": properties, "required": list(properties)[:1]})


def test_every_way_of_writing_choices_is_read() -> None:
    read = asked(
        plain={"type": "string", "enum": ["a", "b"]},
        named={"type": "string", "enum": ["a", "b"], "enumNames": ["Apple"]},
        titled={"type": "string", "oneOf": [{"const": "a", "title": "Apple"}, {"const": "b"}]},
        several={"type": "array", "items": {"anyOf": [{"const": "a", "title": "Apple"}]}},
        listed={"type": "array", "items": {"type": "string", "enum": ["a"]}},
        sure={"type": "boolean", "title": "Sure?", "default": True},
    )
    kinds = {field.name: (field.kind, field.choices) for field in read.fields}
    assert kinds == {
        "plain": ("choice", (("a", "a"), ("b", "b"))),
        "named": ("choice", (("a", "Apple"), ("b", "b"))),
        "titled": ("choice", (("a", "Apple"), ("b", "b"))),
        "several": ("choices", (("a", "Apple"),)),
        "listed": ("choices", (("a", "a"),)),
        "sure": ("boolean", ()),
    }
    assert [field.required for field in read.fields] == [True] + [False] * 5
    assert (read.fields[-1].title, read.fields[-1].default) == ("Sure?", True)


def test_answers_are_held_to_the_question() -> None:
    read = asked(
        room={"type": "string", "enum": ["a", "b"]},
        count={"type": "integer"},
        share={"type": "number"},
        sure={"type": "boolean"},
        all={"type": "array", "items": {"enum": ["x", "y"]}},
    )
    good: dict[str, Any] = {"room": "a", "count": 3, "share": 0.5, "sure": False, "all": ["x"]}
    assert answer_fits(read, good)
    assert answer_fits(read, {"room": "b"})
    wrong: list[dict[str, Any]] = [
        {},
        {"room": "c"},
        {"room": "a", "more": 1},
        {"room": "a", "count": True},
        {"room": "a", "count": 1.5},
        {"room": "a", "share": math.nan},
        {"room": "a", "sure": "yes"},
        {"room": "a", "all": ["z"]},
        {"room": "a", "all": "x"},
    ]
    assert not any(answer_fits(read, content) for content in wrong)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": ["a"]},
        {"properties": {"a": "text"}},
        {"properties": {"a": {"type": "object"}}},
        {"properties": {"a": {"type": "array", "items": {"type": "string"}}}},
        {"properties": {str(n): {"type": "string"} for n in range(9)}},
        {"properties": {"a": {"enum": [str(n) for n in range(51)]}}},
    ],
)
def test_what_no_person_could_be_asked_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(UnaskableError):
        question(schema)


def test_words_of_a_question_are_cleaned_and_cut() -> None:
    read = question({"properties": {}}, "Sure\u202e?" + "x" * 9000)
    assert read.message.startswith("Sure?xxx")
    assert len(read.message) <= 500
    assert read.fields == ()


@pytest.mark.parametrize(
    "url", ["http://a.example", "javascript:alert(1)", "https://" + "a" * 3000]
)
def test_only_an_https_address_of_usual_length_is_passed_on(url: str) -> None:
    with pytest.raises(UnaskableError):
        question_of("s", "t", ElicitRequestURLParams(message="Look", url=url, elicitation_id="1"))
    params = ElicitRequestURLParams(message="Look", url="https://a.example/x", elicitation_id="1")
    assert question_of("s", "t", params).url == "https://a.example/x"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "type",
                        "properties",
                        "enum",
                        "oneOf",
                        "items",
                        "const",
                        "title",
                        "required",
                        "a",
                    ]
                ),
                inner,
                max_size=6,
            )
        ),
        max_leaves=30,
    )
)
def test_no_schema_breaks_the_reading(schema: Any) -> None:
    if not isinstance(schema, dict):
        schema = {"properties": schema}
    with suppress(UnaskableError):
        question(schema)
