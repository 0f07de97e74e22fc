"""Whole turns of an agent whose model denies a tool that it has, with a script."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from caal_node.agent import CaalAgent
from caal_node.answers.doubts import is_refusal
from caal_node.core.prompt_files import fill, sentence
from caal_node.core.tool_spec import ToolSpec
from caal_node.testing import (
    AgentConversation,
    ScriptedCall,
    ScriptedModel,
    ScriptedReply,
    ScriptedToolSource,
    plain_settings,
)

LIGHT = ToolSpec(
    *("n8n", "n8n", "set_light", "set_light", "Switch the lights of a room on or off."),
    {
        "type": "object",
        "properties": {"room": {"enum": ["hallway", "kitchen"]}, "state": {"type": "string"}},
        "required": ["room", "state"],
    },
)
NOTE = ToolSpec(
    *("n8n", "n8n", "add_note", "add_note", "Write a note."),
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
HALLWAY = ScriptedCall("set_light", {"room": "hallway", "state": "off"})
ASKED = "uh kill the lights in the hallway"
REFUSED = "Sorry, I have no tool that can do that."
DATA = Path(__file__).parents[2] / "data"


class Talk(AgentConversation):
    """A conversation whose tools are the lights and a notebook."""

    def __init__(self, *replies: ScriptedReply, native: bool = True, **settings: str) -> None:
        self.tier = ScriptedToolSource(LIGHT, NOTE, answer=self._answer)
        agent = CaalAgent(settings=plain_settings(**settings), tiers={"n8n": self.tier}, warm=False)
        self.scripted = ScriptedModel(*replies, native_tools=native)
        super().__init__(agent, self.scripted)

    async def _answer(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        return {"ok": True}


@pytest.mark.parametrize("detection", ["complete", "streamed"])
@pytest.mark.parametrize(
    "refused",
    [
        REFUSED,
        "I'm sorry. I don't have the ability to control lights, I'm afraid.",
        "I'm afraid I can't control lights.",
        "Sorry, I am not able to switch lights on or off.",
    ],
)
async def test_a_denied_tool_that_fits_is_named_and_the_model_asked_once_more(
    detection: str, refused: str
) -> None:
    async with Talk(refused, [HALLWAY], "They are off.", CAAL_DETECTION=detection) as talk:
        turn = await talk.say(ASKED)
        assert turn.text == "They are off."
        assert talk.tier.calls == [("set_light", {"room": "hallway", "state": "off"})]
        first, again, _ = talk.scripted.requests
        assert again.items[:-1] == first.items[:-1], "the prompt begins as before"
        assert again.tools == first.tools
        named = fill("tool_fits.md", tool="set_light")
        assert str(again.items[-1]).count(named[:40]) == 1


async def test_it_is_so_where_calls_are_written_as_text() -> None:
    called = '{"calls": [{"tool": "set_light", "arguments": {"room": "hallway", "state": "off"}}]}'
    replies = f'{{"say": "{REFUSED}"}}', called, '{"say": "They are off."}'
    async with Talk(*replies, native=False) as talk:
        assert (await talk.say(ASKED)).text == "They are off."
        assert talk.tier.calls == [("set_light", {"room": "hallway", "state": "off"})]


async def test_what_is_refused_twice_is_heard_and_not_asked_a_third_time() -> None:
    async with Talk(REFUSED, "I really can't do that.") as talk:
        assert (await talk.say(ASKED)).text == "I really can't do that."
        assert talk.scripted.replies_left == 0


async def test_a_claim_in_the_second_reply_is_checked_as_any() -> None:
    async with Talk(REFUSED, "I've turned off the lights.", [HALLWAY], "Off.") as talk:
        assert (await talk.say("turn off the lights in the hallway")).text == "Off."
        assert talk.tier.calls == [("set_light", {"room": "hallway", "state": "off"})]


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        ("order me a pizza", REFUSED),
        ("fly me to the moon", "I can't do that."),
        (ASKED, "I can't do that without the room. Which one do you mean?"),
        (ASKED, "I'm not allowed to switch the lights at night."),
        (ASKED, "I can't switch the hallway light."),
        (ASKED, "I can't switch lights, as they are off at the fuse box."),
        (ASKED, "I can't switch lights for guests."),
        (ASKED, "I can't hear anything."),
        (ASKED, sentence("no_tool_for_that")),
    ],
)
async def test_a_refusal_that_may_be_right_is_heard(asked: str, reply: str) -> None:
    async with Talk(reply) as talk:
        assert (await talk.say(asked)).text == reply
        assert len(talk.scripted.requests) == 1


async def test_a_refusal_behind_a_call_is_heard() -> None:
    async with Talk([HALLWAY], "Sorry, I can't do that.") as talk:
        assert (await talk.say(ASKED)).text == "Sorry, I can't do that."
        assert len(talk.scripted.requests) == 2


async def test_nothing_is_asked_again_where_claims_are_not_checked() -> None:
    async with Talk(REFUSED, CAAL_CHECKS="off") as talk:
        assert (await talk.say(ASKED)).text == REFUSED


@pytest.mark.parametrize("name", ["ordinary_replies", "ordinary_replies_held_out"])
def test_no_ordinary_reply_is_a_refusal(name: str) -> None:
    lines = (DATA / f"{name}.txt").read_text("utf-8").splitlines()
    assert [line for line in lines if is_refusal(line)] == []
