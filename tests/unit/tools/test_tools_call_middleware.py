"""The owner's rules about calls: one list that every tier's calls go through, in its order."""

from __future__ import annotations

import time
from typing import Any

import pytest
from livekit.agents import function_tool

from caal_node import effect
from caal_node.agent import CaalAgent
from caal_node.control.messages import CallFailure, CallTool
from caal_node.core.errors import ToolRefused
from caal_node.core.events import Decision, ToolCallEnded, from_json, to_json
from caal_node.core.tool_spec import Caller, ToolSpec, name_reads
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings
from caal_node.tools.call_middleware import CallMiddleware, Proceed, ToolCallRequest
from caal_node.tools.effects import workflow_effect
from caal_node.tools.pipeline import Gates
from caal_node.tools.source import Arguments, ToolListing


class Noted(CallMiddleware):
    """Writes down each call that comes to it, then passes it on, refuses it or answers it."""

    name = "noted"

    def __init__(self, said: str = "", answer: Any = None) -> None:
        self.calls: list[ToolCallRequest] = []
        self._said, self._answer = said, answer

    async def run(self, call: ToolCallRequest, proceed: Proceed) -> Any:
        began = time.perf_counter()
        self.calls.append(call)
        if self._answer is not None:
            call.note(self.name, "dry_run", "here", began)
            return self._answer
        if self._said:
            call.note(self.name, "refused", "here", began)
            raise ToolRefused(self._said)
        call.note(self.name, "allowed", "here", began)
        return await proceed()


class Lamps:
    """A remote source of one tool."""

    def __init__(self) -> None:
        self.lit: list[Arguments] = []

    async def discover(self) -> ToolListing:
        rooms = {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]}
        return ToolListing((ToolSpec("mcp", "home", "light", "light", "Light.", rooms),))

    async def call(self, spec: ToolSpec, arguments: Arguments) -> Any:
        self.lit.append(arguments)
        return {"lit": True}

    async def aclose(self) -> None: ...


class Kitchen(CaalAgent):
    @function_tool
    @effect("destructive")
    async def wipe(self, what: str) -> str:
        """Wipe something."""
        return f"wiped {what}"

    @function_tool
    async def stir(self) -> str:
        """Stir."""
        return "stirred"


LIGHT = ScriptedCall("light", {"room": "hall"})
WIPE = ScriptedCall("wipe", {"what": "notes"})


@pytest.mark.parametrize("call", [LIGHT, WIPE])
async def test_a_call_of_any_tier_goes_through_the_list_in_its_order(call: ScriptedCall) -> None:
    first, second = Noted(), Noted()
    agent = Kitchen(
        settings=plain_settings(), tiers={"mcp": Lamps()}, gates=Gates(middleware=[first])
    )
    agent.middleware.append(second)
    async with AgentConversation(agent, ScriptedModel([call], "Done.")) as talk:
        turn = await talk.say("go")
        (ended,) = talk.events_of(ToolCallEnded)
    assert turn.calls[0].outcome == "ok"
    assert [seen.entry.exposed for seen in first.calls + second.calls] == [call.name] * 2
    assert first.calls[0].caller == Caller("terminal")
    assert [(each.by, each.verdict) for each in ended.decisions] == [("noted", "allowed")] * 2
    assert from_json(to_json(ended)) == ended


@pytest.mark.parametrize("call", [LIGHT, WIPE])
async def test_what_one_refuses_reaches_neither_the_next_nor_the_tool(call: ScriptedCall) -> None:
    lamps, behind = Lamps(), Noted()
    agent = Kitchen(
        settings=plain_settings(),
        tiers={"mcp": lamps},
        gates=Gates(middleware=[Noted("not now"), behind]),
    )
    async with AgentConversation(agent, ScriptedModel([call], "No.")) as talk:
        turn = await talk.say("go")
    assert turn.calls[0].outcome == "refused"
    assert "not now" in turn.calls[0].result
    assert (lamps.lit, behind.calls) == ([], [])


@pytest.mark.parametrize("call", [LIGHT, WIPE])
async def test_one_may_answer_in_place_of_the_tool_and_it_is_told_as_that(
    call: ScriptedCall,
) -> None:
    lamps = Lamps()
    agent = Kitchen(
        settings=plain_settings(),
        tiers={"mcp": lamps},
        gates=Gates(middleware=[Noted(answer="as if")]),
    )
    async with AgentConversation(agent, ScriptedModel([call], "No.")) as talk:
        turn = await talk.say("go")
    assert (turn.calls[0].outcome, turn.calls[0].result) == ("dry_run", "as if")
    assert lamps.lit == []


async def test_arguments_that_do_not_fit_come_to_none() -> None:
    noted = Noted()
    agent = Kitchen(
        settings=plain_settings(), tiers={"mcp": Lamps()}, gates=Gates(middleware=[noted])
    )
    async with AgentConversation(agent, ScriptedModel("Hello.")):
        failed = await agent.on_tools(CallTool(name="light", arguments={"room": 5}))
        await agent.on_tools(CallTool(name="light", arguments={"room": "hall"}))
    assert isinstance(failed, CallFailure)
    (only,) = noted.calls
    assert only.caller == Caller("api")


async def test_the_authors_mark_is_what_a_tool_may_do_at_worst() -> None:
    agent = Kitchen(settings=plain_settings(), tiers={})
    async with AgentConversation(agent, ScriptedModel("Hello.")):
        effects = {entry.exposed: entry.spec.effect for entry in agent.table}
    assert effects == {"wipe": "destructive", "stir": "write"}
    with pytest.raises(ValueError, match="destructive"):
        effect("harmless")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "method", "tags", "worst"),
    [
        ("get_weather", "GET", [], "read"),
        ("unlock_door", "GET", [], "write"),  # GET is what n8n's node begins with
        ("get_weather", "POST", [], "write"),
        ("get_weather", "DELETE", [], "destructive"),
        ("unlock_door", "POST", ["Read"], "read"),
        ("get_weather", "GET", ["home", "destructive", "read"], "destructive"),
    ],
)
def test_a_workflows_tag_counts_before_its_method(
    name: str, method: str, tags: list[str], worst: str
) -> None:
    assert workflow_effect(name, method, tags) == worst


def test_a_name_reads_where_its_verb_does_and_no_word_changes() -> None:
    assert name_reads("get_weather")
    assert not name_reads("get_and_delete")
    assert not name_reads("unlock")


def test_a_decision_is_read_back_from_its_line() -> None:
    decided = Decision("policy", "refused", "caal.toml, line 3", 0.02)
    ended = ToolCallEnded("c1", "light", "mcp", "refused", 1, (decided,))
    assert from_json(to_json(ended)) == ended
