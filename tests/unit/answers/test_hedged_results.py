"""Whole turns of an agent whose model denies access to what a tool has found, with a script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.agent import CaalAgent
from caal_node.answers.doubts import TOLD_CHARS, found_result, said_of
from caal_node.core.prompt_files import read, sentence
from caal_node.core.tool_spec import ToolSpec
from caal_node.grounding.ledger import Ledger, LedgerEntry
from caal_node.testing import (
    AgentConversation,
    ScriptedCall,
    ScriptedModel,
    ScriptedReply,
    ScriptedToolSource,
    plain_settings,
)

WEATHER = ToolSpec(
    *("n8n", "n8n", "get_weather", "get_weather", "The weather of a town, now and today."),
    {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    effect="read",
)
CALL = ScriptedCall("get_weather", {"town": "Cork"})
ASKED = "what's the weather like in Cork"
HEDGE = "I'm sorry, but I don't have access to real-time weather data."
FOUND = {"town": "Cork", "sky": "light rain", "degrees": 11}


class Talk(AgentConversation):
    """A conversation whose tool tells the weather."""

    def __init__(self, *replies: ScriptedReply, result: Any = FOUND, **settings: str) -> None:
        self.result = result
        tier = ScriptedToolSource(WEATHER, answer=self._answer)
        agent = CaalAgent(settings=plain_settings(**settings), tiers={"n8n": tier}, warm=False)
        self.scripted = ScriptedModel(*replies)
        super().__init__(agent, self.scripted)

    async def _answer(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        return self.result


@pytest.mark.parametrize("detection", ["complete", "streamed"])
@pytest.mark.parametrize(
    "hedge",
    [
        HEDGE,
        "As an AI I can't look up the weather, please check a weather website.",
        "Leider habe ich keinen Zugriff auf aktuelle Wetterdaten.",
    ],
)
async def test_a_reply_that_denies_what_was_found_is_asked_for_once_more(
    detection: str, hedge: str
) -> None:
    said = "Light rain in Cork, at eleven degrees."
    async with Talk([CALL], hedge, said, CAAL_DETECTION=detection) as talk:
        assert (await talk.say(ASKED)).text == said
        assert len(talk.scripted.requests) == 3
        assert read("result_there.md") in str(talk.scripted.requests[2].items[-1])


async def test_where_it_is_denied_twice_the_result_is_said() -> None:
    async with Talk([CALL], HEDGE, HEDGE) as talk:
        said = (await talk.say(ASKED)).text
        assert said == sentence("result_is").replace(
            "{result}", "town Cork, sky light rain, degrees 11"
        )
        assert len(talk.scripted.requests) == 3


@pytest.mark.parametrize(
    "answer",
    [
        "It rains a little in Cork, and it has eleven degrees.",
        "I can't tell you about tomorrow, but right now it rains and has eleven degrees.",
    ],
)
async def test_an_answer_is_said_as_it_is(answer: str) -> None:
    async with Talk([CALL], answer) as talk:
        assert (await talk.say(ASKED)).text == answer
        assert len(talk.scripted.requests) == 2


@pytest.mark.parametrize("result", [{"results": []}, "No data found."])
async def test_behind_a_result_with_nothing_in_it_a_hedge_may_be_said(result: Any) -> None:
    async with Talk([CALL], HEDGE, result=result) as talk:
        await talk.say(ASKED)
        assert len(talk.scripted.requests) == 2


async def test_it_can_be_switched_off() -> None:
    async with Talk([CALL], HEDGE, CAAL_CHECKS="claims,hedges,needless_calls,references") as talk:
        assert (await talk.say(ASKED)).text == HEDGE


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_no_result_is_said_at_length(value: Any) -> None:
    assert len(said_of(json.dumps(value))) <= TOLD_CHARS


def test_a_text_is_said_as_it_is_and_values_with_their_names() -> None:
    assert said_of("Rain, 11 degrees.") == "Rain, 11 degrees"
    assert said_of('{"items": [{"due_date": "Friday", "done": false}, 3]}') == (
        "due date Friday, items 3"
    )


def test_of_what_a_search_found_elsewhere_nothing_is_said() -> None:
    notes = "The plumber is at 555 0148."
    for asked, found in (("what's the capital of Portugal", None), ("the plumber's number", notes)):
        entry = LedgerEntry("c1", "search_notes", {"query": asked}, "done", notes, "read")
        assert found_result(Ledger(asked, (entry,))) == (found and found.rstrip("."))
