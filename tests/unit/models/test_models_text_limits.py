"""The limits of a turn that is asked by text are settings, with the values that they always had."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from livekit.agents import function_tool

from caal_node.agent import CaalAgent
from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import SystemItem, UserItem
from caal_node.models.backends.base import TextChunk
from caal_node.models.question import Question
from caal_node.models.strategies.base import TurnClock
from caal_node.models.strategies.text_protocol import (
    JsonReplyStrategy,
    TextProtocolStrategy,
    reply_schema,
)
from caal_node.reply_parser import ToolCallEnd
from caal_node.testing import AgentConversation, ScriptedModel, TurnRecord, plain_settings

SAY = json.dumps({"say": "Done."})


def calls(*texts: str) -> str:
    return json.dumps({"calls": [{"name": "note", "arguments": {"text": text}} for text in texts]})


class Notebook(CaalAgent):
    @function_tool
    async def note(self, text: str) -> Any:
        """Write down a note about one, two, three."""
        await asyncio.sleep(0.02)
        return {"notes": [{"id": n, "text": "x" * 100} for n in range(20)]}


async def turn(model: ScriptedModel, **limits: float) -> TurnRecord:
    settings = plain_settings(
        CAAL_TOOL_CALLS=json.dumps({"by": "text"} | limits), CAAL_MAX_TOOL_ROUNDS="8"
    )
    agent = Notebook(settings=settings, tiers={}, warm=False)
    async with AgentConversation(agent, model) as talk:
        return await talk.say("note one, two and three")


def by_text(*replies: str) -> ScriptedModel:
    return ScriptedModel(*replies, native_tools=False)


async def test_without_any_setting_three_rounds_of_calls_are_made() -> None:
    record = await turn(by_text(calls("one"), calls("two"), calls("three"), SAY))
    assert [call.outcome for call in record.calls] == ["ok"] * 3


@pytest.mark.parametrize(
    ("limits", "replies", "made"),
    [
        ({"replies": 1}, [calls("one"), SAY], 1),
        ({"calls": 2}, [calls("one", "two", "three"), SAY], 2),
        ({"turn_calls": 1}, [calls("one", "two"), SAY], 1),
        ({"seconds": 0.01}, [calls("one"), SAY], 1),
    ],
)
async def test_what_a_limit_ends(limits: dict[str, Any], replies: list[str], made: int) -> None:
    model = by_text(*replies)
    record = await turn(model, **limits)
    assert sum(call.outcome == "ok" for call in record.calls) == made
    assert record.text == "Done."
    if "calls" not in limits:
        assert model.requests[-1].schema == reply_schema(()), "the model may only speak"


async def test_arguments_beyond_the_payload_are_not_sent_to_a_tool() -> None:
    model = by_text(calls("one " * 100), calls("one"), SAY)
    record = await turn(model, payload=256)
    assert [call.outcome for call in record.calls] == ["ok"]


async def test_a_longer_observation_is_an_outline() -> None:
    seen: list[int] = []
    for chars in (3000, 500):
        model = by_text(calls("one"), SAY)
        await turn(model, observation=chars)
        last = model.requests[-1].items[-1]
        assert isinstance(last, UserItem)
        assert "notes" in last.text
        seen.append(len(last.text))
    assert seen[1] < 600 < seen[0]


def test_a_turn_lasts_from_the_first_request_with_its_words() -> None:
    now = 10.0
    clock = TurnClock(lambda: now)
    first, second = UserItem("go", "a"), UserItem("go", "b")
    assert clock.lasts([first]) == 0
    now = 15.0
    assert clock.lasts([first]) == 5
    assert clock.lasts([first, second]) == 0


@pytest.mark.parametrize(("small", "made"), [(False, True), (True, False)])
@pytest.mark.parametrize("strategy", [TextProtocolStrategy("jsonl"), JsonReplyStrategy()])
def test_a_large_model_that_is_asked_by_text_is_believed_as_one_that_calls_natively(
    strategy: Any, small: bool, made: bool
) -> None:
    lights: Any = {
        "type": "function",
        "function": {
            "name": "all_lights_off",
            "description": "Switch off all of the lights in the house.",
            "parameters": {"type": "object", "properties": {}},
        },
    }
    question = Question(
        (SystemItem("Be brief."), UserItem("good night")),
        PromptTools((lights,)),
        small_model=small,
    )
    reply = {
        "json": '{"calls": [{"name": "all_lights_off", "arguments": {}}]}',
        "jsonl": '{"type": "tool_call", "name": "all_lights_off", "arguments": {}}',
    }
    reader = strategy.reader(question)
    text = reply["json" if isinstance(strategy, JsonReplyStrategy) else "jsonl"]
    events = [*reader.feed(TextChunk(text)), *reader.finish()]
    assert any(isinstance(event, ToolCallEnd) for event in events) is made
