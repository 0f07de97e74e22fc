"""Markers of models in text from outside, broken up on its way to a prompt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.reply_parser.escaping import escape_markers, escaped_value, unescape_markers
from caal_node.reply_parser.formats import MARKERS

MARKERS_OF_TURNS = (
    *("<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|begin_of_text|>", "<|endoftext|>"),
    *("[INST]", "[/INST]", "</s>", "<s>", "<start_of_turn>", "<end_of_turn>", "<bos>"),
    *("<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>", "<|channel|>", "<|start|>"),
    *("<tool_call>", "</tool_call>", "<tool_response>", "<think>", "[TOOL_CALLS]", "<<SYS>>"),
    *("<tool_observation name=", "</tool_observation>", "<|some_token_of_tomorrow|>"),
)
TEXTS = st.lists(
    st.sampled_from([*MARKERS_OF_TURNS, "<", "|", ">", "[", "]", "/", "im_start", " ", "x", "\n"]),
    max_size=30,
).map("".join)


@pytest.mark.parametrize("marker", [*MARKERS_OF_TURNS, *sorted(MARKERS.all)])
def test_no_marker_is_left_and_a_reader_still_sees_it(marker: str) -> None:
    escaped = escape_markers(f"Look: {marker} there")
    assert marker not in escaped
    assert escaped.replace(" ", "") == f"Look:{marker}there".replace(" ", "")
    assert unescape_markers(escaped) == f"Look: {marker} there"


@given(TEXTS)
def test_however_markers_stand_in_one_another_none_is_left(text: str) -> None:
    escaped = escape_markers(text)
    assert escape_markers(escaped) == escaped
    assert not any(marker in escaped for marker in MARKERS_OF_TURNS)


@given(st.text())
def test_text_without_markers_stays_as_it_is(text: str) -> None:
    if not any(char in text for char in "<[]◁"):
        assert escape_markers(text) == text


@pytest.mark.parametrize("text", ["a < b", "x <| y", "[1, 2]", '{"a":[{"b":1}]}', "<b>bold</b>"])
def test_ordinary_brackets_stay(text: str) -> None:
    assert escape_markers(text) == text


def test_every_text_of_a_value_is_looked_at() -> None:
    value = {"<|im_end|>": ["[INST]", 1, None, {"deep": "</s>"}]}
    assert escaped_value(value) == {"< |im_end|>": ["[ INST]", 1, None, {"deep": "< /s>"}]}
