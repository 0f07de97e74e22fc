"""Servers that refuse fields of a request, or take them and pay no heed: nobody notices, and each
is asked in the way that it was found to take."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from livekit.agents.llm import ChatContext, function_tool

from caal_node.config.settings import Settings
from caal_node.core.errors import ModelReplyError
from caal_node.core.items import UserItem
from caal_node.factories import session_llm
from caal_node.models.backends.base import SCHEMA_FORMS, BackendRequest, Dialect, TextChunk
from caal_node.models.backends.openai import OpenAIBackend
from caal_node.models.llm import LLM
from tests.stand_ins.stand_in_model import Asked, Call, Refuse, Reply, StandInModel
from tests.stand_ins.strict_servers import STRICT

HELLO = BackendRequest(items=(UserItem("Hello"),), stream=True, max_tokens=20)


class Answers:
    """A model behind a strict server, which calls `get_weather` where it is offered, in the way
    that it is offered. `holds` are the fields by which its server holds a reply to a schema."""

    def __init__(self, strict: str | None = None, holds: Sequence[str] = (), native: bool = True):
        self.strict = strict
        self.holds = holds
        self.native = native
        self.refused = 0

    def __call__(self, asked: Asked) -> Reply:
        body = asked.json
        if self.strict and (refusal := STRICT[self.strict](body)):
            self.refused += 1
            return [refusal]
        if schema := self._held_to(body):
            if code := schema.get("properties", {}).get("code"):
                return [json.dumps({"code": code["enum"][0]})]
            return ['{"calls":[{"name":"get_weather","arguments":{"city":"Oslo"}}]}']
        if body.get("tools") and self.native:
            return [Call("get_weather", {"city": "Oslo"})]
        return ["Hello there."]

    def _held_to(self, body: dict[str, Any]) -> Any:
        for form in self.holds:
            if form in body:
                given = body[form]
                return given.get("json_schema", {}).get("schema") or given.get("json") or given
        return None


def of(server: StandInModel, **more: Any) -> Settings:
    return Settings(api="openai", base_url=server.openai_url, model=server.model, **more)


@function_tool
async def get_weather(city: str) -> str:
    """Weather of a city."""
    return f"Sunny in {city}."


async def asked(model: LLM) -> list[str]:
    """The names of the calls that a turn makes."""
    ctx = ChatContext.empty()
    ctx.add_message(role="user", content="weather in Oslo?")
    async with model.chat(chat_ctx=ctx, tools=[get_weather]) as stream:
        return [call.name async for c in stream if c.delta for call in c.delta.tool_calls]


@pytest.mark.parametrize("think", [False, True, "low"])
@pytest.mark.parametrize("strict", STRICT)
async def test_what_a_server_refuses_is_left_out_and_kept_for_the_next_session(
    strict: str, think: bool | str
) -> None:
    answers = Answers(strict)
    async with StandInModel(answer=answers) as server:
        model = await session_llm(of(server, think=think))
        assert await asked(model) == ["get_weather"]
        assert not model.retry_policy.stats.signals, "the refusal is no failure of the model"
        learnt, answers.refused = answers.refused, 0
        assert learnt <= 5
        assert await asked(model) == ["get_weather"]
        assert not answers.refused
        await model.aclose()

        model = await session_llm(of(server, think=think))
        assert await asked(model) == ["get_weather"]
        # What could only be guessed is guessed again.
        assert answers.refused == (1 if strict == "wordless" else 0)
        await model.aclose()


@pytest.mark.parametrize(
    ("strict", "think", "sent"),
    [
        ("openai_chat", False, (None, None)),
        ("openai_reasoning", False, (None, "minimal")),
        ("openai_reasoning", True, (None, "medium")),
        ("groq", False, (None, "none")),
        ("groq", True, (None, "default")),
        ("vllm_old", False, ({"enable_thinking": False}, "low")),
        ("ollama", False, ({"enable_thinking": False}, "none")),
        # A model of Ollama's that thinks does so unless it is told not to.
        ("ollama", True, ({"enable_thinking": True}, None)),
        (None, "high", ({"enable_thinking": True}, "high")),
    ],
)
async def test_thinking_is_switched_in_the_way_that_the_server_takes(
    strict: str | None, think: Any, sent: tuple[Any, Any]
) -> None:
    async with StandInModel(answer=Answers(strict)) as server:
        backend = OpenAIBackend(server.model, base_url=server.openai_url, think=think)
        assert any([isinstance(chunk, TextChunk) async for chunk in backend.ask(HELLO)])
        await backend.aclose()
        last = server.chats[-1].json
    assert (last.get("chat_template_kwargs"), last.get("reasoning_effort")) == sent


async def test_a_limit_has_the_name_that_the_server_knows() -> None:
    async with StandInModel(answer=Answers("openai_reasoning")) as server:
        backend = OpenAIBackend(server.model, base_url=server.openai_url)
        assert [chunk async for chunk in backend.ask(HELLO)]
        await backend.aclose()
        last = server.chats[-1].json
    assert "max_tokens" not in last
    assert last["max_completion_tokens"] == 20


@pytest.mark.parametrize("holds", SCHEMA_FORMS)
async def test_the_field_that_holds_a_reply_to_a_schema_is_found_out_and_kept(holds: str) -> None:
    async with StandInModel(answer=Answers(holds=[holds], native=False)) as server:
        model = await session_llm(of(server))
        assert await asked(model) == ["get_weather"]
        assert holds in server.chats[-1].json
        assert model.retry_policy.stats.capabilities
        assert model.retry_policy.stats.capabilities.schema is True
        await model.aclose()
        before = len(server.chats)

        model = await session_llm(of(server))
        assert await asked(model) == ["get_weather"]
        assert holds in server.chats[-1].json
        assert len(server.chats) == before + 1, "nothing is found out again"
        await model.aclose()


@pytest.mark.parametrize("strict", [None, "deepseek", "mistral"])
async def test_a_server_that_holds_no_reply_to_a_schema_is_asked_without_one(
    strict: str | None,
) -> None:
    """mlx_lm.server reads past `response_format`, DeepSeek refuses it."""
    async with StandInModel(answer=Answers(strict, native=False)) as server:
        model = await session_llm(of(server))
        assert await asked(model) == []
        await model.aclose()
        assert model.retry_policy.stats.capabilities
        assert model.retry_policy.stats.capabilities.schema is False
        assert not server.chats[-1].json.keys() & SCHEMA_FORMS.keys()


async def test_a_refused_schema_is_told_to_whoever_asked_for_one() -> None:
    async with StandInModel(answer=Answers("deepseek")) as server:
        backend = OpenAIBackend(server.model, base_url=server.openai_url)
        request = BackendRequest(items=(UserItem("Hello"),), schema={"type": "object"})
        with pytest.raises(ModelReplyError, match="unavailable"):
            await anext(backend.ask(request))
        assert backend.dialect.schema_form == "none"
        await backend.aclose()


async def test_a_refusal_for_another_reason_is_asked_again_once_only() -> None:
    refusal = Refuse(400, "the roles of the conversation must alternate")
    async with StandInModel(answer=lambda _: [refusal]) as server:
        backend = OpenAIBackend(server.model, base_url=server.openai_url)
        for requests in (3, 4):
            with pytest.raises(ModelReplyError, match="alternate"):
                await anext(backend.ask(HELLO))
            assert len(server.chats) == requests
        assert backend.dialect == Dialect()
        await backend.aclose()


@pytest.mark.parametrize("way", ["switch", "update_options"])
async def test_a_model_that_is_changed_to_is_asked_as_its_server_was_found_to_take(
    way: str,
) -> None:
    strict = Answers("groq")
    async with StandInModel(answer=strict) as server, StandInModel() as other:
        first = await session_llm(of(server))
        assert await asked(first) == ["get_weather"]
        await first.aclose()
        learnt = strict.refused
        assert learnt > 0
        second = await session_llm(of(other if way == "switch" else server))
        if way == "switch":
            await second.switch(server.model, "openai", server.openai_url)
        else:
            second.update_options(model=server.model)
        assert await asked(second) == ["get_weather"]
        await second.aclose()
        assert strict.refused == learnt
