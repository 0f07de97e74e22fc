"""Which tool a name means."""

from __future__ import annotations

from typing import Any

import pytest

from caal_node.reply_parser import UnknownCall, parse_reply
from caal_node.reply_parser.tool_index import ToolIndex


def tool(name: str, description: str = "", **properties: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": properties},
        },
    }


TOOLS = [
    tool("get_current_time", "Get current time in a specific timezone"),
    tool("files__read_file", "Read a file"),
    tool("files__delete_file", "Delete a file"),
    tool("turn-on-light", "Turn on a light in a room"),
    tool("search", "Search the web"),
]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("get_current_time", "get_current_time"),
        ("GetCurrentTime", "get_current_time"),
        ("get-current-time", "get_current_time"),
        ("functions.get_current_time", "get_current_time"),
        ("functions.get_current_time:0", "get_current_time"),
        ("get_current_time<|channel|>commentary", "get_current_time"),
        ("get_current_time.get_current_time", "get_current_time"),
        ('"get_current_time"', "get_current_time"),
        ("Get current time", "get_current_time"),
        ("Get the current time in a timezone", "get_current_time"),
        ("turn_on_light", "turn-on-light"),
    ],
)
def test_a_name_is_understood_however_it_is_written(written: str, meant: str) -> None:
    found = ToolIndex.from_schemas(TOOLS).find(written)
    assert found is not None
    assert found.name == meant


@pytest.mark.parametrize(
    "written",
    ["", "delete", "file", "get", "launch_rocket", "the", "read and delete a file", "x" * 500],
)
def test_what_is_not_certain_is_no_tool(written: str) -> None:
    assert ToolIndex.from_schemas(TOOLS).find(written) is None


def test_two_tools_that_differ_only_in_spelling_are_told_apart_exactly_or_not_at_all() -> None:
    box = ToolIndex.from_schemas([tool("get_time"), tool("getTime")])
    assert box.find("get_time") is not None
    assert box.find("GET_TIME") is None


def test_an_unknown_name_lists_the_nearest_and_is_not_spoken() -> None:
    reply = parse_reply(
        'One moment. {"name": "read_files", "arguments": {"path": "a"}}\nDone.', TOOLS
    )
    reply = parse_reply('<tool_call>{"name": "web_lookup", "arguments": {}}</tool_call>', TOOLS)
    (problem,) = reply.problems
    assert isinstance(problem, UnknownCall)
    assert problem.name == "web_lookup"
    assert len(problem.nearest) == 5
    assert reply.text == ""
    assert reply.calls == []


def test_the_nearest_name_comes_first() -> None:
    assert ToolIndex.from_schemas(TOOLS).nearest("readfile")[0] == "files__read_file"
    assert ToolIndex.from_schemas(TOOLS).nearest("web_search")[0] == "search"


def test_a_number_for_a_name_means_the_only_tool_that_takes_the_arguments() -> None:
    tools = [tool("a", x={"type": "string"}), tool("b", y={"type": "string"})]
    text = '<|tool_call_begin|>0<|tool_call_argument_begin|>{"y": "1"}<|tool_call_end|>'
    assert [call.name for call in parse_reply(text, tools).calls] == ["b"]


def test_schemas_without_the_outer_layer_and_broken_ones_do_no_harm() -> None:
    box = ToolIndex.from_schemas(
        [{"name": "a"}, {"type": "function", "function": None}, {"function": {"name": 3}}]
    )
    assert [entry.name for entry in box.signatures] == ["a"]


def test_the_index_of_a_table_of_tools_is_made_once() -> None:
    table = tuple(TOOLS)
    index = ToolIndex.from_schemas(table)
    assert ToolIndex.from_schemas(table) is index
    assert ToolIndex.from_schemas(tuple(TOOLS)) is index
    assert ToolIndex.from_schemas(table[1:]).find("get_current_time") is None


def test_a_list_of_tools_may_change() -> None:
    tools = [tool("get_time")]
    assert ToolIndex.from_schemas(tools).find("search") is None
    tools.append(tool("search"))
    assert ToolIndex.from_schemas(tools).find("search") is not None


def test_few_indexes_are_kept() -> None:
    tables = [(tool(f"tool_{number}"),) for number in range(50)]
    first = ToolIndex.from_schemas(tables[0])
    for table in tables[1:]:
        ToolIndex.from_schemas(table)
    assert ToolIndex.from_schemas(tables[0]) is not first
