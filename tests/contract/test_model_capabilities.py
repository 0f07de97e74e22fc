"""What the servers tell of a model, what follows for requests, and warming."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from caal_node.core.errors import ModelLacksTools, ModelMissing, ModelReplyError, ModelTimeout
from caal_node.core.items import AssistantItem, SystemItem, UserItem
from caal_node.models.backends.base import (
    BackendRequest,
    Capabilities,
    ReplyDone,
    TextChunk,
    Think,
    Usage,
)
from caal_node.models.backends.http_transport import TransportDeadlines
from caal_node.models.backends.ollama import OllamaBackend
from caal_node.models.backends.openai import CompletionsBackend, OpenAIBackend
from caal_node.models.model_preparation import warm
from caal_node.models.question import Question
from caal_node.models.retry_policy import RetryPolicy
from tests.stand_ins.stand_in_model import (
    CACHED_TOKENS,
    PROMPT_TOKENS,
    End,
    Hang,
    Refuse,
    StandInModel,
    Wait,
)

HELLO = BackendRequest(items=(UserItem("Hello"),), stream=False)
ALL = ("completion", "tools", "thinking")
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "f", "parameters": {}}}


@pytest.mark.parametrize(
    ("has", "tools", "thinking"),
    [(ALL, True, True), (("completion",), False, False), (("completion", "tools"), True, False)],
)
async def test_ollama_tells_what_a_model_can_do(
    has: tuple[str, ...], tools: bool, thinking: bool
) -> None:
    async with StandInModel(capabilities=has, context_tokens=2048) as server:
        backend = OllamaBackend(server.model, host=server.url, num_ctx=8192)
        assert await backend.capabilities() == Capabilities(tools, thinking, True, 2048)
        await backend.aclose()


@pytest.mark.parametrize("api", ["ollama", "ollama behind /v1", "llama"])
async def test_a_servers_own_count_says_that_a_model_is_small_whatever_its_name(api: str) -> None:
    async with StandInModel(["Hi."], llama=api == "llama") as server:
        server.parameters = 630_167_424
        backend: OllamaBackend | OpenAIBackend = (
            OllamaBackend(server.model, host=server.url)
            if api == "ollama"
            else OpenAIBackend(server.model, base_url=server.url)
        )
        found = await backend.capabilities()
        assert found.parameters == 630_167_424
        policy = RetryPolicy("jarvis")
        question = Question((UserItem("Hello"),))
        assert not policy.first_step(question).question.small_model
        policy.stats.capabilities = found
        assert policy.first_step(question).question.small_model
        await backend.aclose()


@pytest.mark.parametrize(
    ("asked", "has", "family", "sent"),
    [
        (False, ALL, "qwen3", [False]),
        (True, ALL, "qwen3", [True]),
        (True, ("completion",), "qwen2", [False]),
        ("low", ("completion",), "qwen2", [False]),
        (False, ALL, "gptoss", ["low"]),
        ("high", ALL, "gptoss", ["high"]),
        # 0.17 knows levels for gpt-oss only; the refusal is remembered.
        ("low", ALL, "qwen3", ["low", True]),
    ],
)
async def test_thinking_is_asked_for_as_the_model_takes_it(
    asked: Think, has: tuple[str, ...], family: str, sent: list[Think]
) -> None:
    async with StandInModel(["a"], ["b"], capabilities=has, family=family) as server:
        backend = OllamaBackend(server.model, host=server.url, think=asked)
        for text in ("a", "b"):
            assert await anext(backend.ask(HELLO)) == TextChunk(text)
        await backend.aclose()
        assert [chat.json["think"] for chat in server.chats] == [*sent, sent[-1]]
        # The model is looked at once.
        assert [r.path for r in server.requests].count("/api/show") == 1


async def test_a_level_is_not_a_reason_to_ask_twice_for_another_refusal() -> None:
    refusal = Refuse(400, "the input length exceeds the context length")
    async with StandInModel([refusal], capabilities=ALL, family="gptoss") as server:
        backend = OllamaBackend(server.model, host=server.url, think="low")
        with pytest.raises(ModelReplyError, match="context length") as raised:
            await anext(backend.ask(HELLO))
        await backend.aclose()
    assert raised.value.status == 400
    assert len(server.chats) == 1


async def test_llama_tells_context_and_tools_and_takes_any_name() -> None:
    async with StandInModel(llama=True, context_tokens=4096, capabilities=ALL) as server:
        backend = OpenAIBackend("whatever", base_url=server.url)
        assert await backend.capabilities() == Capabilities(True, True, True, 4096)
        await backend.aclose()


async def test_other_openai_servers_tell_only_whether_the_model_is_there() -> None:
    async with StandInModel() as server:
        backend = OpenAIBackend(server.model, base_url=server.url)
        assert await backend.capabilities() == Capabilities()
        await backend.aclose()
        backend = OpenAIBackend("other", base_url=server.url)
        with pytest.raises(ModelMissing, match="it has: stand-in:latest"):
            await backend.capabilities()
        await backend.aclose()


@pytest.mark.parametrize(
    ("written", "asked"), [("", "/v1/"), ("/", "/v1/"), ("/v1", "/v1/"), ("/v1/", "/v1/")]
)
async def test_an_openai_address_may_leave_out_v1(written: str, asked: str) -> None:
    async with StandInModel(["ok"]) as server:
        backend = OpenAIBackend(server.model, base_url=f"{server.url}{written}")
        assert await anext(backend.ask(HELLO)) == TextChunk("ok")
        await backend.aclose()
    assert server.requests[0].path == f"{asked}chat/completions"


async def test_warming_sends_the_head_and_asks_for_one_token() -> None:
    head = BackendRequest(
        items=(SystemItem("Be short."), UserItem("2+2?"), AssistantItem("4")),
        tools=(TOOL,),
        schema={"type": "object"},
    )
    async with StandInModel(["x", End("length")]) as server:
        backend = OpenAIBackend(server.model, base_url=server.url)
        assert await warm(backend, head) == Usage(PROMPT_TOKENS, 1, CACHED_TOKENS)
        await backend.aclose()
    body = server.chats[0].json
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "user"]
    assert body["tools"] == [TOOL]
    assert body["max_tokens"] == 1
    assert "response_format" not in body


@pytest.mark.parametrize("stream", [True, False])
async def test_text_completion_sends_a_prompt_and_reads_text(stream: bool) -> None:
    async with StandInModel([" It is noon."]) as server:
        backend = CompletionsBackend(server.model, base_url=server.url)
        items = (SystemItem("Be short."), UserItem("Time?"))
        chunks = [
            c async for c in backend.ask(BackendRequest(items=items, stream=stream, max_tokens=9))
        ]
        with pytest.raises(ModelLacksTools):
            await anext(backend.ask(BackendRequest(items=items, tools=(TOOL,))))
        assert (await backend.capabilities()).tools is False
        await backend.aclose()
    body = server.chats[0].json
    assert body["prompt"] == "System: Be short.\nUser: Time?\nAssistant:"
    assert body["max_tokens"] == 9
    assert "\nUser:" in body["stop"]
    assert "".join(c.text for c in chunks if isinstance(c, TextChunk)) == "It is noon."
    assert chunks[-1] == ReplyDone("stop", Usage(PROMPT_TOKENS, 3, CACHED_TOKENS))


async def test_warming_outlasts_the_deadline_that_suits_a_turn() -> None:
    read = asyncio.Event()
    async with StandInModel([Wait(read), "x"], [Hang()]) as server:
        backend = OpenAIBackend(
            server.model, base_url=server.url, deadlines=TransportDeadlines(first=0.05)
        )
        warming = asyncio.create_task(warm(backend, HELLO))
        await server.request_arrived()
        with pytest.raises(ModelTimeout):  # so that the deadline has passed for both
            await anext(backend.ask(HELLO))
        read.set()
        assert (await warming).completion
        await backend.aclose()
