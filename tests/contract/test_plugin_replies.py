"""What another LiveKit plugin's model replies is heard as a local model's reply is: no call, marker
or data is spoken. Here it is LiveKit's plugin for OpenAI, asked by a `CaalAgent`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from livekit.plugins import openai

from caal_node.agent import CaalAgent
from caal_node.config.settings import load_settings
from tests.stand_ins.conversation import NOWHERE, Conversation, FakeTier
from tests.stand_ins.stand_in_model import Call, StandInModel

WEATHER = ("get_weather", {"city": "Paris"})
IN_TEXT = {
    "an object": '{"name": "get_weather", "arguments": {"city": "Paris"}}',
    "behind words": 'Let me see. {"name": "get_weather", "arguments": {"city": "Paris"}}',
    "hermes": '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>',
    "python": "[get_weather(city='Paris')]",
    "harmony": '<|channel|>commentary to=functions.get_weather<|message|>{"city": "Paris"}<|call|>',
}
DATA = {"an object": '{"albums": ["Blue"]}', "a list": '["Blue", "Hejira"]'}


@asynccontextmanager
async def talking(server: StandInModel, **options: Any) -> AsyncGenerator[Conversation]:
    model = openai.LLM(model=server.model, base_url=server.openai_url, api_key="none")
    tier = FakeTier()
    settings = load_settings({"CAAL_CUES": "off"}, NOWHERE)
    agent = CaalAgent(settings=settings, tiers={"n8n": tier}, **options)
    try:
        async with Conversation(agent, model, tier) as talk:  # pyright: ignore[reportArgumentType]
            yield talk
    finally:
        await model.aclose()


@pytest.mark.parametrize("reply", IN_TEXT.values(), ids=IN_TEXT)
async def test_a_call_in_its_text_is_run_and_never_spoken(reply: str) -> None:
    async with StandInModel([reply], ["It is 21."]) as server, talking(server) as talk:
        said = await talk.ask("weather in Paris?")
        assert talk.tier.calls == [WEATHER]
        assert said.removeprefix("Let me see. ") == "It is 21."


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
async def test_data_is_not_spoken_and_it_is_asked_for_words(data: str) -> None:
    async with StandInModel([data], ["You have Blue."]) as server, talking(server) as talk:
        assert await talk.ask("which albums do I have?") == "You have Blue."
        assert not talk.tier.calls


async def test_thinking_and_markers_are_not_spoken() -> None:
    reply = "<think>Paris, so</think>It is <|im_end|>"
    async with StandInModel([reply]) as server, talking(server) as talk:
        assert await talk.ask("weather in Paris?") == "It is"


async def test_a_call_in_text_that_repeats_its_structured_call_runs_once() -> None:
    structured = Call("get_weather", {"city": "Paris"}, id="c1")
    async with (
        StandInModel([IN_TEXT["an object"], structured], ["It is 21."]) as server,
        talking(server) as talk,
    ):
        assert await talk.ask("weather in Paris?") == "It is 21."
        assert talk.tier.calls == [WEATHER]


async def test_words_stay_as_they_are_and_come_as_they_are_written() -> None:
    words = ["It is 21 degrees, ", "and {maybe} [it] is, ", "stays so: see f(x)."]
    async with StandInModel([*words]) as server, talking(server) as talk:
        assert await talk.ask("weather in Paris?") == "".join(words)
