"""Toolsets that `caal.toml` turns on, in a whole conversation with an agent."""

from __future__ import annotations

import asyncio
import json
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from livekit.agents import function_tool
from pydantic import SecretStr

from caal_node.agent import CaalAgent
from caal_node.config.setting_tables import toolset_tables
from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError, ToolUnavailable
from caal_node.core.events import ToolCallEnded
from caal_node.policy.policy import Policy
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets import registry
from caal_node.toolsets.base import ConfiguredToolset, ToolsetOptions, tool
from caal_node.toolsets.installed import GROUP


class HallOptions(ToolsetOptions):
    token: SecretStr = SecretStr("nobody-may-hear-this")


class Hall(ConfiguredToolset):
    NAME = "hall"
    SUMMARY = "Rings and reads the bell."
    Options = HallOptions
    open_sets = 0

    async def setup(self) -> Any:
        await super().setup()
        Hall.open_sets += 1
        return self

    async def aclose(self) -> None:
        await super().aclose()
        Hall.open_sets -= 1

    @tool("write")
    async def ring_bell(self) -> VerbatimResult:
        """Ring the bell."""
        return VerbatimResult({"rung": "front bell"}, "I rang the bell.")

    @tool("read")
    async def read_bell(self) -> dict[str, str]:
        """Read the bell's state."""
        return {"state": f"quiet {self.options.token.get_secret_value()}"}

    @tool("read")
    async def wait_for_bell(self) -> str:
        """Wait until the bell rings."""
        await asyncio.Event().wait()
        return "it rang"

    @tool("read")
    async def lost_bell(self) -> str:
        """Look for the bell."""
        failure = ToolUnavailable("The bell's server refuses connections.")
        failure.words = "I can't reach the bell."
        raise failure


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"hall": EntryPoint("hall", f"{__name__}:Hall", GROUP)}
    monkeypatch.setattr(registry, "installed", lambda: found)


def settings_with(**values: Any) -> Settings:
    return plain_settings().model_copy(update={"toolsets": toolset_tables({"hall": {}}), **values})


def agent_with(**values: Any) -> CaalAgent:
    return CaalAgent(settings=settings_with(**values), tiers={}, warm=False)


async def test_plain_words_are_said_without_another_request() -> None:
    model = ScriptedModel([ScriptedCall("ring_bell", {})])
    async with AgentConversation(agent_with(), model) as talk:
        turn = await talk.say("ring the bell")
    assert turn.text == "I rang the bell."
    assert len(model.requests) == 1


async def test_the_data_of_a_result_is_kept_for_later_turns() -> None:
    agent = agent_with()
    model = ScriptedModel([ScriptedCall("ring_bell", {})], "The front bell.")
    async with AgentConversation(agent, model) as talk:
        await talk.say("ring the bell")
        turn = await talk.say("which bell was it?")
    assert turn.text == "The front bell."
    assert "front bell" in str(model.requests[-1].items)


async def test_a_call_that_gives_no_answer_ends_at_the_deadline() -> None:
    model = ScriptedModel([ScriptedCall("wait_for_bell", {})], "It took too long.")
    async with AgentConversation(agent_with(tool_timeout=0.05), model) as talk:
        turn = await talk.say("wait for the bell")
        (ended,) = talk.events_of(ToolCallEnded)
    assert ended.outcome == "timeout"
    assert turn.text == "It took too long."


async def test_the_author_s_sentence_is_what_a_person_hears_of_a_failure() -> None:
    model = ScriptedModel([ScriptedCall("lost_bell", {})])
    async with AgentConversation(agent_with(), model) as talk:
        turn = await talk.say("where is the bell?")
    assert turn.text == "I can't reach the bell."
    assert len(model.requests) == 1


async def test_a_secret_option_is_in_no_result() -> None:
    model = ScriptedModel([ScriptedCall("read_bell", {})], "It is quiet.")
    async with AgentConversation(agent_with(), model) as talk:
        turn = await talk.say("how is the bell?")
    assert "nobody-may-hear-this" not in (turn.calls[0].result or "")
    assert "quiet" in (turn.calls[0].result or "")


async def test_the_owner_s_policy_knows_what_writes() -> None:
    agent = agent_with(tools=Policy(mode="read-only"))
    model = ScriptedModel([ScriptedCall("read_bell", {})], "It is quiet.")
    async with AgentConversation(agent, model) as talk:
        await talk.say("how is the bell?")
        (ended,) = talk.events_of(ToolCallEnded)
    shown = {schema["function"]["name"] for schema in model.requests[0].tools}
    assert "read_bell" in shown
    assert "ring_bell" not in shown
    assert ended.outcome == "ok"


async def test_it_is_listed_with_its_source_and_set_up_and_closed_with_the_conversation() -> None:
    agent = agent_with()
    async with AgentConversation(agent, ScriptedModel("Hello.")) as talk:
        await talk.say("hello")
        assert Hall.open_sets == 1
        sources = {entry.exposed: entry.spec.source for entry in agent.table}
    assert Hall.open_sets == 0
    assert sources["ring_bell"] == "hall"


async def test_a_tool_whose_name_the_agent_has_too_is_told_before_anybody_waits() -> None:
    @function_tool
    async def ring_bell() -> str:
        """Ring another bell."""
        return json.dumps({})

    with pytest.raises(ConfigError, match=r"toolset hall.*ring_bell.*enabled = false"):
        CaalAgent(settings=settings_with(), tiers={}, warm=False, tools=[ring_bell])
