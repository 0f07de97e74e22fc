"""The weather in whole conversations with an agent."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import httpx2

from caal_node.agent import CaalAgent
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.http_service import LateClient
from caal_node.toolsets.weather import Weather, WeatherOptions
from tests.stand_ins.weather_service import weather_service

NOW = datetime(2026, 11, 23, 13, 5, tzinfo=UTC)


@asynccontextmanager
async def talk_with(model: ScriptedModel, answer: Any = None) -> AsyncGenerator[AgentConversation]:
    transport = httpx2.MockTransport(answer or weather_service(NOW))
    toolset = Weather(
        WeatherOptions(home="Oslo"),
        ToolsetServices(now=lambda: NOW, timezone=UTC),
        client=LateClient(timeout_s=5, transport=transport),
    )
    agent = CaalAgent(settings=plain_settings(), tools=[toolset], tiers={}, warm=False)
    async with AgentConversation(agent, model) as talk:
        yield talk


async def test_the_weather_is_heard_without_another_request_and_kept_as_data() -> None:
    call = ScriptedCall("get_weather", {"when": "this weekend"})
    model = ScriptedModel([call], "The second day is dry.")
    async with talk_with(model) as talk:
        turn = await talk.say("What will the weekend be like?")
        assert turn.text.startswith("The weather in Oslo. Saturday: light rain")
        assert len(model.requests) == 1
        await talk.say("and the second one?")
    assert "Sunday 29 November 2026" in str(model.requests[-1].items)


async def test_a_place_that_the_model_left_out_is_the_one_that_was_asked_for() -> None:
    model = ScriptedModel([ScriptedCall("get_weather", {"when": "today", "about": "rain"})])
    async with talk_with(model) as talk:
        turn = await talk.say("Will it rain in Paris tomorrow?")
    assert turn.text.startswith("Rain is likely tomorrow in Paris, France")


async def test_a_service_that_is_away_is_a_sentence() -> None:
    def away(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("no", request=request)

    model = ScriptedModel([ScriptedCall("get_weather", {})])
    async with talk_with(model, away) as talk:
        turn = await talk.say("What's the weather like?")
    assert turn.text == "I can't reach the weather service right now."
    assert len(model.requests) == 1
