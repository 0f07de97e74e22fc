"""A call in one sentence: its name and its values, whole or with what is left out, and its hash."""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.read_back import (
    COUNTED_MORE,
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


class Mood(Enum):
    CALM = "calm"


RING: Any = {
    "properties": {
        "label": {"type": "string"},
        "loud": {"type": "boolean", "default": False},
        "times": {"type": "integer", "default": 1},
        "mood": {"default": "calm"},
        "until": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "door": {"default": "front"},
    },
    "required": ["label", "door"],
}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"label": "kitchen", "loud": False, "times": 1, "until": None}, "label kitchen"),
        ({"label": "kitchen", "times": 1.0, "mood": Mood.CALM}, "label kitchen"),
        ({"label": "kitchen", "loud": True, "times": 2}, "label kitchen, loud yes, times 2"),
        ({"times": True, "loud": 0}, "times yes, loud 0"),
        ({"door": "front"}, "door front"),
        ({"unknown": None}, "unknown nothing"),
    ],
)
def test_a_default_that_nobody_gave_is_not_said_but_stands_in_the_hash(
    arguments: dict[str, Any], said: str
) -> None:
    bell = ToolSpec("agent", "House", "ring", "ring", "", RING)
    assert read_back(bell, arguments) == f"Shall I ring: {said}?"
    assert said in would_have(bell, arguments)
    shorter = dict(list(arguments.items())[1:])
    assert arguments_hash("ring", arguments) != arguments_hash("ring", shorter)


def test_of_defaults_alone_there_is_nothing_to_say() -> None:
    bell = ToolSpec("agent", "House", "ring", "ring", "", RING)
    assert read_back(bell, {"loud": False, "times": 1}) == "Shall I ring?"


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


def test_of_a_hundred_thousand_values_no_more_are_visited_than_are_counted() -> None:
    visited = 0

    class Row(dict[str, Any]):
        def items(self) -> Any:
            nonlocal visited
            visited += 1
            return super().items()

    rows = [Row(a="x" * 50, b=n) for n in range(50_000)]
    said = read_back(spec(), {"rows": rows, "text": "y" * 500_000})
    assert "and more than 1000 more: rows a, rows b" in said
    assert visited == (MAX_VALUES + COUNTED_MORE) // 2 + 1


@pytest.mark.parametrize(("values", "told"), [(1_000, "and 1000 more"), (1_001, "and more than")])
def test_what_is_left_out_is_counted_to_a_thousand(values: int, told: str) -> None:
    said = read_back(spec(), {"rows": list(range(MAX_VALUES + values))})
    assert told in said
