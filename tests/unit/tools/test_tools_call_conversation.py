"""What a person says to a question, as the value that was asked for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.tools.remote_calls import field_value, is_cancellation
from mcp_bridge import Field
from mcp_bridge.core.elicitation import Kind

ROOMS = (("k", "the kitchen"), ("b", "bath"), ("bb", "big bath"))


def field(kind: Kind) -> Field:
    return Field("x", kind, "X", "", required=True, choices=ROOMS if "choice" in kind else ())


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("Yes, please.", True),
        ("Sure", True),
        ("No.", False),
        ("Don’t!", False),
        ("Yes... no.", False),
        ("Perhaps.", None),
        ("", None),
        ("I know", None),
        ("It's on your right.", None),
        ("please", None),
        ("Yes, we are watching the match.", None),
        ("Yes, hot.", True),
    ],
)
def test_yes_and_no_are_told_apart_and_doubt_is_neither(said: str, means: bool | None) -> None:
    assert field_value(field("boolean"), said, "Should it be hot?") is means


@pytest.mark.parametrize(
    ("kind", "said", "means"),
    [
        ("text", " the red one ", "the red one"),
        ("integer", "make it 21, please", 21),
        ("integer", "21.5", None),
        ("integer", "2 or 3", None),
        ("number", "minus -3,5 degrees", -3.5),
        ("boolean", "no", False),
        ("choice", "The kitchen, I think.", "k"),
        ("choice", "kitchen or bath", "b"),
        ("choice", "the kitchen and the bath", None),
        ("choice", "the garage", None),
        ("choices", "the kitchen and the bath", ["k", "b"]),
        ("choices", "neither", None),
    ],
)
def test_words_become_the_kind_that_was_asked_for(kind: Kind, said: str, means: Any) -> None:
    assert field_value(field(kind), said) == means


@pytest.mark.parametrize("said", ["Never mind.", "cancel that", "Stop!", "forget it"])
def test_a_question_can_be_left(said: str) -> None:
    assert is_cancellation(said)
    assert not is_cancellation(f"{said} what I said, it is the kitchen")


@given(st.sampled_from(["text", "integer", "number", "boolean", "choice", "choices"]), st.text())
def test_no_words_break_the_reading(kind: Kind, said: str) -> None:
    field_value(field(kind), said)
    is_cancellation(said)
