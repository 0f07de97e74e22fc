"""Why a call failed, and what one gave, is shown to whoever may see it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from livekit.agents import function_tool
from livekit.agents.llm import ToolError

from caal_node.agent import CaalAgent
from caal_node.core.events import Event, ToolCallEnded, to_json
from caal_node.room.transcript import Transcript
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings

KEY = "correct-horse-battery-staple"


class Lamp(CaalAgent):
    @function_tool
    async def act(self, how: str) -> Any:
        """Does it."""
        match how:
            case "told":
                raise ToolError(f"the bulb\nis broken, {KEY}")
            case "raised":
                raise ValueError(f"no userdata, {KEY}" + "." * 100_000)
            case _:
                return {"state": "on", "key": KEY, "rest": "x" * 1_000}


async def ended(how: str) -> ToolCallEnded:
    settings = plain_settings(CAAL_API_KEY=KEY)
    agent = Lamp(settings=settings, tiers={}, warm=False)
    model = ScriptedModel([ScriptedCall("act", {"how": how})], "Well.")
    async with AgentConversation(agent, model) as talk:
        record = await talk.say("act")
    (event,) = (each for each in record.events if isinstance(each, ToolCallEnded))
    assert KEY not in to_json(event)
    return event


@pytest.mark.parametrize(
    ("how", "said"), [("told", "the bulb is broken, ***"), ("raised", "ValueError: no userdata")]
)
async def test_why_a_call_failed_is_one_short_line_without_secrets(how: str, said: str) -> None:
    event = await ended(how)
    assert event.outcome == "error"
    assert event.reason.startswith(said)
    assert len(event.reason) <= 300
    assert not event.result


async def test_of_a_result_the_beginning_is_shown() -> None:
    event = await ended("well")
    assert event.outcome == "ok"
    assert event.result.startswith('{"state":"on"')
    assert len(event.result) <= 300
    assert not event.reason


@pytest.mark.parametrize("shown", [False, True])
async def test_a_room_sees_neither_where_it_sees_no_arguments(shown: bool) -> None:
    got: list[str] = []

    async def send(text: str) -> None:
        got.append(text)

    event: Event = ToolCallEnded("c1", "act", "agent", "error", 1, reason="why", result="what")
    transcript = Transcript(send, show_arguments=shown)
    transcript(event)
    await transcript.aclose()
    (sent,) = map(json.loads, got)
    assert (sent["reason"], sent["result"]) == (("why", "what") if shown else ("", ""))
