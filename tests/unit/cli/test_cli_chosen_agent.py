"""Which agent a command runs, and the error where it cannot be made."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from caal_node.agent import CaalAgent
from caal_node.cli.chosen_agent import chosen_agent
from caal_node.config.settings import load_settings
from caal_node.conversation import Conversation
from caal_node.core.errors import ConfigError
from caal_node.core.events import Event, Spoken
from caal_node.testing import ScriptedModel
from tests.stand_ins.conversation import NOWHERE

AGENTS = """
from caal_node import CaalAgent
from livekit.agents import function_tool

class Butler(CaalAgent):
    pass

class Starter(CaalAgent):
    def __init__(self) -> None:
        super().__init__(instructions="Be brief.")

class Shut(CaalAgent):
    def __init__(self, hotel):
        super().__init__(instructions=hotel)

class Stranger:
    pass

class Reader(CaalAgent):
    def __init__(self) -> None:
        super().__init__()
        open("menu.json")

class Forgetful(CaalAgent):
    def __init__(self) -> None:
        self.menu = []

class Untyped(CaalAgent):
    @function_tool
    async def order(self, item) -> str:
        return "ordered"

waiter = 3
"""
BROKEN = {
    "own_line": "from caal_node import CaalAgent\n\nMENU = open('menu.json')\n",
    "own_syntax": "class Waiter(:\n",
    "own_import": "import no_such_library\n",
    "own_program": "import sys\n\nsys.exit(2)\n",
}
"""Modules that cannot be imported, each in its own way."""


@pytest.fixture(autouse=True)
def own_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"own_agents": AGENTS, **BROKEN}.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


async def test_a_class_of_ones_own_is_made_with_the_settings() -> None:
    settings = load_settings({}, NOWHERE)
    agent = chosen_agent(settings, "own_agents:Butler")
    assert type(agent).__name__ == "Butler"
    assert isinstance(agent, CaalAgent)
    assert agent.settings is settings


@pytest.mark.parametrize("name", [None, "own_agents:Butler", "own_agents:Starter"])
async def test_each_is_made_with_the_options_whether_its_init_takes_them_or_not(
    name: str | None,
) -> None:
    settings, heard = load_settings({}, NOWHERE), list[Event]()
    agent = chosen_agent(settings, name, on_event=heard.append, tiers={}, warm=False)
    assert agent.settings is settings
    async with Conversation(agent, ScriptedModel("Hello.")) as talk:
        await talk.say("hi")
    assert Spoken("Hello.") in heard
    if name and name.endswith("Starter"):
        assert agent.instructions == "Be brief."


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("own_agents:Buttler", "own_agents has no class Buttler; write own_agents:Butler$"),
        ("own_agents:Nobody", "own_agents:Butler or own_agents:Starter"),
        ("own_agents", "it names no class; write own_agents:Butler"),
        ("own_agents:waiter", "is not a class; write own_agents:Butler"),
        ("own_agent:Butler", "there is no module own_agent in .*; did you mean own_agents?"),
        ("no_such_module:Butler", "there is no module .*; write module:Class"),
        ("own_agents.py:Butler", "names a file, where a module belongs; write own_agents:Butler$"),
        ("house/own_agents.py", "write own_agents:Class, and run this in house"),
        ("own_line:A", r"own_line.py, line 3: FileNotFoundError: .*menu.json'\); fix that line"),
        ("own_syntax:A", r"SyntaxError: .*own_syntax.py, line 1\)\); fix that line"),
        ("own_import:A", r"own_import imports no_such_library, which is not there; install it"),
        ("own_program:A", "ended the program; put what starts it under if __name__"),
        ("own_agents:Stranger", "of caal_node.CaalAgent; write class Stranger.CaalAgent"),
        ("own_agents:Reader", r"own_agents.py, line \d+: FileNotFoundError"),
        ("own_agents:Forgetful", r"begin it with super\(\).__init__\(\)"),
        ("own_agents:Untyped", "the tool order: its parameter item has no type.*write item: str"),
        ("own_agents:Shut", "give its __init__ no arguments without defaults"),
    ],
)
async def test_an_agent_that_cannot_be_made_is_told_with_its_fix(name: str, fix: str) -> None:
    with pytest.raises(ConfigError, match=fix) as of_option:
        chosen_agent(load_settings({}, NOWHERE), name)
    assert str(of_option.value).startswith("--agent: ")
    assert "\n" not in str(of_option.value)
    if ":" in name:  # else the setting is refused as it is read
        with pytest.raises(ConfigError, match=fix) as of_setting:
            chosen_agent(load_settings({"CAAL_AGENT": name}, NOWHERE), None)
        assert str(of_setting.value).startswith("CAAL_AGENT: ")
