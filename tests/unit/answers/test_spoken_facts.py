"""Whole turns of an agent whose model tells what its tool has not said, with a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caal_node.agent import CaalAgent
from caal_node.core.errors import ToolBroke
from caal_node.core.events import FactCorrected
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import ToolSpec
from caal_node.testing import (
    AgentConversation,
    ScriptedCall,
    ScriptedModel,
    ScriptedReply,
    ScriptedToolSource,
    plain_settings,
)

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolSpec("n8n", "n8n", "get_weather", "get_weather", "The weather.", CITY, effect="read")
CORK = ScriptedCall("get_weather", {"city": "Cork"})
ASKED = "how is the weather in Cork"


class Talk(AgentConversation):
    """A conversation whose tool knows the weather."""

    def __init__(self, result: Any, *replies: ScriptedReply, **settings: str) -> None:
        async def answer(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
            if isinstance(result, Exception):
                raise result
            return result

        source = ScriptedToolSource(WEATHER, answer=answer)
        agent = CaalAgent(settings=plain_settings(**settings), tiers={"n8n": source}, warm=False)
        super().__init__(agent, ScriptedModel(*replies))


async def test_a_time_of_the_wrong_half_of_the_day_is_heard_rightly() -> None:
    said = "It is 6:32 PM. Take care!"
    async with Talk({"city": "Cork", "time": "06:32"}, [CORK], said) as talk:
        assert (await talk.say(ASKED)).text == "It is 6:32 AM. Take care!"


async def test_nothing_an_error_and_another_place_are_told_as_that() -> None:
    made_up = "In Cork it is 15 degrees."
    nothing = sentence("found_nothing_about").replace("{what}", "Cork")
    other = sentence("found_elsewhere").replace("{found}", "Boston").replace("{asked}", "Cork")
    for result, told in (
        ({"forecasts": []}, nothing),
        ({"city": "Boston", "temp_c": 15}, other),
        (ToolBroke("no answer"), sentence("found_failed")),
    ):
        async with Talk(result, [CORK], made_up) as talk:
            assert (await talk.say(ASKED)).text == told


async def test_each_corrected_fact_is_told_with_what_is_heard_in_its_place() -> None:
    said = "The gate is closed. Take care!"
    async with Talk({"name": "gate", "state": "open"}, [CORK], said) as talk:
        await talk.say(ASKED)
        assert talk.events_of(FactCorrected) == [
            FactCorrected("The gate is closed.", "The gate is open.")
        ]
    made_up = "In Cork it is 15 degrees. In Cork it is 16 degrees tonight."
    async with Talk({"forecasts": []}, [CORK], made_up) as talk:
        await talk.say(ASKED)
        nothing = sentence("found_nothing_about").replace("{what}", "Cork")
        assert [event.heard for event in talk.events_of(FactCorrected)] == [nothing, ""]


async def test_an_answer_that_is_right_tells_of_no_correction() -> None:
    async with Talk({"city": "Cork", "temp_c": 21}, [CORK], "It has 21 degrees.") as talk:
        await talk.say(ASKED)
        assert talk.events_of(FactCorrected) == []


async def test_off_lets_all_through() -> None:
    async with Talk(
        {"forecasts": []},
        [CORK],
        "It is 15 degrees.",
        CAAL_CHECKS="claims,hedges,needless_calls,references",
    ) as talk:
        assert (await talk.say(ASKED)).text == "It is 15 degrees."


async def test_facts_are_checked_where_claims_are_not() -> None:
    replies = [CORK], "In Cork it is 15 degrees."
    async with Talk(
        {"forecasts": []}, *replies, CAAL_CHECKS="facts,hedges,needless_calls,references"
    ) as talk:
        assert "15" not in (await talk.say(ASKED)).text


async def test_what_an_earlier_turn_has_found_may_be_told_again() -> None:
    replies = [CORK], "It is at 6:32 AM.", [CORK], "As I said, 6:32 AM. Not 6:32 PM."
    async with Talk({"sunrise": "06:32"}, *replies) as talk:
        assert (await talk.say(ASKED)).text == "It is at 6:32 AM."
        assert (
            await talk.say("are you sure about Cork")
        ).text == "As I said, 6:32 AM. Not 6:32 AM."
