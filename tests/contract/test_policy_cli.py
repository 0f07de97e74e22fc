"""The rules about tools as their owner meets them: commands in a folder with a caal.toml."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from caal_node.cli.app import app
from caal_node.cli.checks.tools import policy_findings
from caal_node.cli.tools import typed_arguments
from caal_node.config.file import policy_in
from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.table import ToolTable
from tests.e2e.test_command_line import run
from tests.stand_ins.conversation import weather_spec

pytestmark = pytest.mark.long

AGENT = """\
from livekit.agents import function_tool
from caal_node import CaalAgent, effect

class House(CaalAgent):
    @function_tool
    @effect("destructive")
    async def unlock_door(self, door: str) -> str:
        '''Unlock a door.'''
        open("unlocked", "w").close()
        return "open"

    @function_tool
    @effect("read")
    async def get_weather(self, city: str) -> str:
        '''Say what the weather is.'''
        return "sunny"

    @function_tool
    async def set_timer(self, minutes: int) -> str:
        '''Set a timer.'''
        return "set"
"""
RULES = """\
agent = "house_agent:House"

[tools.effects]
set_timer = "read"

[[tools.rules]]
tools = ["unlock_*"]
rooms = ["nursery-*"]
then = "deny"

[[tools.rules]]
tools = ["unlock_*"]
attributes = {role = "guest"}
then = "deny"

[[tools.rules]]
tools = ["unlock_*"]
participants = ["ann"]
then = "allow"

[[tools.rules]]
tools = ["*_wether"]
then = "deny"
"""
BROKEN = 'agent = "house_agent:House"\n\n[[tools.rules]]\ntools = ["unlock_*"]\nthen = "forbid"\n'
FAULT = "caal.toml, line 5, tools.rules.then: 'forbid' does not fit; write allow"


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "house_agent.py").write_text(AGENT, encoding="utf-8")
    (tmp_path / "caal.toml").write_text(RULES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "house_agent", raising=False)
    return tmp_path


def ran_here(*arguments: str) -> tuple[int, str]:
    """The exit code and the output of a command in this process, as a start takes seconds."""
    ran = CliRunner().invoke(app, arguments)
    return ran.exit_code, ran.output + (str(ran.exception) if ran.exception else "")


def listed(*options: str) -> dict[str, tuple[str, str, str, bool]]:
    code, output = ran_here("tools", "--policy", "--json", *options)
    assert code == 0, output
    return {
        row["name"]: (row["effect"], row["verdict"], row["line"], row["offered"])
        for row in json.loads(output)["tools"]
    }


@pytest.mark.parametrize(
    ("options", "verdict", "line", "offered"),
    [
        ([], "confirm", "mode house: destructive", True),
        (["--room", "nursery-2"], "deny", "caal.toml, line 6", False),
        (["--attribute", "role=guest"], "deny", "caal.toml, line 11", True),
        (["--room", "hall", "--participant", "ann"], "allow", "caal.toml, line 16", True),
        (["--api", "--room", "nursery-2"], "deny", "caal.toml, line 6", False),
    ],
)
def test_each_tools_verdict_has_the_line_that_gave_it(
    house: Path, options: list[str], verdict: str, line: str, offered: bool
) -> None:
    tools = listed(*options)
    assert tools["unlock_door"] == ("destructive", verdict, line, offered)
    assert tools["set_timer"] == ("read", "allow", "mode house: read", True)


def test_the_table_for_people_has_the_lines_and_the_globs_that_fit_nothing(house: Path) -> None:
    output = run("tools", "--policy", folder=house).stdout
    rows = [line.split("\t") for line in output.splitlines()]
    assert rows[0] == ["tool", "tier", "effect", "given by", "verdict", "line"]
    timer = ["set_timer", "agent", "reads", "caal.toml, line 4", "allow", "mode house: read"]
    assert timer in rows
    assert "caal.toml, line 21: no tool is named *_wether; fix the name, or remove it" in output


def test_a_call_is_tried_and_not_run(house: Path) -> None:
    call = ("policy", "try", "unlock_door", '{"door": "front"}')
    guest = run(*call, "--attribute", "role=guest", "--json", folder=house)
    told = json.loads(guest.stdout)
    assert (guest.returncode, told["may_run"]) == (1, False)
    assert told["decisions"][0] == {
        "by": "policy",
        "verdict": "refused",
        "line": "caal.toml, line 11",
        "says": "Sorry, I'm not allowed to do that for you.",
    }
    code, output = ran_here(*call, "--participant", "ann")
    assert code == 0
    assert "policy\tallowed\tcaal.toml, line 16" in output
    code, output = ran_here(*call, "--json")
    _, limits, _, look, asked = json.loads(output)["decisions"]
    assert look["by"] == "second_look"
    assert limits == {"by": "limits", "verdict": "allowed", "line": "no limit", "says": ""}
    assert (code, asked["by"], asked["verdict"]) == (0, "confirmation", "asks")
    assert asked["line"] == "mode house: destructive"
    assert "front" in asked["says"]
    assert not (house / "unlocked").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["unlock_dor"], "Did you mean unlock_door"),
        (["unlock_door", "{"], "the arguments are not JSON"),
        (["unlock_door", "[]"], "the arguments are not a JSON object"),
        (["unlock_door", "front"], "write an argument as key=value, or all as JSON"),
        (["unlock_door", "{}"], "the arguments do not fit: unlock_door was not called: 'door' is"),
        (["unlock_door", '{"door": "a"}', "--attribute", "guest"], "write name=value"),
    ],
)
def test_what_cannot_be_tried_is_told_in_a_line(
    house: Path, arguments: list[str], told: str
) -> None:
    code, output = ran_here("policy", "try", *arguments)
    assert code == 1
    assert told in output


def test_a_call_is_typed_as_json_or_as_pairs(house: Path) -> None:
    said = [
        json.loads(ran_here("policy", "try", "set_timer", given, "--json")[1])
        for given in ('{"minutes": 5}', "minutes=5")
    ]
    assert said[0] == said[1]
    assert said[0]["may_run"]


@pytest.mark.parametrize(
    ("schema", "typed"),
    [
        ({"type": "integer"}, 5),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 5),
        ({"type": "string"}, "5"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "5"),
        (True, "5"),
    ],
)
def test_a_typed_value_has_the_type_of_its_schema(schema: object, typed: object) -> None:
    parameters = {"type": "object", "properties": {"x": schema}}
    spec = replace(weather_spec(name="tool"), parameters=parameters)
    assert typed_arguments(["x=5"], ToolTable([spec]).resolve("tool")) == {"x": typed}


def test_a_policy_with_a_fault_is_told_and_refuses_what_writes(house: Path) -> None:
    (house / "caal.toml").write_text(BROKEN, encoding="utf-8")
    assert listed()["get_weather"][1] == "allow"
    assert listed()["set_timer"][1] == "deny"
    assert FAULT in ran_here("tools", "--policy")[1]
    code, output = ran_here("policy", "try", "set_timer", '{"minutes": 5}')
    assert code == 1
    assert FAULT in output
    assert "until it's fixed" in output


def test_a_dry_run_is_told_with_what_would_be_said(house: Path) -> None:
    rule = "[[tools.rules]]\ntools = ['set_*']\nthen = 'dry-run'\n"
    agent = 'agent = "house_agent:House"\n'
    (house / "caal.toml").write_text(agent + rule, encoding="utf-8")
    code, output = ran_here("policy", "try", "set_timer", '{"minutes": 5}', "--json")
    assert code == 0
    *_, last = json.loads(output)["decisions"]
    told = (last["by"], last["verdict"], last["line"])
    assert told == ("dry_run", "dry_run", "caal.toml, line 2")
    assert "I would have used set timer: minutes 5" in last["says"]


def test_the_doctor_names_a_fault_with_its_fix(house: Path) -> None:
    (house / "caal.toml").write_text(BROKEN, encoding="utf-8")
    ran = run("doctor", "--json", folder=house)
    assert ran.returncode == 1
    found = [row for row in json.loads(ran.stdout)["checks"] if row["name"] == "policy"]
    assert found[0]["status"] == "fail"
    assert "caal.toml, line 5" in found[0]["found"]
    assert found[0]["fix"].startswith("write allow")


@pytest.mark.parametrize(
    ("table", "status", "found"),
    [
        ("", "ok", "1 tool changes something, and anybody may call: set_timer"),
        ("[tools]\nmode = 'open'\n", "warn", "2 tools change something, and anybody may call"),
        ("[tools]\nmode = 'read-only'\n", "ok", "mode read-only: only tools that read are run"),
        (
            "[[tools.rules]]\ntools=['set_*']\nthen='allow'\n",
            "ok",
            "mode house: a call that destroys",
        ),
        ("[tools.effects]\nset_tmer = 'read'\n", "warn", "no tool is named set_tmer"),
    ],
)
def test_the_doctor_says_what_a_policy_leaves_open(
    house: Path, table: str, status: str, found: str
) -> None:
    (house / "caal.toml").write_text(table, encoding="utf-8")
    tools = [
        (name, ToolSpec("agent", "House", name, name, "", {}, effect=worst))
        for name, worst in (("set_timer", "write"), ("wipe", "destructive"), ("get_x", "read"))
    ]
    first, *_ = policy_findings(policy_in(house / "caal.toml"), tools, listed=True)
    assert first.status == status
    assert found in first.found


def test_options_of_the_policy_without_it_are_refused(house: Path) -> None:
    code, output = ran_here("tools", "--room", "hall")
    assert code == 2
    assert "add --policy" in output
