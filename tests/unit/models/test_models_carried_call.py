"""Calls that the one stable tool carries: whose they are, however a model writes them."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import SystemItem, ToolsItem, UserItem
from caal_node.models.backends.base import NativeCall, TextChunk
from caal_node.models.question import Question
from caal_node.models.reply_limits import ARGUMENTS_CHARS_MAX
from caal_node.models.strategies import NativeStrategy
from caal_node.models.strategies.carried_call import CARRIER_SCHEMA, CarriedCalls
from caal_node.models.strategies.prompt import CARRIER
from caal_node.reply_parser import (
    BrokenCall,
    Event,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    UnknownCall,
)
from tests.stand_ins.context_strategies import tried


def tool(tool_name: str, *required: str, **properties: Any) -> Any:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    function = {"name": tool_name, "description": "", "parameters": parameters}
    return {"type": "function", "function": function}


TEXT: Final = {"type": "string"}
SEARCH: Final = tool("mcp_discover", "patterns", patterns={"type": "array"})
LIGHT: Final = tool(
    "set_light", "room", room=TEXT, on={"type": "boolean"}, level={"type": "integer"}
)
CONTACT: Final = tool("add_contact", "name", name=TEXT, input=TEXT, arguments=TEXT)
RUN: Final = tool("run", "arguments", arguments={"type": "object"})
TOOLS: Final = (SEARCH, LIGHT, CONTACT, RUN)
ASKED: Final = Question(
    (SystemItem("s"), ToolsItem(TOOLS[1:], {}, "t"), UserItem("the lamp", "u")),
    PromptTools(TOOLS),
    PromptTools((SEARCH,)),
    judges_calls=False,
)


def read(arguments: str, name: str = CARRIER) -> list[Event]:
    """The events of a structured call."""
    reader = NativeStrategy().reader(ASKED)
    return [*reader.feed(NativeCall("id", name, arguments)), *reader.finish()]


def read_text(text: str) -> list[Event]:
    reader = NativeStrategy().reader(ASKED)
    return [*reader.feed(TextChunk(text)), *reader.finish()]


def calls(events: list[Event]) -> list[tuple[str, dict[str, Any]]]:
    return [(e.name, e.arguments) for e in events if isinstance(e, ToolCallEnd)]


KITCHEN: Final = {"room": "kitchen", "on": True}


@pytest.mark.parametrize(
    "written",
    [
        {"name": "set_light", "arguments": KITCHEN},
        {"name": "set_light", "arguments": json.dumps(KITCHEN)},
        {"name": "set_light", "arguments": json.dumps(json.dumps(KITCHEN))},
        {"name": "set_light", **KITCHEN},
        {"name": "set_light", "arguments": {"room": "kitchen"}, "on": True},
        {"name": "set_light", "parameters": KITCHEN},
        {"tool": "set_light", "args": KITCHEN},
        {"name": "functions.set_light:0", "arguments": KITCHEN},
        {"name": "setLight", "arguments": {"Room": "kitchen", "on": "true"}},
        {"set_light": KITCHEN},
        {"function": {"name": "set_light", "arguments": KITCHEN}},
        {"arguments": {"name": "set_light", "arguments": KITCHEN}},
        {"name": CARRIER, "arguments": {"name": "set_light", "arguments": KITCHEN}},
    ],
    ids=str,
)
def test_however_it_is_written_it_is_the_told_tools_call(written: Any) -> None:
    assert calls(read(json.dumps(written))) == [("set_light", KITCHEN)]


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ({"name": "add_contact", "arguments": {"name": "Ann"}}, {"name": "Ann"}),
        ({"name": "add_contact", "input": "by hand"}, {"input": "by hand"}),
        (
            {"name": "add_contact", "arguments": "a note", "input": "x"},
            {"arguments": "a note", "input": "x"},
        ),
        ({"name": "run", "arguments": {"arguments": {"a": 1}}}, {"arguments": {"a": 1}}),
    ],
    ids=str,
)
def test_a_tools_own_parameters_may_be_called_as_the_carriers(
    written: Any, arguments: dict[str, Any]
) -> None:
    ((_, found),) = calls(read(json.dumps(written)))
    assert found == arguments


def test_a_direct_call_by_the_told_name_is_understood() -> None:
    assert calls(read(json.dumps(KITCHEN), "set_light")) == [("set_light", KITCHEN)]


def test_a_tool_that_stands_in_front_may_be_carried_too() -> None:
    written = {"name": "mcp_discover", "arguments": {"patterns": ["lamp"]}}
    assert calls(read(json.dumps(written))) == [("mcp_discover", {"patterns": ["lamp"]})]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "use_tool", "arguments": {"name": "set_light", "arguments": %s}}',
        '<tool_call>{"name": "use_tool", "arguments": {"name": "set_light", "arguments": %s}}'
        "</tool_call>",
        '```json\n{"name": "use_tool", "arguments": {"name": "set_light", "arguments": %s}}\n```',
        '[use_tool(name="set_light", arguments=%s)]',
        '{"name": "set_light", "arguments": %s}',
    ],
)
def test_a_call_that_leaks_as_text_is_the_told_tools(text: str) -> None:
    events = read_text(text % '{"room": "kitchen", "level": 5}')
    assert calls(events) == [("set_light", {"room": "kitchen", "level": 5})]
    assert not any(isinstance(event, TextDelta) for event in events)


def test_an_unknown_name_gets_the_nearest_and_never_the_carrier() -> None:
    (event,) = read('{"name": "set_ligth_colour", "arguments": {}}')
    assert isinstance(event, UnknownCall)
    assert event.nearest[0] == "set_light"
    assert CARRIER not in event.nearest
    (event,) = read("{}", "look_something_up")
    assert isinstance(event, UnknownCall)
    assert CARRIER not in event.nearest


def test_a_call_that_breaks_off_is_the_told_tools_too() -> None:
    (event,) = read('{"name": "set_light", "arguments": {"room": "kitch')
    assert isinstance(event, BrokenCall)
    assert event.name == "set_light"


@pytest.mark.parametrize("written", ["", "{}", "[]", "null", '{"arguments": {}}', "what"])
def test_a_call_that_names_no_tool_is_told_so(written: str) -> None:
    (event,) = read(written)
    assert isinstance(event, BrokenCall)
    assert event.name == ""


def test_arguments_without_end_are_not_read() -> None:
    (event,) = read('{"name": "set_light", "room": "' + "x" * ARGUMENTS_CHARS_MAX)
    assert isinstance(event, BrokenCall | UnknownCall)


def test_without_a_head_nothing_is_carried() -> None:
    asked = Question(ASKED.conversation, PromptTools(TOOLS))
    assert NativeStrategy().request(asked).tools == TOOLS
    reader = NativeStrategy().reader(asked)
    (event,) = reader.feed(NativeCall("id", CARRIER, '{"name": "set_light", "arguments": {}}'))
    assert isinstance(event, UnknownCall)


_texts = st.text(max_size=12) | st.sampled_from(
    ["set_light", "run", CARRIER, "name", "arguments", '{"name":"run"}', "<tool_call>", "{", "[1"]
)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "tool", "function", "arguments", "input", "room"]) | _texts,
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
_written = (
    _values.map(json.dumps)
    | _values.map(lambda value: json.dumps(json.dumps(value)))
    | st.tuples(_values.map(json.dumps), st.integers(0, 60)).map(lambda both: both[0][: both[1]])
    | _texts
)


def _is_nobodys(events: list[Event]) -> None:
    for event in events:
        assert not isinstance(event, TextDelta)
        if isinstance(event, ToolCallStart | ToolCallEnd | BrokenCall | UnknownCall):
            assert event.name != CARRIER


@tried(400)
@given(_written)
def test_whatever_is_carried_nothing_is_raised_or_spoken(arguments: str) -> None:
    _is_nobodys(read(arguments))


@tried(200)
@given(st.dictionaries(_texts, _values, max_size=4))
def test_of_whatever_the_parser_has_read_nothing_is_the_carriers(given_: dict[str, Any]) -> None:
    carried = CarriedCalls(TOOLS)
    start, end = ToolCallStart("1", CARRIER), ToolCallEnd("1", CARRIER, given_)
    events = carried.unwrapped([start, end])
    _is_nobodys(events)
    assert len(events) == 1


def test_the_carrier_is_described_without_any_tools_name() -> None:
    assert not any(each["function"]["name"] in json.dumps(CARRIER_SCHEMA) for each in TOOLS[:3])
