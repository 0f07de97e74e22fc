"""Why a call failed, and what one gave, is shown to whoever may see it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from livekit.agents import RunContext, function_tool
from livekit.agents.llm import ToolError

from caal_node.agent import CaalAgent
from caal_node.conversation import TurnRecord
from caal_node.core.events import Event, ToolCallEnded, to_json
from caal_node.room.front_end import Transcript
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
            case "bare":
                raise KeyError("bulb")
            case _:
                return {"state": "on", "key": KEY, "rest": "x" * 1_000}

    @function_tool
    def dim(self) -> str:
        """Dims it."""
        return "dim"

    @function_tool
    async def count(self, context: RunContext[list[str]]) -> str:
        """Counts the lamps."""
        return str(len(context.userdata))


async def record_of(call: ScriptedCall) -> TurnRecord:
    settings = plain_settings(CAAL_API_KEY=KEY)
    agent = Lamp(settings=settings, tiers={}, warm=False)
    async with AgentConversation(agent, ScriptedModel([call], "Well.")) as talk:
        return await talk.say("act, dim it and count the lamps")


async def ended(how: str) -> ToolCallEnded:
    record = await record_of(ScriptedCall("act", {"how": how}))
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


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (ScriptedCall("act", {"how": "bare"}), r"^KeyError: 'bulb' \(.*reasons.py, line \d+\)$"),
        (ScriptedCall("act", {"hew": "bare"}), "^Error parsing arguments for .act.: .* how Field"),
        (ScriptedCall("dim"), "^TypeError: dim is a plain function; begin it with async def"),
        (ScriptedCall("count"), r"userdata is not set; return it from make_userdata\(\)"),
    ],
)
async def test_a_tools_author_reads_in_a_test_what_to_correct_and_where(
    call: ScriptedCall, said: str
) -> None:
    (record,) = (await record_of(call)).calls
    assert record.outcome == "error"
    assert re.search(said, record.reason)
    assert "\n" not in record.reason


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
