"""In a dry run no tool runs, and model and person are told what would have been done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from livekit.agents import RunContext, function_tool

from caal_node.agent import CaalAgent
from caal_node.cli.checks.local import check_settings
from caal_node.control.messages import CallAnswer, CallTool
from caal_node.core.events import ToolCallEnded
from caal_node.core.tool_spec import ToolSpec
from caal_node.policy.limit_rules import LimitRule
from caal_node.testing import (
    AgentConversation,
    ScriptedCall,
    ScriptedModel,
    ScriptedToolSource,
    plain_settings,
)
from caal_node.tools.middleware.dry_run import DryRun
from caal_node.tools.middleware.limits import CallLimits
from caal_node.tools.pipeline import Gates
from caal_node.tools.source import Arguments

DOOR: Mapping[str, Any] = {
    "type": "object",
    "properties": {"door": {"type": "string"}},
    "required": ["door"],
}


class House(CaalAgent):
    """Tools of all three tiers that note their calls."""

    def __init__(self, gates: Gates | None = None, **variables: str) -> None:
        self.ran: list[str] = []
        tiers: Any = {
            tier: ScriptedToolSource(
                ToolSpec(tier, tier, name, name, "Do it.", DOOR),  # pyright: ignore[reportArgumentType]
                answer=self._answer,
            )
            for tier, name in (("n8n", "unlock_gate"), ("mcp", "unlock_door"))
        }
        settings = plain_settings(CAAL_DRY_RUN="on", **variables)
        super().__init__(settings=settings, tiers=tiers, gates=gates)

    async def _answer(self, spec: ToolSpec, arguments: Arguments) -> Any:
        self.ran.append(spec.name)
        return {"open": True}

    @function_tool
    async def unlock_window(self, context: RunContext[Any], door: str) -> dict[str, Any]:
        """Unlock the window."""
        self.ran.append("unlock_window")
        return {"open": True}


TOOLS = ("unlock_window", "unlock_gate", "unlock_door")
each_tool = pytest.mark.parametrize("tool", TOOLS)


def unlock(tool: str) -> list[ScriptedCall]:
    return [ScriptedCall(tool, {"door": "front"})]


@pytest.mark.parametrize("own_tools", ["livekit", "bounded"])
@each_tool
async def test_nothing_runs_and_the_person_hears_it_as_it_stands(tool: str, own_tools: str) -> None:
    agent = type("Household", (House,), {"own_tools": own_tools})()
    model = ScriptedModel(unlock(tool))
    async with AgentConversation(agent, model) as talk:
        turn = await talk.say("unlock the front one")
        (ended,) = talk.events_of(ToolCallEnded)
    assert agent.ran == []
    assert model.replies_left == 0  # the model is not asked for an answer of its own
    assert "would have" in turn.text
    assert "door" in turn.text
    assert "front" in turn.text
    result = json.loads(turn.calls[0].result or "")
    assert (result["dry_run"], result["done"]) == (True, False)
    assert result["would_have"] == {"tool": tool, "arguments": {"door": "front"}}
    assert "Nothing was done" in result["message"]
    assert ended.outcome == "dry_run"
    decision = ended.decisions[-1]
    assert (decision.by, decision.verdict) == ("dry_run", "dry_run")
    assert decision.line == "dry_run is on"
    assert len(agent.tool_data) == 0  # so no later turn takes it for something that is known


@each_tool
async def test_a_caller_of_the_api_is_told_what_would_have_been_done(tool: str) -> None:
    agent = House()
    async with AgentConversation(agent, ScriptedModel()) as talk:
        answer = await agent.on_tools(CallTool(name=tool, arguments={"door": "front"}))
        (ended,) = talk.events_of(ToolCallEnded)
    assert isinstance(answer, CallAnswer)
    assert agent.ran == []
    assert answer.result["dry_run"] is True
    assert answer.result["done"] is False
    assert "would have" in str(answer.spoken)
    assert ended.outcome == "dry_run"


async def test_a_model_that_is_asked_by_text_reads_that_nothing_was_done() -> None:
    call = '{"calls": [{"name": "unlock_door", "arguments": {"door": "front"}}]}'
    model = ScriptedModel(call, '{"say": "It is not open."}', native_tools=False)
    agent = House()
    async with AgentConversation(agent, model) as talk:
        await talk.say("unlock the front door")
        await talk.say("is it open?")
    read = json.dumps([str(item) for item in model.requests[-1].items])
    assert agent.ran == []
    assert "Nothing was done" in read
    assert "would have" in read


async def test_only_what_the_owner_names_is_dry_and_a_call_that_is_does_not_count() -> None:
    def is_dry(call: Any) -> str:
        return "caal.toml, line 3" if call.entry.exposed == "unlock_gate" else ""

    limits = CallLimits([LimitRule(per_hour=1)])
    agent = House(Gates(middleware=[limits, DryRun(is_dry)]))
    replies: list[Any] = [unlock("unlock_gate"), unlock("unlock_door"), "It is open."]
    async with AgentConversation(agent, ScriptedModel(*replies)) as talk:
        gate = await talk.say("unlock the gate")
        door = await talk.say("unlock the door")
    assert [gate.calls[0].outcome, door.calls[0].outcome] == ["dry_run", "ok"]
    assert agent.ran == ["unlock_door"]


async def test_a_secret_in_the_arguments_is_not_spoken() -> None:
    secret = "-".join(["correct", "horse", "battery"])
    agent = House(CAAL_API_KEY=secret)
    call = [ScriptedCall("unlock_door", {"door": secret})]
    async with AgentConversation(agent, ScriptedModel(call)) as talk:
        turn = await talk.say("unlock it")
    assert secret not in turn.text
    assert secret not in str(turn.calls[0].result)


async def test_an_owners_own_list_of_middleware_is_dry_as_well(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agent = House(Gates(middleware=[CallLimits()]))
    async with AgentConversation(agent, ScriptedModel(unlock("unlock_door"))) as talk:
        turn = await talk.say("unlock it")
    assert turn.calls[0].outcome == "dry_run"
    assert agent.ran == []
    assert "dry_run is on: no tool is called" in caplog.text


async def test_the_doctor_says_that_no_tool_is_called() -> None:
    found = await check_settings(plain_settings(CAAL_DRY_RUN="on"))
    assert any(each.status == "warn" and "no tool is called" in each.found for each in found)
    assert not any("no tool" in each.found for each in await check_settings(plain_settings()))
