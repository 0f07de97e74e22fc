"""A reply that says it cannot know, though a search tool is there, becomes one search."""

from __future__ import annotations

import pytest

from caal_node.core.tool_spec import ToolSpec
from tests.stand_ins.conversation import FakeTier, conversation, weather_spec
from tests.stand_ins.stand_in_model import Call, StandInModel

HEDGE = "I'm sorry, but I don't have access to real-time information, so I can't tell you."
SEARCH = ToolSpec(
    "n8n",
    "n8n",
    "web_search",
    "web_search",
    "Search the web for current information.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
ASKED = [("web_search", {"query": "who won the match last night?"})]


@pytest.mark.parametrize("detection", ["complete", "streamed"])
async def test_a_hedge_is_not_spoken_and_the_search_is_made(detection: str) -> None:
    tier = FakeTier(SEARCH, weather_spec())
    async with (
        StandInModel([HEDGE], ["The blue team won."]) as server,
        conversation(server, tier=tier, env={"CAAL_DETECTION": detection}) as talk,
    ):
        assert await talk.ask("who won the match last night?") == "The blue team won."
        assert tier.calls == ASKED


async def test_a_hedge_in_the_second_sentence_of_a_whole_reply_is_seen() -> None:
    tier = FakeTier(SEARCH)
    reply = "That is a question about last night's football match in your town. " + HEDGE
    async with (
        StandInModel([reply], ["The blue team won."]) as server,
        conversation(server, tier=tier) as talk,
    ):
        assert await talk.ask("who won the match last night?") == "The blue team won."


async def test_a_hedge_after_another_tool_is_searched_for_too() -> None:
    tier = FakeTier(SEARCH, weather_spec())
    async with (
        StandInModel(
            [Call("get_weather", {"city": "Paris"})], [HEDGE], [HEDGE], ["The blue team won."]
        ) as server,
        # Else nobody needs the weather for this.
        conversation(
            server, tier=tier, env={"CAAL_CHECKS": "claims,facts,hedges,references"}
        ) as talk,
    ):
        assert await talk.ask("who won the match last night?") == "The blue team won."
        assert tier.calls[1:] == ASKED


async def test_a_call_of_the_model_s_own_behind_a_hedge_is_made_in_place_of_a_search() -> None:
    tier = FakeTier(weather_spec(), SEARCH)
    hedged = "I don't have access to real-time information for Rome yet. Let me check it. "
    paris, rome = (Call("get_weather", {"city": city}) for city in ("Paris", "Rome"))
    async with (
        StandInModel([paris], [hedged, rome], ["Sunny in both."]) as server,
        conversation(server, tier=tier) as talk,
    ):
        said = await talk.ask("weather in Paris and Rome?")
        assert said == hedged + "Sunny in both."
        assert [name for name, _ in tier.calls] == ["get_weather", "get_weather"]


async def test_a_turn_searches_once_and_then_says_what_was_found() -> None:
    tier = FakeTier(SEARCH)
    async with (
        StandInModel([HEDGE], [HEDGE], [HEDGE]) as server,
        conversation(server, tier=tier) as talk,
    ):
        said = await talk.ask("who won the match last night?")
        assert said.startswith("This is what I found: ")
        assert len(tier.calls) == 1


@pytest.mark.parametrize(
    ("tier", "env"),
    [
        (FakeTier(weather_spec()), {}),
        (FakeTier(SEARCH), {"CAAL_CHECKS": "claims,facts,needless_calls,references"}),
    ],
    ids=["no search tool", "switched off"],
)
async def test_without_a_search_the_reply_stands(tier: FakeTier, env: dict[str, str]) -> None:
    async with (
        StandInModel([HEDGE]) as server,
        conversation(server, tier=tier, env=env) as talk,
    ):
        assert await talk.ask("who won the match last night?") == HEDGE
        assert tier.calls == []


@pytest.mark.parametrize("detection", ["complete", "streamed"])
async def test_any_other_reply_is_spoken_to_the_last_word(detection: str) -> None:
    reply = "Yes. It was a long evening, and the blue team won by two goals. Shall I go on?"
    async with (
        StandInModel([reply]) as server,
        conversation(server, tier=FakeTier(SEARCH), env={"CAAL_DETECTION": detection}) as talk,
    ):
        assert await talk.ask("who won the match last night?") == reply
