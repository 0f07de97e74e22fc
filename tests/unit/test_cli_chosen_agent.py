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
from tests.conversation import NOWHERE

AGENTS = """
from caal_node import CaalAgent

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
"""


@pytest.fixture(autouse=True)
def own_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_agents.py").write_text(AGENTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "own_agents", raising=False)


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
        ("own_agents:Nobody", "write module:Class"),
        ("no_such_module:Butler", "write module:Class"),
        ("own_agents", "write module:Class"),
        ("own_agents:Stranger", "not a subclass of caal_node.CaalAgent"),
        ("own_agents:Shut", "give its __init__ no arguments without defaults"),
    ],
)
async def test_an_agent_that_cannot_be_made_is_told_with_its_fix(name: str, fix: str) -> None:
    with pytest.raises(ConfigError, match=fix):
        chosen_agent(load_settings({}, NOWHERE), name)
