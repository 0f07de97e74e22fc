"""Calls are held to the owner's limits, and what fails again and again ends early."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from livekit.agents import ToolError, function_tool

from caal_node.agent import CaalAgent
from caal_node.control.messages import CallAnswer, CallFailure, CallTool
from caal_node.core.errors import ToolBroke, ToolRefused
from caal_node.core.events import ToolCallEnded
from caal_node.core.tool_spec import Caller, ToolSpec
from caal_node.policy.limit_rules import LimitRule
from caal_node.testing import (
    AgentConversation,
    ScriptedCall,
    ScriptedModel,
    ScriptedToolSource,
    plain_settings,
)
from caal_node.tools.call_middleware import CallMiddleware, Preview, ToolCallRequest
from caal_node.tools.middleware.limits import CallLimits, in_words
from caal_node.tools.pipeline import Gates
from caal_node.tools.source import Arguments
from caal_node.tools.table import ToolEntry
from tests.stand_ins.before_call import BeforeCall
from tests.stand_ins.virtual_clock import VirtualClock

ANYTHING = {"type": "object", "properties": {"room": {"type": "string"}}}


def remote(tier: str, name: str) -> ToolSpec:
    return ToolSpec(tier, tier, name, name, "Do it.", ANYTHING)  # pyright: ignore[reportArgumentType]


class House(CaalAgent):
    """Tools of all three tiers that note their calls, and fail while `broken`."""

    def __init__(self, *middleware: CallMiddleware) -> None:
        self.ran: list[str] = []
        self.broken = False
        tiers: Any = {
            tier: ScriptedToolSource(remote(tier, name), answer=self._answer)
            for tier, name in (("n8n", "mail"), ("mcp", "light"))
        }
        gates = Gates(middleware=middleware)
        super().__init__(settings=plain_settings(), tiers=tiers, gates=gates)

    async def _answer(self, spec: ToolSpec, arguments: Arguments) -> Any:
        self.ran.append(spec.name)
        if self.broken:
            raise ToolBroke("The server said: no such device.")
        return {"ok": True}

    @function_tool
    async def stir(self, room: str = "") -> str:
        """Stir."""
        self.ran.append("stir")
        if self.broken:
            raise ToolError("The spoon is stuck.")
        return "stirred"


def call(tool: str, room: str = "hall") -> list[ScriptedCall]:
    return [ScriptedCall(tool, {"room": room})]


each_tool = pytest.mark.parametrize("tool", ["stir", "mail", "light"])


@each_tool
async def test_more_than_an_hour_allows_is_refused_with_a_time_and_runs_when_it_has_come(
    tool: str,
) -> None:
    clock = VirtualClock()
    rule = LimitRule(per_hour=2, line="caal.toml, line 4")
    agent = House(CallLimits([rule], clock=clock.time))
    replies: list[Any] = [call(tool), "Done."] * 2 + [call(tool), call(tool), "Done."]
    async with AgentConversation(agent, ScriptedModel(*replies)) as talk:
        await talk.say("do it")
        clock.advance(600)
        await talk.say("again")
        clock.advance(60)
        refused = await talk.say("and again")
        clock.advance(49 * 60)
        done = await talk.say("now")
        decisions = [event.decisions for event in talk.events_of(ToolCallEnded)]
    (limited,) = refused.calls
    assert limited.outcome == "refused"
    assert "it may run twice an hour, and has. It can run again in 49 minutes" in str(
        limited.result
    )
    assert refused.text == (
        "Sorry, I may do that only twice an hour. I can do it again in 49 minutes."
    )
    assert [each.verdict for (each,) in decisions] == ["allowed", "allowed", "refused", "allowed"]
    assert decisions[2][0].line == "caal.toml, line 4, per_hour = 2"
    assert done.calls[0].outcome == "ok"
    assert agent.ran == [tool] * 3


async def test_a_turns_limit_begins_anew_with_the_next_words_and_is_said_once() -> None:
    agent = House(CallLimits([LimitRule(per_turn=2)]))
    rooms = [ScriptedCall("light", {"room": str(number)}) for number in range(5)]
    model = ScriptedModel(rooms, "Two are lit.", call("stir"), "Done.")
    async with AgentConversation(agent, model) as talk:
        turn = await talk.say("light five rooms")
        after = await talk.say("stir")
    assert [each.outcome for each in turn.calls] == ["ok", "ok", "refused", "refused", "refused"]
    assert turn.text.count("I may do that only twice for one request") == 1
    assert after.calls[0].outcome == "ok"


async def test_a_reply_of_calls_that_are_all_refused_ends_the_turn_with_one_sentence() -> None:
    agent = House(CallLimits([LimitRule(per_hour=1)]))
    three = [ScriptedCall("light", {"room": str(number)}) for number in range(3)]
    model = ScriptedModel(call("stir"), "Stirred.", three, "Never asked.")
    async with AgentConversation(agent, model) as talk:
        await talk.say("stir")
        turn = await talk.say("light three rooms")
    assert [each.outcome for each in turn.calls] == ["refused"] * 3
    assert turn.text == "Sorry, I may do that only once an hour. I can do it again in 60 minutes."
    assert model.replies_left == 1


async def test_a_model_that_calls_on_after_a_refusal_is_to_answer_by_itself() -> None:
    agent = House(CallLimits([LimitRule(per_turn=1, tools=["light"])]))
    both = [*call("light"), *call("mail"), *call("light", "attic")]
    model = ScriptedModel(both, call("light", "attic"), "One is lit, and the mail is out.")
    async with AgentConversation(agent, model) as talk:
        turn = await talk.say("light and mail")
    assert turn.text.endswith("One is lit, and the mail is out.")
    assert turn.text.count("Sorry") == 1


async def test_rounds_of_one_turn_are_counted_together() -> None:
    agent = House(CallLimits([LimitRule(per_turn=2, tools=["light"])]))
    model = ScriptedModel(call("light", "a"), call("light", "b"), call("light", "c"))
    async with AgentConversation(agent, model) as talk:
        turn = await talk.say("light all")
    assert [each.outcome for each in turn.calls] == ["ok", "ok", "refused"]


@each_tool
async def test_a_call_that_failed_twice_is_not_made_a_third_time_and_ends_the_turn(
    tool: str,
) -> None:
    agent = House(CallLimits())
    agent.broken = True
    model = ScriptedModel(*[call(tool)] * 3, call(tool), "It failed.")
    async with AgentConversation(agent, model) as talk:
        turn = await talk.say("do it")
        assert model.replies_left == 2  # the model is not asked a fourth time
        (ended,) = talk.events_of(ToolCallEnded)[2:]
        await talk.say("try it again")
    assert [each.outcome for each in turn.calls] == ["error", "error", "refused"]
    assert turn.calls[2].result is not None
    assert json.loads(turn.calls[2].result)["message"].startswith(
        f"{tool} failed twice with these same arguments, so it was not run again."
    )
    assert turn.text == "Sorry, I tried that twice and it did not work, so I have stopped trying."
    assert ended.decisions[0].line.startswith("built in")
    assert agent.ran == [tool] * 3  # the next turn tries afresh


async def test_arguments_that_never_fit_end_the_turn_as_well() -> None:
    agent = House(CallLimits())
    wrong = [ScriptedCall("light", {"room": True})]
    model = ScriptedModel(wrong, wrong, wrong, "It is on.")
    async with AgentConversation(agent, model) as talk:
        turn = await talk.say("light it")
    assert [each.outcome for each in turn.calls] == ["error", "error", "refused"]
    assert turn.text.startswith("Sorry, I tried that twice")
    assert model.replies_left == 1
    assert agent.ran == []


async def test_other_arguments_and_another_tool_may_still_be_tried() -> None:
    agent = House(CallLimits())
    agent.broken = True
    model = ScriptedModel(call("light"), call("light"), call("light", "attic"), "No.")
    async with AgentConversation(agent, model) as talk:
        turn = await talk.say("light it")
    assert [each.outcome for each in turn.calls] == ["error"] * 3


async def test_what_is_refused_further_in_counts_neither_as_a_call_nor_as_a_failure() -> None:
    refusing = True

    async def refuse(_: object) -> None:
        if refusing:
            raise ToolRefused("The person said no.")

    agent = House(CallLimits([LimitRule(per_hour=1, per_turn=1)]), BeforeCall(refuse))
    replies: list[Any] = [*[call("light")] * 3, "No.", call("light"), "Yes."]
    async with AgentConversation(agent, ScriptedModel(*replies)) as talk:
        turn = await talk.say("light it")
        refusing = False
        after = await talk.say("light it now")
    assert [each.result for each in turn.calls] == [turn.calls[0].result] * 3
    assert "said no" in str(turn.calls[0].result)
    assert after.calls[0].outcome == "ok"


async def test_calls_of_the_api_are_counted_for_themselves() -> None:
    agent = House(CallLimits([LimitRule(per_hour=1)]))
    answers: list[CallAnswer | CallFailure] = []
    async with AgentConversation(agent, ScriptedModel(call("mail"), "Done.")) as talk:
        for tool in ("light", "stir"):
            answer = await agent.on_tools(CallTool(name=tool, arguments={}))
            assert isinstance(answer, CallAnswer | CallFailure)
            answers.append(answer)
        turn = await talk.say("mail it")
    first, second = answers
    assert isinstance(first, CallAnswer)
    assert isinstance(second, CallFailure)
    assert (second.kind, turn.calls[0].outcome) == ("refused", "ok")
    assert "it may run once an hour" in second.message
    assert "Sorry" not in turn.text


async def test_each_tool_has_its_own_count_where_the_rule_says_so() -> None:
    agent = House(CallLimits([LimitRule(per_hour=1, each=["tool"])]))
    both: Sequence[ScriptedCall] = [*call("light"), *call("mail"), *call("light", "attic")]
    async with AgentConversation(agent, ScriptedModel(both, "Done.")) as talk:
        turn = await talk.say("light and mail")
    assert sorted(str(each.outcome) for each in turn.calls) == ["ok", "ok", "refused"]


async def test_a_rule_that_stays_keeps_its_count_when_others_change() -> None:
    rules = [LimitRule(per_hour=1, tools=["mail"], line="line 3")]
    agent = House(CallLimits(lambda: rules))
    replies: list[Any] = [call("mail"), "Sent.", call("mail"), call("light"), call("light")]
    async with AgentConversation(agent, ScriptedModel(*replies, "No.")) as talk:
        await talk.say("mail it")
        rules = [LimitRule(per_turn=1, tools=["light"]), replace(rules[0], line="line 9")]
        again = await talk.say("mail it again")
        light = await talk.say("light it twice")
        decisions = talk.events_of(ToolCallEnded)[1].decisions
    assert again.calls[0].outcome == "refused"
    assert decisions[0].line == "line 9, per_hour = 1"
    assert [each.outcome for each in light.calls] == ["ok", "refused"]


@pytest.mark.parametrize(
    ("wait_s", "words"),
    [(0.1, "in 10 seconds"), (41, "in 50 seconds"), (61, "in 2 minutes"), (3599, "in 60 minutes")],
)
def test_a_wait_is_told_as_people_say_it_and_is_never_too_short(wait_s: float, words: str) -> None:
    assert in_words(wait_s) == words


async def test_a_preview_names_the_limits_of_a_call_and_counts_nothing() -> None:
    clock = VirtualClock()
    rules = [
        LimitRule(per_turn=3, line="line 4"),
        LimitRule(per_hour=1, tools=("stir",), line="line 7"),
    ]
    limits = CallLimits(rules, clock=clock.time)
    spec = remote("n8n", "stir")
    request = ToolCallRequest(ToolEntry("stir", spec, {}), "c1", {}, Caller("terminal"))
    mail = replace(request, entry=ToolEntry("mail", replace(spec, name="mail", wanted="mail"), {}))
    for _ in range(2):  # the first has counted nothing
        lines = "line 4, per_turn = 3; line 7, per_hour = 1"
        assert limits.preview(request) == Preview("allowed", lines)
    await limits.run(request, lambda: asyncio.sleep(0))
    shown = limits.preview(request)
    assert (shown.verdict, shown.line) == ("refused", "line 7, per_hour = 1")
    assert shown.says == "Sorry, I may do that only once an hour. I can do it again in 60 minutes."
    assert limits.preview(mail) == Preview("allowed", "line 4, per_turn = 3")
    assert CallLimits().preview(request) == Preview("allowed", "no limit")
