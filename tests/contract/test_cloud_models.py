"""Claude and Gemini by CAAL_API, through LiveKit's real plugins, over each wire format."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pytest

from caal_node.agent import CaalAgent
from caal_node.cli.checks.model import check_model
from caal_node.config.setting_tables import ToolCalls
from caal_node.control.messages import ModelRequest
from caal_node.core.errors import ConfigError, ModelMissing, ModelReplyError
from caal_node.core.items import UserItem
from caal_node.factories import make_llm
from caal_node.models.backends.base import BackendRequest
from caal_node.testing import AgentConversation, plain_settings
from tests.stand_ins.cloud_stand_ins import KEY, MODEL, CloudStandIn
from tests.stand_ins.conversation import FakeTier
from tests.stand_ins.stand_in_model import Call, StandInModel

APIS = pytest.mark.parametrize("api", ["anthropic", "google"])
KEYS = {"anthropic": "ANTHROPIC_API_KEY", "google": "GOOGLE_API_KEY"}
WEATHER = Call("get_weather", {"city": "Oslo"})


def variables(api: str, url: str, **more: str) -> Mapping[str, str]:
    return {"CAAL_API": api, "CAAL_MODEL": MODEL, "CAAL_BASE_URL": url, **more}


@APIS
async def test_a_turn_with_a_call_and_its_result(api: str) -> None:
    async with CloudStandIn(WEATHER, "Sunny there.", "You are welcome.") as service:
        settings = plain_settings(
            **variables(api, service.url, CAAL_API_KEY=KEY, CAAL_TOOL_CALLS="native")
        )
        model = make_llm(settings)
        tier = FakeTier()
        agent = CaalAgent(settings=settings, tiers={"n8n": tier}, warm=False)
        async with AgentConversation(agent, model) as talk:
            turn = await talk.say("weather in Oslo?")
            assert (turn.spoken, [call.tool for call in turn.calls]) == (
                "Sunny there.",
                ["get_weather"],
            )
            # Gemini refuses a history whose calls have lost their signatures.
            assert (await talk.say("thanks")).spoken == "You are welcome."
        await model.aclose()
    assert not model.retry_policy.stats.signals
    assert "sunny" in str(service.chats[1])


@APIS
async def test_how_it_is_asked_is_found_out_as_with_any_model(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEYS[api], KEY)
    async with CloudStandIn(WEATHER) as service:
        model = make_llm(plain_settings(**variables(api, service.url)))
        await model.find_strategy()
        assert model.retry_policy.native
        await model.aclose()
    assert "temperature" not in str(service.chats[0]), "the newest models refuse one"


@APIS
async def test_the_model_can_be_chosen_in_mid_conversation(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEYS[api], KEY)
    async with StandInModel(["Local."]) as local, CloudStandIn(WEATHER, "From afar.") as service:
        settings = plain_settings(
            OLLAMA_HOST=local.url, CAAL_MODEL=local.model, CAAL_MODEL_SERVERS=service.url
        )
        model = make_llm(settings.model_copy(update={"tool_calls": ToolCalls(by="native")}))
        agent = CaalAgent(settings=settings, tiers={}, warm=False)
        async with AgentConversation(agent, model) as talk:
            assert (await talk.say("hello")).spoken == "Local."
            request = ModelRequest(model=MODEL, api=api, base_url=service.url)
            report = await agent.on_model(request)
            assert (report.model, report.api) == (MODEL, api)
            assert (await talk.say("and now?")).spoken == "From afar."
        await model.aclose()


@APIS
async def test_a_wrong_key_and_a_missing_model_are_said_in_our_words(api: str) -> None:
    hello = BackendRequest(items=(UserItem("Hello"),))
    async with CloudStandIn() as service:
        wrong = make_llm(plain_settings(**variables(api, service.url, CAAL_API_KEY="wrong")))
        with pytest.raises(ModelReplyError, match="key"):
            await anext(wrong.backend.ask(hello))
        await wrong.aclose()
        given: dict[str, Any] = {"CAAL_API_KEY": KEY, "CAAL_MODEL": "none-such"}
        other = make_llm(plain_settings(**{**variables(api, service.url), **given}))
        with pytest.raises(ModelMissing, match="no model none-such; fix CAAL_MODEL"):
            await anext(other.backend.ask(hello))
        await other.aclose()


@APIS
async def test_doctor_makes_the_model_and_says_what_is_missing(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEYS[api], raising=False)
    settings = variables(api, "http://127.0.0.1:9")
    [found] = await check_model(plain_settings(**settings, CAAL_API_KEY=KEY))
    assert (found.status, found.name) == ("ok", "model")
    [found] = await check_model(plain_settings(**settings))
    assert (found.status, found.fix) == ("fail", f"set CAAL_API_KEY or {KEYS[api]}")


@APIS
def test_without_the_extra_or_a_key_one_sentence_says_what_to_do(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEYS[api], raising=False)
    with pytest.raises(ConfigError, match=f"no key; set CAAL_API_KEY or {KEYS[api]}$"):
        make_llm(plain_settings(CAAL_API=api, CAAL_MODEL=MODEL))
    monkeypatch.setitem(sys.modules, f"livekit.plugins.{api}", None)
    with pytest.raises(ConfigError, match=rf"run: pip install 'caal-node\[{api}\]'$"):
        make_llm(plain_settings(CAAL_API=api, CAAL_MODEL=MODEL, CAAL_API_KEY=KEY))
