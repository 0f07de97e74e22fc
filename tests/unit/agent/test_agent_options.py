"""An agent as LiveKit's starter writes it: no options in its `__init__`, and tools that use
`context.userdata`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from livekit.agents import RunContext, function_tool

from caal_node.agent import CaalAgent
from caal_node.testing import (
    AgentConversation,
    ScriptedCall,
    ScriptedModel,
    options_given,
    plain_settings,
)


@dataclass
class Guest:
    name: str


class Starter(CaalAgent):
    def __init__(self) -> None:
        super().__init__(instructions="Be brief.")

    @function_tool
    async def greet(self, context: RunContext[Guest]) -> str:
        """Greet the guest."""
        return f"Good evening, {context.userdata.name}"


class Hotel(Starter):
    def make_userdata(self) -> Guest:
        return Guest("Ann")


@pytest.mark.parametrize(
    ("kind", "userdata", "name"),
    [(Starter, Guest("Bob"), "Bob"), (Hotel, None, "Ann"), (Hotel, Guest("Bob"), "Bob")],
)
async def test_a_tool_finds_what_the_agent_or_the_conversation_gives(
    kind: type[CaalAgent], userdata: Any, name: str
) -> None:
    settings = plain_settings()
    with options_given(settings=settings, tiers={}, warm=False):
        agent = kind()
    assert agent.settings is settings
    model = ScriptedModel([ScriptedCall("greet", {})], "Good evening.")
    async with AgentConversation(agent, model, userdata=userdata) as talk:
        (call,) = (await talk.say("hello")).calls
    assert call.result == f"Good evening, {name}"


async def test_what_a_class_gives_itself_stays() -> None:
    own = plain_settings()
    with options_given(settings=plain_settings(), tiers={}):
        assert CaalAgent(settings=own).settings is own
