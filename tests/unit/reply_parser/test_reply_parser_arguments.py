"""Arguments: typed by schema, repaired, encoded twice, spelled by the schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.reply_parser import BrokenCall, parse_reply
from caal_node.reply_parser.arguments import allowed_types, typed

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "set_light",
            "description": "Set a light",
            "parameters": {
                "type": "object",
                "properties": {
                    "room": {"type": "string", "enum": ["Kitchen", "Bedroom"]},
                    "level": {"type": "integer"},
                    "color": {"type": "object"},
                },
                "required": ["room"],
            },
        },
    }
]


def arguments(text: str) -> Any:
    (call,) = parse_reply(text, TOOLS).calls
    return call.arguments


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("5", {"type": "integer"}, 5),
        ("5", {"type": "string"}, "5"),
        ("5.0", {"type": "integer"}, 5),
        ("five", {"type": "integer"}, "five"),
        ("2.5", {"type": "number"}, 2.5),
        ("1e3", {"type": "number"}, 1000.0),
        ("TRUE", {"type": "boolean"}, True),
        ("yes", {"type": "boolean"}, "yes"),
        ("[1, 2]", {"type": "array"}, [1, 2]),
        ("['a', True]", {"type": "array"}, ["a", True]),
        ('{"a": {"b": null}}', {"type": "object"}, {"a": {"b": None}}),
        ("{1, 2}", {"type": "object"}, "{1, 2}"),
        ('[{\\"a\\": 1}]', {"type": "array"}, [{"a": 1}]),
        ("null", {"anyOf": [{"type": "string"}, {"type": "null"}]}, None),
        ("none", {"anyOf": [{"type": "string"}, {"type": "null"}]}, "none"),
        ("7", {"type": ["integer", "null"]}, 7),
        ("7", {"enum": [1, 7]}, 7),
        ("x", {}, "x"),
        ("1" * 500, {"type": "integer"}, "1" * 500),
    ],
)
def test_bare_text_is_typed_by_its_schema(text: str, schema: dict[str, Any], value: Any) -> None:
    assert typed(text, schema) == value
    assert type(typed(text, schema)) is type(value)


def test_a_reference_in_the_schema_is_followed() -> None:
    root = {"$defs": {"n": {"type": "integer"}}}
    assert typed("3", {"$ref": "#/$defs/n"}, root=root) == 3
    assert typed("3", {"$ref": "#/$defs/missing"}, root=root) == "3"


def test_an_enum_is_matched_by_case_and_nothing_else() -> None:
    call = '<tool_call>{"name": "set_light", "arguments": {"room": "%s"}}</tool_call>'
    assert arguments(call % "kitchen") == {"room": "Kitchen"}
    assert arguments(call % "kitchn") == {"room": "kitchn"}


def test_keys_are_spelled_as_the_schema_does() -> None:
    assert arguments('{"name": "set_light", "arguments": {"Room": "Kitchen"}}') == {
        "room": "Kitchen"
    }


def test_defaults_are_left_to_the_tool() -> None:
    assert "level" not in arguments('{"name": "set_light", "arguments": {"room": "Kitchen"}}')


@pytest.mark.parametrize(
    "body",
    [
        '{"name": "set_light", "arguments": {"room": "Kitchen", "level": 5,}}',
        '{"name": "set_light", "arguments": {"room": "Kitchen", "level": 5}',
        "{'name': 'set_light', 'arguments': {'room': 'Kitchen', 'level': 5}}",
        '{"name": "set_light", "arguments": {room: "Kitchen", level: 5}}',
        '{"name": "set_light", "arguments": {"room": "Kitchen" "level": 5}}',
        '{"name": "set_light", "arguments": "{\\"room\\": \\"Kitchen\\", \\"level\\": 5}"}',
        '{{"name": "set_light", "arguments": {"room": "Kitchen", "level": 5}}}',
        '{"name": "set_light", "arguments": {"room": "Kitchen", "level": 5}}}',
    ],
)
def test_broken_json_is_mended_behind_a_marker(body: str) -> None:
    assert arguments(f"<tool_call>{body}</tool_call>") == {"room": "Kitchen", "level": 5}


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "set_light", "arguments": {"room": "Kit',
        '<tool_call>{"name": "set_light", "arguments": {not json}}</tool_call>',
        '<tool_call>{"name": "set_light", "arguments": "loud"}</tool_call>',
        '<tool_call>{"name": "set_light"}</tool_call>',
        "<tool_call>set_light\n<arg_key>room</arg_key>\n<arg_value>Kit",
        "<|tool_call_start|>[set_light(room='Kit",
        '[TOOL_CALLS]set_light[ARGS]{"room": ',
    ],
)
def test_what_cannot_be_trusted_is_reported_and_not_called(text: str) -> None:
    reply = parse_reply(text, TOOLS)
    assert reply.calls == []
    (problem,) = reply.problems
    assert isinstance(problem, BrokenCall)
    assert problem.name == "set_light"
    assert reply.text == ""


def test_a_call_that_swallowed_its_closer_leaves_the_speech_behind_it() -> None:
    reply = parse_reply(
        '<tool_call>{"name": "set_light", "arguments": {"room": "Kitchen}}</tool_call>Done.', TOOLS
    )
    assert reply.text == "Done."
    assert [call.arguments for call in reply.calls] == [{"room": "Kitchen"}]


def test_a_call_begun_twice_is_made_once() -> None:
    once = '<tool_call>set_light\n{"room":"Kitchen"}'
    reply = parse_reply(f"{once}\n{once}</tool_call>", TOOLS)
    assert len(reply.calls) == 1


_LEVEL = '{"name": "set_light", "arguments": {"room": "Kitchen", "level": %s}}'
NUMBERS = [
    "1*.5",
    "1:30",
    "5 to 10",
    "5 or 6",
    "5 minutes",
    "5%",
    "2**3",
    "2*60*x",
    "5 - 3",
    "2 *\n60",
]


@pytest.mark.parametrize("written", NUMBERS)
def test_a_number_that_goes_on_as_text_is_not_cut_short(written: str) -> None:
    for text in (
        f"<tool_call>{_LEVEL % written}</tool_call>",
        _LEVEL % written,
        f'[TOOL_CALLS]set_light[ARGS]{{"room": "Kitchen", "level": {written}}}',
        f'set_light {{"level": {written}}}',
    ):
        reply = parse_reply(text, TOOLS)
        assert reply.calls == []
        assert [type(problem) for problem in reply.problems] == [BrokenCall]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *(("2*60", 120), ("60 * 60 * 24", 86400), ("1*60 + 30", 90), ("2*1.5", 3)),
        *(("5 // half", 5), ("5 # half", 5), ("05", 5), ("5;", 5), ("5)", 5), ("1e1", 10.0)),
        *(("10-5", "10-5"), ("2026-11-22", "2026-11-22"), ("1,000", "1,000"), ("5min", "5min")),
    ],
)
def test_what_is_no_plain_number_is_worked_out_or_left_as_it_was_written(
    written: str, value: Any
) -> None:
    assert arguments(f"<tool_call>{_LEVEL % written}</tool_call>")["level"] == value


def test_a_sum_is_worked_out_where_a_number_is_wanted_and_nowhere_else() -> None:
    assert arguments("[set_light(room='2*60', level=2*60)]") == {"room": "2*60", "level": 120}
    level = _LEVEL % '2*60, "color": {}'
    assert arguments(f"<tool_call>{level}</tool_call>")["level"] == 120
    assert typed("2*60", {"type": ["integer", "string"]}) == "2*60"
    assert typed("9" * 400 + "*9", {"type": "integer"}) == "9" * 400 + "*9"


def test_numbers_in_a_text_are_no_business_of_a_number() -> None:
    text = '{"name": "set_light", "arguments": {"room": "at: 5 to 10, [1:30", "level": 5,}}'
    assert arguments(f"<tool_call>{text}</tool_call>") == {
        "room": "at: 5 to 10, [1:30",
        "level": 5,
    }


def test_a_value_without_a_name_overwrites_none_that_was_named() -> None:
    reply = parse_reply("<tool_call>set_light(room='Kitchen', level=1,000)</tool_call>", TOOLS)
    assert reply.calls == []
    assert [type(problem) for problem in reply.problems] == [BrokenCall]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("my key:hello,other key:7", {"my key": "hello", "other key": "7"}),
        ("room:Kitchen, at time 10:30,level:5", {"room": "Kitchen, at time 10:30", "level": 5}),
    ],
)
def test_a_gemma_key_of_several_words_begins_right_behind_its_comma(
    written: str, read: Any
) -> None:
    given = arguments(f"<|tool_call>call:set_light{{{written}}}<tool_call|>")
    assert {key: str(value) for key, value in given.items()} == {
        key: str(value) for key, value in read.items()
    }


_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}


@pytest.mark.parametrize(
    ("schema", "given", "fitted"),
    [
        (_TEXT, 5, "5"),
        (_TEXT, 2.5, "2.5"),
        (_TEXT, True, True),
        (_TEXT, [5], [5]),
        ({"type": ["string", "null"]}, 5, "5"),
        ({"anyOf": [_TEXT, {"type": "null"}]}, 5, "5"),
        ({"type": ["string", "integer"]}, 5, 5),
        ({"anyOf": [_TEXT, {"type": "number"}]}, 5, 5),
        ({}, 5, 5),
        (_TEXTS, "milk", ["milk"]),
        (_TEXTS, '["milk", "tea"]', ["milk", "tea"]),
        (_TEXTS, "[milk, ", "[milk, "),
        (_TEXTS, [5, "a"], ["5", "a"]),
        ({"anyOf": [_TEXTS, {"type": "null"}]}, "milk", ["milk"]),
        ({"anyOf": [_TEXTS, _TEXT]}, "milk", "milk"),
        ({"type": "array", "items": {"type": "integer"}}, "milk", "milk"),
        ({"type": "array", "items": {"type": "integer"}}, "3", [3]),
        ({"type": "array", "items": {"type": "integer"}}, 3, [3]),
        ({"type": "array", "items": {"type": "integer"}}, 3.5, 3.5),
        ({"type": "array", "items": {"type": "number"}}, 3.5, [3.5]),
        ({"type": ["array", "integer"], "items": {"type": "integer"}}, 3, 3),
        ({"type": "array"}, 3, 3),
        (_TEXTS, 5, ["5"]),
        ({"type": "object", "properties": {"a": _TEXT, "b": _TEXTS}}, {"a": 5, "b": "x", "c": 1},
         {"a": "5", "b": ["x"], "c": 1}),
        ({"$ref": "#/$defs/house"}, {"number": 5}, {"number": "5"}),
    ],
)  # fmt: skip
def test_values_of_another_type_are_converted_where_the_schema_leaves_no_choice(
    schema: dict[str, Any], given: Any, fitted: Any
) -> None:
    house = {"type": "object", "properties": {"number": _TEXT}}
    parameters = {"type": "object", "properties": {"v": schema}, "$defs": {"house": house}}
    tool = {"type": "function", "function": {"name": "put", "parameters": parameters}}
    call = json.dumps({"name": "put", "arguments": {"v": given}})
    (made,) = parse_reply(f"<tool_call>{call}</tool_call>", [tool]).calls
    assert made.arguments == {"v": fitted}
    assert type(made.arguments["v"]) is type(fitted)


def test_a_reference_that_names_itself_in_many_choices_is_followed_once() -> None:
    again = {"$ref": "#/$defs/one"}
    root: Any = {"$defs": {"one": {"anyOf": [*[again] * 40, {"type": "string"}]}}}
    assert allowed_types(again, root) == {"string"}


_WORDS = st.text(max_size=12) | st.sampled_from(["5", "true", "null", '["milk"]', '{"a": 1}', ""])
_LEAVES: list[tuple[dict[str, Any], st.SearchStrategy[Any]]] = [
    (_TEXT, _WORDS),
    ({"type": "integer"}, st.integers(-(2**53), 2**53)),
    ({"type": "number"}, st.floats(allow_nan=False, allow_infinity=False) | st.integers(-99, 99)),
    ({"type": "boolean"}, st.booleans()),
    ({"type": ["string", "null"]}, _WORDS | st.none()),
    ({"anyOf": [_TEXT, {"type": "number"}]}, _WORDS | st.integers(-99, 99)),
    ({"enum": ["On", "on", "5", 5]}, st.sampled_from(["On", "on", "5", 5])),
    ({}, _WORDS | st.integers(-99, 99) | st.booleans() | st.lists(_WORDS, max_size=3)),
]
_Pair = tuple[dict[str, Any], st.SearchStrategy[Any]]


def _list_of(pair: _Pair) -> _Pair:
    return {"type": "array", "items": pair[0]}, st.lists(pair[1], max_size=3)


def _object_of(pairs: list[_Pair]) -> _Pair:
    named = {f"p{number}": pair for number, pair in enumerate(pairs)}
    schema = {"type": "object", "properties": {name: pair[0] for name, pair in named.items()}}
    return schema, st.fixed_dictionaries({}, optional={name: p[1] for name, p in named.items()})


_PAIRS: st.SearchStrategy[_Pair] = st.recursive(
    st.sampled_from(_LEAVES),
    lambda inner: inner.map(_list_of) | st.lists(inner, min_size=1, max_size=3).map(_object_of),
    max_leaves=5,
)


@given(st.data())
def test_arguments_that_fit_their_schema_are_never_changed(data: st.DataObject) -> None:
    parameters, values = _object_of(data.draw(st.lists(_PAIRS, min_size=1, max_size=4)))
    wanted = data.draw(values)
    tool = {"type": "function", "function": {"name": "put", "parameters": parameters}}
    call = json.dumps({"name": "put", "arguments": wanted})
    (made,) = parse_reply(f"<tool_call>{call}</tool_call>", [tool]).calls
    assert json.dumps(made.arguments) == json.dumps(wanted)
