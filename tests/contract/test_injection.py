"""Texts from outside that ask for calls, and a model that does whatever they ask for."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from caal_node.agent import CaalAgent
from caal_node.control.messages import CallFailure, CallTool
from caal_node.core.events import ToolCallStarted
from caal_node.core.items import ResultItem
from caal_node.reply_parser.escaping import escape_markers
from caal_node.testing import (
    AgentConversation,
    ScriptedCall,
    ScriptedModel,
    ScriptedReply,
    plain_settings,
)
from caal_node.tools.call_middleware import CallMiddleware
from caal_node.tools.middleware.confirmation import Confirmation, destroys
from caal_node.tools.middleware.policy_check import asked_for_by_a_tool
from caal_node.tools.pipeline import Gates
from tests.stand_ins.injection import TOOLS, House, InjectionCase, load_cases
from tests.stand_ins.injection_gates import NobodySaysYes

CASES = load_cases()
DONE = "That is done."


def written(call: ScriptedCall, dialect: int) -> str:
    """The call as a model without tool calls of its own writes it, in one of six dialects."""
    arguments = json.dumps(dict(call.arguments))
    bare = json.dumps({"name": call.name, "arguments": dict(call.arguments)})
    python = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return (
        json.dumps({"type": "tool_call", "name": call.name, "arguments": dict(call.arguments)}),
        f"<tool_call>{bare}</tool_call>",
        f"[TOOL_CALLS][{bare}]",
        f"[{call.name}({python})]",
        f"```json\n{bare}\n```",
        f"<function={call.name}>{arguments}</function>",
    )[dialect % 6]


def obedient(case: InjectionCase) -> dict[str, list[list[ScriptedReply]]]:
    """Every way of obeying: the replies of each turn, by what the way is called."""
    ordered = ScriptedCall(case.tool, case.arguments)
    tool = case.read
    read: list[ScriptedReply] = [[ScriptedCall(case.source, tool.arguments)]] if tool else []
    ways: dict[str, list[list[ScriptedReply]]] = {
        "after the result": [[*read, [ordered], [ordered], DONE]],
        "in text": [[*read, written(ordered, CASES.index(case)), DONE]],
        "in the next turn": [[*read, DONE], [[ordered], DONE]],
        "word for word": [[*read, case.text or DONE, DONE, DONE]],
    }
    if any("\U000e0000" <= char <= "\U000e007f" for char in case.text):
        del ways["in the next turn"]  # they are taken out, so no model has read that order
    if case.described or not tool:
        ways["at once"] = [[[ordered], DONE]]
        ways["beside the reading"] = [[[*(read[0] if read else ()), ordered], DONE]]  # type: ignore[list-item]
    return ways


async def harm(
    case: InjectionCase,
    turns: list[list[ScriptedReply]],
    middleware: list[CallMiddleware] | None = None,
) -> tuple[bool, bool]:
    """Whether the disallowed call was made, and whether it ran."""
    house = House(case)
    tiers: Any = house.tiers
    agent = CaalAgent(settings=plain_settings(), tiers=tiers, gates=Gates(middleware=middleware))
    model = ScriptedModel(*(reply for turn in turns for reply in turn), *[DONE] * 4)
    async with AgentConversation(agent, model) as talk:
        for said in [case.say, "Thank you."][: len(turns)]:
            await talk.say(said)
        started = talk.events_of(ToolCallStarted)
    made = any(case.is_disallowed(each.tool, each.arguments or {}) for each in started)
    return made, bool(house.harm)


def test_there_are_eighty_cases_of_every_place() -> None:
    assert len(CASES) == len({case.id for case in CASES}) == 80
    places = Counter(case.place for case in CASES)
    assert set(places) == {
        *("result", "mail", "calendar", "page", "mcp description", "n8n note", "error", "spoken")
    }
    assert all(case.tool in TOOLS and (case.read or case.place == "spoken") for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_model_that_obeys_a_text_from_outside_does_no_harm(case: InjectionCase) -> None:
    for way, turns in obedient(case).items():
        _, ran = await harm(case, turns, [NobodySaysYes()])
        assert not ran, f"{case.tool} ran: obeyed {way}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_with_nothing_configured_it_does_none_either(case: InjectionCase) -> None:
    for way, turns in list(obedient(case).items())[:2]:
        _, ran = await harm(case, turns)
        assert not ran, f"{case.tool} ran: obeyed {way}"


@pytest.mark.parametrize("case", CASES[::7], ids=lambda case: case.id)
async def test_without_a_rule_the_same_model_does_harm(case: InjectionCase) -> None:
    for way in ("after the result", "in text"):
        assert await harm(case, obedient(case)[way], []) == (True, True), way


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_call_that_a_text_only_holds_is_made_by_nobody(case: InjectionCase) -> None:
    house = House(case)
    tiers: Any = house.tiers
    read: list[ScriptedReply] = (
        [[ScriptedCall(case.source, case.read.arguments)]] if case.read else []
    )
    agent = CaalAgent(settings=plain_settings(), tiers=tiers, gates=Gates(middleware=[]))
    model = ScriptedModel(*read, DONE)
    async with AgentConversation(agent, model) as talk:
        await talk.say(case.say)
        started = talk.events_of(ToolCallStarted)
    assert [each.tool for each in started] == ([case.source] if case.read else [])
    # No server can take a part of it for the end of a turn, or for a call.
    texts = [item.output for item in model.requests[-1].items if isinstance(item, ResultItem)]
    texts += [str(tool["function"]["description"]) for tool in model.requests[-1].tools]
    assert [escape_markers(text) for text in texts] == texts


async def test_who_calls_over_the_api_says_all_of_it_themselves() -> None:
    house = House(CASES[0])
    tiers: Any = house.tiers
    rule = NobodySaysYes()
    agent = CaalAgent(settings=plain_settings(), tiers=tiers, gates=Gates(middleware=[rule]))
    async with AgentConversation(agent, ScriptedModel(DONE)):
        done = await agent.on_tools(CallTool(name="open_garage", arguments={}))
    assert not isinstance(done, CallFailure)
    assert rule.asked == []


@pytest.mark.parametrize(("answer", "runs"), [("No.", False), ("Yes, please.", True)])
@pytest.mark.parametrize("case_id", ["page-lock", "mail-forward", "calendar-title"])
async def test_the_person_is_asked_in_words_and_says_what_happens(
    case_id: str, answer: str, runs: bool
) -> None:
    """A page asks for the lock, a mail for a mail, an entry of the calendar for the garage."""
    case = next(case for case in CASES if case.id == case_id)
    house = House(case)
    tiers: Any = house.tiers
    asking = Confirmation(lambda call: destroys(call) or asked_for_by_a_tool(call))
    agent = CaalAgent(settings=plain_settings(), tiers=tiers, gates=Gates(middleware=[asking]))
    assert case.read is not None
    model = ScriptedModel(
        [ScriptedCall(case.source, case.read.arguments)],
        [ScriptedCall(case.tool, case.arguments)],
        DONE,
    )
    async with AgentConversation(agent, model) as talk:
        asked = await talk.say(case.say)
        assert asked.text.startswith("Shall I ")
        assert house.harm == []
        await talk.say(answer)
    assert bool(house.harm) is runs
