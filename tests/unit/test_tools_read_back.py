"""A call in one sentence: its name and its values, whole or with what is left out, and its hash."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.read_back import (
    MAX_VALUES,
    NAME_CHARS,
    VALUE_CHARS,
    arguments_hash,
    read_back,
    would_have,
)

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
ARGUMENTS = st.dictionaries(st.text(), VALUES, max_size=10)


def spec(name: str = "unlock_door", tier: Any = "n8n", source: str = "n8n") -> ToolSpec:
    return ToolSpec(tier, source, name, name, "", {})


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        (spec(), {"door": "front"}, "Shall I unlock door: front?"),
        (spec(), {"which": "front"}, "Shall I unlock door: which front?"),
        (spec("unlockDoor", "mcp", "home"), {}, "Shall I use home to unlock door?"),
        (spec("wipe"), {}, "Shall I wipe?"),
        (spec("HTTPRequest"), {"n": 5}, "Shall I http request: n 5?"),
        (spec("pay"), {"sum": 12.0, "now": True}, "Shall I pay: sum 12, now yes?"),
        (
            spec("set"),
            {"a": None, "b": "", "c": []},
            "Shall I set: a nothing, b nothing, c nothing?",
        ),
        (spec("mail"), {"to": ["Ann", "Bo"]}, "Shall I mail: to Ann, to Bo?"),
        (spec("go"), {"to": {"city": "Rome"}}, "Shall I go: to city Rome?"),
        (spec("go"), {"to": "x {name} {tool}"}, "Shall I go: to x {name} {tool}?"),
    ],
)
def test_name_and_values_become_one_plain_sentence(
    tool: ToolSpec, arguments: dict[str, Any], sentence: str
) -> None:
    assert read_back(tool, arguments) == sentence


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        (spec(), {"door": "front"}, "I would have used unlock door: front."),
        (spec("wipe"), {}, "I would have used wipe."),
        (spec("unlock", "mcp", "home"), {}, "I would have used home to unlock."),
        (spec("go", "mcp", "car"), {"to": "{tool}"}, "I would have used car to go: to {tool}."),
    ],
)
def test_a_dry_run_is_told_in_the_same_words(
    tool: ToolSpec, arguments: dict[str, Any], sentence: str
) -> None:
    assert would_have(tool, arguments) == sentence


def test_what_is_left_out_is_counted_and_named() -> None:
    many = {f"key{n}": n for n in range(9)}
    assert read_back(spec("do"), many).endswith("key 5 5, and 3 more: key 6, key 7, key 8?")
    long = read_back(spec("say"), {"text": "word " * 100})
    assert re.search(r" and 40\d more characters\?$", long)


def test_a_value_cannot_end_the_sentence_or_hide_in_it() -> None:
    said = read_back(spec(), {"door": "front?\nNever mind. Do you like\u202e tea?", "x": "a.txt"})
    assert said == "Shall I unlock door: front, Never mind, Do you like tea, x a.txt?"


def test_secrets_are_not_read_out() -> None:
    def redact(text: str) -> str:
        return text.replace("hunter2", "***")

    assert read_back(spec(), {"code": "hunter2"}, redact) == "Shall I unlock door: code a secret?"
    assert "hunter" not in read_back(spec(), {"code": "x" * (VALUE_CHARS - 3) + "hunter2"}, redact)


@given(ARGUMENTS, st.text(min_size=1))
def test_whatever_a_call_holds_is_one_short_sentence(arguments: dict[str, Any], name: str) -> None:
    said = read_back(spec(name), arguments)
    assert said.startswith("Shall I ")
    assert said.endswith("?")
    assert not re.search(r"[.!?]\s", said)
    assert len(said) < (MAX_VALUES + 3) * (VALUE_CHARS + 2 * NAME_CHARS)
    assert "\n" not in said


@given(ARGUMENTS, ARGUMENTS)
def test_the_hash_is_the_same_for_the_same_call_alone(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    again = dict(reversed(json.loads(json.dumps(first)).items()))
    assert arguments_hash("tool", first) == arguments_hash("tool", again)
    assert arguments_hash("tool", first) != arguments_hash("other", first)
    if json.dumps(first, sort_keys=True) != json.dumps(second, sort_keys=True):
        assert arguments_hash("tool", first) != arguments_hash("tool", second)


def test_large_arguments_are_read_back_between_two_audio_frames() -> None:
    large = {"rows": [{"a": "x" * 50, "b": n} for n in range(5_000)], "text": "y" * 500_000}
    began = time.thread_time()
    read_back(spec(), large)
    assert time.thread_time() - began < 0.02
