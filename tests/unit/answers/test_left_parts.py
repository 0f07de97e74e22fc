"""Requests for several things, of which the model does one: whole turns with a script, and what is
found in labelled requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from caal_node.agent import CaalAgent
from caal_node.answers.claims import left_part
from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import UserItem
from caal_node.core.prompt_files import sentence
from caal_node.grounding.ledger import LedgerEntry
from caal_node.models.question import Question
from caal_node.testing import (
    AgentConversation,
    ScriptedCall,
    ScriptedModel,
    ScriptedReply,
    plain_settings,
)
from tests.bench.conversation_household import Household
from tests.bench.spoken_requests import load

BOTH = "lock the front door and the garage"
FRONT, GARAGE = (ScriptedCall("lock_door", {"door": door}) for door in ("front door", "garage"))
LOCKED = "The front door is locked."
LEFT = sentence("part_not_done").replace("{part}", "the garage")


class Talk(AgentConversation):
    """A conversation over fourteen tools of a household."""

    def __init__(self, *replies: ScriptedReply, native: bool = True) -> None:
        self.house = Household()
        self.tier = self.house.source
        agent = CaalAgent(settings=plain_settings(), tiers={"mcp": self.tier}, warm=False)
        self.scripted = ScriptedModel(*replies, native_tools=native)
        super().__init__(agent, self.scripted)


async def test_a_part_that_no_call_was_for_is_asked_for_once_and_done() -> None:
    async with Talk([FRONT], LOCKED, [GARAGE], "The garage is locked, too.") as talk:
        turn = await talk.say(BOTH)
        assert turn.text == f"{LOCKED} The garage is locked, too."
        assert [arguments["door"] for _, arguments in talk.tier.calls] == ["front door", "garage"]
        again = talk.scripted.requests[2]
        assert again.must_call
        assert "the garage" in str(again.items[-1])


GATE = ScriptedCall("lock_door", {"door": "garden gate"})
OFFICE, NURSERY = (
    ScriptedCall("set_temperature", {"room": room, "degrees": degrees})
    for room, degrees in (("office", 20), ("nursery", 22))
)


@pytest.mark.parametrize(
    ("said", "first", "second"),
    [
        ("lock the front door and the garden gate", FRONT, GATE),
        ("set the office to 20 and the nursery to 22", OFFICE, NURSERY),
    ],
)
async def test_one_more_thing_that_is_only_named_is_a_part(
    said: str, first: ScriptedCall, second: ScriptedCall
) -> None:
    async with Talk([first], "Done.", [second], "That one, too.") as talk:
        assert (await talk.say(said)).text == "Done. That one, too."
        assert [arguments for _, arguments in talk.tier.calls] == [
            first.arguments,
            second.arguments,
        ]


@pytest.mark.parametrize(
    "second", ["The garage is locked.", [FRONT], [ScriptedCall("play_music", {"what": "jazz"})]]
)
async def test_what_is_not_done_when_asked_for_is_told(second: ScriptedReply) -> None:
    async with Talk([FRONT], LOCKED, second) as talk:
        assert (await talk.say(BOTH)).text == f"{LOCKED} {LEFT}"
        assert len(talk.tier.calls) == 1, "what was done is not done again"


async def test_a_request_for_it_that_fails_is_told_as_well() -> None:
    async with Talk([FRONT], LOCKED, OSError("gone")) as talk:
        assert (await talk.say(BOTH)).text == f"{LOCKED} {LEFT}"


async def test_two_tools_are_two_parts() -> None:
    eggs = ScriptedCall("add_to_list", {"item": "eggs"})
    light = ScriptedCall("set_light", {"room": "cellar", "state": "off"})
    said = "put eggs on the shopping list and turn off the light in the cellar"
    async with Talk([eggs], "I've added the eggs.", [light], "The light is off.") as talk:
        turn = await talk.say(said)
        assert turn.text == "I've added the eggs. The light is off."
        assert [tool for tool, _ in talk.tier.calls] == ["add_to_list", "set_light"]


async def test_it_is_so_where_calls_are_written_as_text() -> None:
    def called(door: str) -> str:
        return json.dumps({"calls": [{"name": "lock_door", "arguments": {"door": door}}]})

    replies = called("front door"), LOCKED, called("garage"), "The garage is locked, too."
    async with Talk(*replies, native=False) as talk:
        await talk.say(BOTH)
        assert [arguments["door"] for _, arguments in talk.tier.calls] == ["front door", "garage"]


@pytest.mark.parametrize(
    ("said", "call", "answer"),
    [
        (BOTH, ScriptedCall("lock_door", {"door": "all doors"}), "All is locked."),
        (BOTH, ScriptedCall("lock_door", {"door": "front door and garage"}), "Both are locked."),
        (BOTH, FRONT, "The front door is locked. Which garage do you mean?"),
        (BOTH, FRONT, "The front door is locked, but I could not reach the garage."),
        ("lock the front door, not the garage", FRONT, LOCKED),
        ("lock the front door if the garage is locked", FRONT, LOCKED),
        ("sperr die front door ab und nicht die garage", FRONT, LOCKED),
        ("lock the front door and good night", FRONT, LOCKED),
        ("lock the front door and the kids are asleep", FRONT, LOCKED),
        ("lock the front door and the garden gate", FRONT, "The gate is locked, and the door."),
        ("lock the front door and tell me what the garage is for", FRONT, LOCKED),
        ("play some jazz and rock music", ScriptedCall("play_music", {"what": "jazz"}), "Enjoy."),
    ],
)
async def test_where_nothing_is_certainly_left_nothing_is_asked_again(
    said: str, call: ScriptedCall, answer: str
) -> None:
    async with Talk([call], answer) as talk:
        await talk.say(said)
        assert len(talk.scripted.requests) == 2


async def test_behind_a_call_that_failed_nothing_more_is_asked_for() -> None:
    cellar = ScriptedCall("lock_door", {"door": "cellar"})
    async with Talk([cellar], "The cellar could not be locked.") as talk:
        talk.house.gives = {"lock_door": {"error": "the bolt is jammed"}}
        await talk.say("lock the cellar door and the garage")
        assert len(talk.scripted.requests) == 2


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


@pytest.mark.parametrize("examples", [True, False])
def test_nothing_is_left_of_labelled_requests_with_all_their_calls(examples: bool) -> None:
    left: list[str] = []
    for name in ("measured", "tuning", "needs"):
        requests = load(name)
        tools = PromptTools(requests.tools, requests.examples if examples else {})
        for request in requests.requests:
            calls = [
                LedgerEntry(
                    "1", tool, {key: _first(value) for key, value in wanted.items()}, "done"
                )
                for tool, wanted in request.calls
            ]
            question = Question((UserItem(request.say),), tools)
            if left_part(question, calls, "", {}) is not None:
                left.append(request.say)
    assert left == []
