"""What a model is told of arguments that do not fit, and which arguments are let through."""

from __future__ import annotations

from typing import Any

import pytest

from caal_node.core.errors import InvalidArguments
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.argument_check import FAULT_CHARS, check_arguments, fits
from caal_node.tools.table import ToolEntry


def tool(**schema: Any) -> ToolEntry:
    spec = ToolSpec("mcp", "files", "find", "find", "Finds.", {"type": "object", **schema})
    return ToolEntry("files__find", spec, {})


def told(entry: ToolEntry, arguments: dict[str, Any]) -> str:
    with pytest.raises(InvalidArguments) as raised:
        check_arguments(entry, arguments)
    return str(raised.value)


def test_the_first_faults_are_named_with_their_places() -> None:
    entry = tool(properties={name: {"type": "integer"} for name in "dcba"}, required=["day"])
    assert told(entry, dict.fromkeys("abcd", "x")) == (
        "files__find was not called: 'day' is a required property; "
        "a: 'x' is not of type 'integer'; b: 'x' is not of type 'integer'"
    )


def test_a_fault_is_short_however_long_the_schema_is() -> None:
    entry = tool(properties={"q": {"enum": [f"option {n}" for n in range(2_000)]}})
    beside = len("files__find was not called: q: ")
    assert len(told(entry, {"q": "x" * 9_000})) == beside + FAULT_CHARS


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"q": {"pattern": "^(?=x)"}}},
        {"allOf": [{"$ref": "#"}]},
        {"$schema": "http://json-schema.org/draft-07/schema#", "allOf": [{"$ref": "#"}] * 2},
        {"type": "no such type", "required": 5},
    ],
)
def test_what_cannot_be_checked_is_left_to_the_tools_server(schema: dict[str, Any]) -> None:
    check_arguments(tool(**schema), {"q": "a" * 60 + "!"})
    assert fits(schema, {"q": "a"})


def test_a_pattern_that_others_choke_on_is_checked() -> None:
    schema = {"properties": {"q": {"pattern": "^(a+)+$"}}}
    assert fits(schema, {"q": "a" * 60})
    assert not fits(schema, {"q": "a" * 60 + "!"})
