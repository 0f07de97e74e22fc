"""In a LiveKit session: a call, and a turn, that take too long."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from livekit.agents import RunContext, function_tool, llm

from caal_node import agent as agent_module
from caal_node.agent import CaalAgent
from caal_node.core.events import ToolCallEnded
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import ToolSpec
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel
from caal_node.tools import pipeline
from tests.stand_ins.conversation import FakeTier, conversation, weather_spec
from tests.stand_ins.stand_in_model import Call, StandInModel

UNCERTAIN = sentence("write_timeout")
LAMP = [Call("set_lamp", {"city": "on"})]
SOON = {"CAAL_TOOL_TIMEOUT": "0.05"}


async def hangs(_: ToolSpec, __: Mapping[str, Any]) -> Any:
    await asyncio.Event().wait()


async def test_a_write_that_passes_its_deadline_is_not_claimed() -> None:
    tier = FakeTier(weather_spec(name="set_lamp"), answer=hangs)
    async with (
        StandInModel(LAMP, ["The lamp is on now."]) as server,
        conversation(server, tier=tier, env=SOON) as talk,
    ):
        assert await talk.ask("turn on the lamp") == UNCERTAIN
        assert UNCERTAIN in str(server.chats[-1]), "the model reads what to say"
        assert [e.outcome for e in talk.events_of(ToolCallEnded)] == ["timeout"]


async def test_the_honest_sentence_is_heard_as_it_is() -> None:
    tier = FakeTier(weather_spec(name="set_lamp"), answer=hangs)
    async with (
        StandInModel(LAMP, [UNCERTAIN]) as server,
        conversation(server, tier=tier, env=SOON) as talk,
    ):
        assert await talk.ask("turn on the lamp") == UNCERTAIN


async def test_of_two_writes_one_of_which_is_late_none_is_denied() -> None:
    async def second_hangs(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        return "ok" if spec.name == "set_lamp" else await hangs(spec, arguments)

    lock = "lock_door"
    tier = FakeTier(weather_spec(name="set_lamp"), weather_spec(name=lock), answer=second_hangs)
    calls = [*LAMP, Call(lock, {"city": "front"})]
    async with (
        StandInModel(calls, ["Both are done."]) as server,
        conversation(server, tier=tier, env=SOON) as talk,
    ):
        assert await talk.ask("turn on the lamp and lock the door") == UNCERTAIN


async def test_a_read_that_is_late_has_changed_nothing() -> None:
    async with (
        StandInModel([Call("get_weather", {"city": "Oslo"})], ["Sorry."]) as server,
        conversation(server, tier=FakeTier(answer=hangs), env=SOON) as talk,
    ):
        await talk.ask("what is the weather in Oslo?")
        assert sentence("tool_timeout") in str(server.chats[-1])


async def test_a_method_that_never_returns_ends_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "OWN_TIMEOUT_S", 0.05)

    @function_tool
    async def open_gate() -> str:
        """Open the gate."""
        await asyncio.Event().wait()
        return ""

    @function_tool
    async def ask_around(context: RunContext[Any]) -> str:
        """Hold a conversation."""
        await asyncio.sleep(0.2)
        return "done"

    calls = [ScriptedCall("open_gate", {})], [ScriptedCall("ask_around", {})]
    model = ScriptedModel(*calls, "Sorry.")
    agent = CaalAgent(tools=[open_gate, ask_around], tiers={}, warm=False)
    agent._pipeline._timeout_s = 0.01
    async with AgentConversation(agent, model) as talk:
        await talk.say("open the gate")
        assert [e.outcome for e in talk.events_of(ToolCallEnded)] == ["timeout", "ok"]
        outputs = [i.output for i in talk.history if isinstance(i, llm.FunctionCallOutput)]
        assert UNCERTAIN in outputs[0]


async def test_a_turn_that_takes_too_long_calls_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def slow(_: ToolSpec, __: Mapping[str, Any]) -> Any:
        await asyncio.sleep(0.3)
        return {"high_c": 21}

    monkeypatch.setattr(agent_module, "TURN_S", 0.25)
    calls = [Call("get_weather", {"city": "Oslo"})], [Call("get_weather", {"city": "Rome"})]
    async with (
        StandInModel(*calls, ["21 degrees."]) as server,
        conversation(server, tier=FakeTier(answer=slow)) as talk,
    ):
        await talk.ask("what is the weather in Oslo and in Rome?")
        assert len(talk.tier.calls) == 1
        assert "No more tools" in str(server.chats[1])
