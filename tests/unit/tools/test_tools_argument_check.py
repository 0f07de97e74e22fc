"""What a model is told of arguments that do not fit, and which arguments are let through.

An argument outside of its enum or range reaches a tool of no tier, and the model is asked again.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import pytest
from livekit.agents import function_tool
from pydantic import Field

from caal_node.agent import CaalAgent
from caal_node.core.errors import InvalidArguments
from caal_node.core.tool_spec import ToolSpec
from caal_node.testing import (
    AgentConversation,
    ScriptedCall,
    ScriptedModel,
    ScriptedToolSource,
    plain_settings,
)
from caal_node.tools.argument_check import FAULT_CHARS, check_arguments, check_choices, fits
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


def test_the_values_of_an_enum_that_may_be_null_are_named() -> None:
    entry = tool(properties={"mode": {"anyOf": [{"enum": ["heat", "cool"]}, {"type": "null"}]}})
    assert "'warm' is not one of ['heat', 'cool']" in told(entry, {"mode": "warm"})
    check_arguments(entry, {"mode": None})


def test_twenty_rooms_are_named() -> None:
    rooms = [f"room {number}" for number in range(20)]
    said = told(tool(properties={"room": {"enum": rooms}}), {"room": "attic"})
    assert all(f"'{room}'" in said for room in rooms)


def test_an_enum_holds_whatever_the_rest_of_a_schema_asks_for() -> None:
    entry = tool(allOf=[{"$ref": "#"}] * 2, properties={"state": {"enum": ["on", "off"]}})
    assert "is not one of ['on', 'off']" in told(entry, {"state": "dim"})


def test_of_made_values_enums_and_bounds_alone_are_checked_and_defaults_are_their_authors() -> None:
    entry = tool(
        properties={
            "room": {"enum": ["kitchen"], "default": ""},
            "level": {"type": "string", "maximum": 100},
            "when": {"enum": ["2026-01-01"]},
        }
    )
    check_choices(entry, {"room": "", "level": 100, "when": object(), "other": 1})
    for wrong in ({"room": "garage"}, {"level": 101}, {"when": "never"}):
        with pytest.raises(InvalidArguments):
            check_choices(entry, wrong)


STATES: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "state": {"enum": ["on", "off"], "type": "string"},
        "level": {"type": "integer", "minimum": 1, "maximum": 100},
    },
    "required": ["state"],
}


class House(CaalAgent):
    """A lamp of each tier, and music."""

    def __init__(self, **variables: str) -> None:
        self.ran: list[str] = []
        tiers: Any = {
            tier: ScriptedToolSource(
                ToolSpec(tier, tier, name, name, "Switch a lamp.", STATES),  # pyright: ignore[reportArgumentType]
                answer=self._answer,
            )
            for tier, name in (("n8n", "porch_lamp"), ("mcp", "attic_lamp"))
        }
        super().__init__(settings=plain_settings(**variables), tiers=tiers, warm=False)

    async def _answer(self, spec: ToolSpec, arguments: object) -> Any:
        self.ran.append(spec.name)
        return "done"

    @function_tool
    async def hall_lamp(
        self,
        state: Literal["on", "off"],
        level: Annotated[int, Field(ge=1, le=100)] = 50,
    ) -> str:
        """Switch a lamp."""
        self.ran.append("hall_lamp")
        return "done"

    @function_tool
    async def desk_lamp(
        self,
        state: Annotated[str, Field(json_schema_extra={"enum": ["on", "off"]})],
        level: Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": 100})] = 50,
    ) -> str:
        """Switch a lamp."""
        self.ran.append("desk_lamp")
        return "done"

    @function_tool(
        raw_schema={"name": "raw_lamp", "description": "Switch a lamp.", "parameters": STATES}
    )
    async def raw_lamp(self, raw_arguments: dict[str, object]) -> str:
        self.ran.append("raw_lamp")
        return "done"

    @function_tool
    async def set_volume(self, percent: int) -> str:
        """Turn the music louder or quieter."""
        self.ran.append("set_volume")
        return "done"


LAMPS: Final = ("hall_lamp", "desk_lamp", "raw_lamp", "porch_lamp", "attic_lamp")


@pytest.mark.parametrize("own_tools", ["livekit", "bounded"])
@pytest.mark.parametrize("lamp", LAMPS)
@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"state": "louder"}, ("on", "off")), ({"state": "on", "level": 500}, ("100",))],
)
async def test_no_tool_runs_outside_of_its_enum_or_range_and_the_model_is_asked_again(
    lamp: str, own_tools: str, arguments: dict[str, Any], named: tuple[str, ...]
) -> None:
    agent = type("Household", (House,), {"own_tools": own_tools})()
    model = ScriptedModel(
        [ScriptedCall(lamp, arguments)], [ScriptedCall(lamp, {"state": "on"})], "It is on."
    )
    async with AgentConversation(agent, model) as talk:
        turn = await talk.say(f"{lamp} please, switch it")
    assert agent.ran == [lamp]
    assert [call.outcome for call in turn.calls] == ["error", "ok"]
    assert all(value in (turn.calls[0].result or "") for value in named)


@pytest.mark.parametrize("lamp", [lamp for lamp in LAMPS if lamp != "hall_lamp"])
async def test_the_error_names_a_tool_that_the_request_has_more_words_of(lamp: str) -> None:
    agent = House()
    model = ScriptedModel(
        [ScriptedCall(lamp, {"state": "louder"})],
        [ScriptedCall("set_volume", {"percent": 60})],
        "Louder.",
    )
    async with AgentConversation(agent, model) as talk:
        turn = await talk.say("turn the music louder, to 60")
        assert "more words of set_volume" in (turn.calls[0].result or "")
    assert agent.ran == ["set_volume"]


class Countdowns(House):
    """A countdown in minutes, and one in whole minutes."""

    def __init__(self) -> None:
        self.minutes: list[float] = []
        super().__init__()

    @function_tool
    async def countdown(self, minutes: float) -> str:
        """Start a countdown."""
        self.minutes.append(minutes)
        return "done"

    @function_tool
    async def whole_countdown(self, minutes: int) -> str:
        """Start a countdown."""
        self.minutes.append(minutes)
        return "done"


@pytest.mark.parametrize("native", [True, False])
async def test_seconds_that_were_said_become_minutes(native: bool) -> None:
    agent = Countdowns()
    call: Any = [ScriptedCall("countdown", {"minutes": 90})]
    if not native:
        call = '{"calls": [{"name": "countdown", "arguments": {"minutes": 90}}]}'
    model = ScriptedModel(
        call, "It runs." if native else '{"say": "It runs."}', native_tools=native
    )
    async with AgentConversation(agent, model) as talk:
        turn = await talk.say("Start a ninety second countdown")
    assert agent.minutes == [1.5]
    assert turn.calls[0].arguments == {"minutes": 1.5}


async def test_seconds_that_are_no_whole_minutes_are_refused_with_what_they_are() -> None:
    agent = Countdowns()
    model = ScriptedModel([ScriptedCall("whole_countdown", {"minutes": 90})], "One minute, or two?")
    async with AgentConversation(agent, model) as talk:
        turn = await talk.say("Start a ninety second countdown")
    assert agent.minutes == []
    assert "1.5" in (turn.calls[0].result or "")
    assert turn.spoken == "One minute, or two?"
