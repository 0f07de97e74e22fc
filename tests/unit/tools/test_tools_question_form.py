"""What a form shows of a server's question, and which answers of it count."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.events import QuestionAsked, QuestionField, from_json, to_json
from caal_node.redaction.outgoing import OutgoingRedaction
from caal_node.redaction.settings import RedactionSettings
from caal_node.tools.front_end_answers import form_answer, form_fields
from caal_node.tools.spoken_question import MAX_READ_CHARS
from mcp_bridge import Accepted, Declined, Field, Question
from mcp_bridge.core.elicitation import answer_fits

ROOMS = (("k", "the kitchen"), ("b", "bath"))
FIELDS = (
    Field("room", "choice", "Room", "", required=True, choices=ROOMS),
    Field("also", "choices", "Also", "", required=False, default=["b"], choices=ROOMS),
    Field("passes", "integer", "Passes", "How often", required=True, default=2),
    Field("power", "number", "Power", "", required=False),
    Field("wipe", "boolean", "Wipe", "", required=False),
    Field("note", "text", "Note", "", required=False),
)
QUESTION = Question("home", "clean", "How?", FIELDS)


def test_a_form_shows_the_words_of_choices_and_their_places_for_defaults() -> None:
    room, also, passes, *_ = form_fields(QUESTION)
    words = ("the kitchen", "bath")
    assert room == QuestionField("room", "choice", "Room", "", required=True, choices=words)
    assert (also.default, passes.default) == ((1,), 2)


@pytest.mark.parametrize(
    ("kind", "default"),
    [("choice", "garage"), ("choice", ["k"]), ("choices", "k"), ("integer", "2"), ("text", 7)],
)
def test_a_default_that_does_not_fit_its_field_is_none(kind: Any, default: Any) -> None:
    choices = ROOMS if "choice" in kind else ()
    field = Field("x", kind, "X", "", required=True, default=default, choices=choices)
    question = Question("home", "clean", "How?", (field,))
    assert form_fields(question)[0].default is None
    assert form_answer(question, {"content": {}}) is None


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ({"room": 1}, {"room": "b", "passes": 2}),
        ({"room": 0, "passes": 3, "also": [1, 0]}, {"room": "k", "passes": 3, "also": ["b", "k"]}),
        (
            {"room": 0, "power": 0.5, "wipe": False, "note": " slowly "},
            {"room": "k", "passes": 2, "power": 0.5, "wipe": False, "note": "slowly"},
        ),
    ],
)
def test_a_form_gives_values_of_the_kinds_that_were_asked_for(content: Any, values: Any) -> None:
    assert form_answer(QUESTION, {"content": content}) == Accepted(values)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"room": 2},
        {"room": -1},
        {"room": True},
        {"room": "k"},
        {"room": [0]},
        {"room": 0, "also": []},
        {"room": 0, "also": [0, 0]},
        {"room": 0, "also": 1},
        {"room": 0, "also": [[0]]},
        {"room": 0, "passes": 2.5},
        {"room": 0, "passes": True},
        {"room": 0, "passes": "2"},
        {"room": 0, "power": float("inf")},
        {"room": 0, "power": float("nan")},
        {"room": 0, "wipe": "yes"},
        {"room": 0, "wipe": 1},
        {"room": 0, "note": "  "},
        {"room": 0, "note": "x" * (MAX_READ_CHARS + 1)},
        {"room": 0, "other": 1},
        "room",
        [0],
    ],
)
def test_what_does_not_fit_the_fields_is_no_answer(content: Any) -> None:
    assert form_answer(QUESTION, {"content": content}) is None


def test_a_question_without_fields_takes_a_yes_or_a_refusal() -> None:
    question = Question("home", "clean", "Go on?")
    assert form_answer(question, {"content": {}}) == Accepted({})
    assert form_answer(question, {"content": None}) == Declined()
    assert form_answer(question, {}) is None
    assert form_answer(QUESTION, {"content": None}) == Declined()


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=4
)


@given(st.dictionaries(st.sampled_from([field.name for field in FIELDS]), _VALUES))
def test_whatever_a_form_sends_the_server_gets_what_it_asked_for(content: Any) -> None:
    answer = form_answer(QUESTION, {"content": content})
    if answer is not None:
        assert isinstance(answer, Accepted)
        assert answer_fits(QUESTION, answer.content)


def test_a_question_s_event_is_written_and_read() -> None:
    event = QuestionAsked("c1", "clean", "q1", "How?", form_fields(QUESTION))
    assert from_json(to_json(event)) == event


def test_secrets_in_a_question_are_redacted_and_its_choices_stay_in_their_places() -> None:
    choices = (("a", "key sk-abcdefghijklmnopqrstuvwx1234"), ("b", "bath"))
    field = Field("room", "choice", "Room", "", required=True, choices=choices)
    question = Question("home", "clean", "How?", (field,))
    event = QuestionAsked("c1", "clean", "q1", "How?", form_fields(question))
    shown = OutgoingRedaction(RedactionSettings()).record(event).fields[0]
    assert "sk-abc" not in str(shown)
    assert shown.choices[1] == "bath"
    assert form_answer(question, {"content": {"room": 0}}) == Accepted({"room": "a"})
