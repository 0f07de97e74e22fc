"""The rules about tools as their owner meets them: commands in a folder with a caal.toml."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.test_command_line import run

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
agent = "agent:House"

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
BROKEN = 'agent = "agent:House"\n\n[[tools.rules]]\ntools = ["unlock_*"]\nthen = "forbid"\n'
FAULT = "caal.toml, line 5, tools.rules.then: 'forbid' does not fit; write allow"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(AGENT, encoding="utf-8")
    (tmp_path / "caal.toml").write_text(RULES, encoding="utf-8")
    return tmp_path


def listed(folder: Path, *options: str) -> dict[str, tuple[str, str, str, bool]]:
    ran = run("tools", "--policy", "--json", *options, folder=folder)
    assert ran.returncode == 0, ran.stderr
    return {
        row["name"]: (row["effect"], row["verdict"], row["line"], row["offered"])
        for row in json.loads(ran.stdout)["tools"]
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
    tools = listed(house, *options)
    assert tools["unlock_door"] == ("destructive", verdict, line, offered)
    assert tools["set_timer"] == ("read", "allow", "mode house: read", True)


def test_the_table_for_people_has_the_lines_and_the_globs_that_fit_nothing(house: Path) -> None:
    ran = run("tools", "--policy", folder=house)
    rows = [line.split("\t") for line in ran.stdout.splitlines()]
    assert rows[0] == ["tool", "tier", "at worst it", "said by", "verdict", "line"]
    timer = ["set_timer", "agent", "reads", "caal.toml, line 4", "allow", "mode house: read"]
    assert timer in rows
    assert (
        "caal.toml, line 21: no tool is named *_wether; mend the name, or remove it" in ran.stdout
    )


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
    owner = run(*call, "--participant", "ann", folder=house)
    assert owner.returncode == 0, owner.stderr
    assert "policy\tallowed\tcaal.toml, line 16" in owner.stdout
    assert not (house / "unlocked").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["unlock_dor"], "Did you mean unlock_door"),
        (["unlock_door", "{"], "the arguments are no JSON"),
        (["unlock_door", "[]"], "the arguments are no JSON object"),
        (["unlock_door", "{}"], "the arguments do not fit: unlock_door was not called: 'door' is"),
        (["unlock_door", '{"door": "a"}', "--attribute", "guest"], "write name=value"),
    ],
)
def test_what_cannot_be_tried_is_told_in_a_line(
    house: Path, arguments: list[str], told: str
) -> None:
    ran = run("policy", "try", *arguments, folder=house)
    assert ran.returncode == 1
    assert told in ran.stdout + ran.stderr


def test_a_policy_with_a_fault_is_told_by_each_command_and_refuses_what_writes(
    house: Path,
) -> None:
    (house / "caal.toml").write_text(BROKEN, encoding="utf-8")
    assert listed(house)["get_weather"][1] == "allow"
    assert listed(house)["set_timer"][1:3][0] == "deny"
    assert FAULT in run("tools", "--policy", folder=house).stdout
    tried = run("policy", "try", "set_timer", '{"minutes": 5}', folder=house)
    assert tried.returncode == 1
    assert FAULT in tried.stdout
    assert "somebody has mended them" in tried.stdout


def doctor(folder: Path) -> list[dict[str, str]]:
    ran = run("doctor", "--json", folder=folder)
    return [row for row in json.loads(ran.stdout)["checks"] if row["name"] == "policy"]


def test_the_doctor_names_faults_globs_and_what_anybody_may_call(house: Path) -> None:
    (wether,) = doctor(house)
    assert wether["status"] == "warn"
    assert wether["found"] == "caal.toml, line 21: no tool is named *_wether"
    (house / "caal.toml").write_text(BROKEN, encoding="utf-8")
    (fault,) = doctor(house)
    assert fault["status"] == "fail"
    assert "caal.toml, line 5" in fault["found"]
    assert fault["mend"].startswith("write allow")
    (house / "caal.toml").write_text('agent = "agent:House"\n', encoding="utf-8")
    (plain,) = doctor(house)
    assert plain["status"] == "ok"
    assert "1 tool changes something, and anybody may call: set_timer" in plain["found"]
    open_house = 'agent = "agent:House"\n[tools]\nmode = "open"\n'
    (house / "caal.toml").write_text(open_house, encoding="utf-8")
    (warned,) = doctor(house)
    assert warned["status"] == "warn"
    assert "2 tools change something" in warned["found"]


def test_options_of_the_policy_without_it_are_refused(house: Path) -> None:
    ran = run("tools", "--room", "hall", folder=house)
    assert ran.returncode == 2
    assert "add --policy" in ran.stderr
