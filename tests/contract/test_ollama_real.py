"""The Ollama backend on a real Ollama."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from caal_node.core.errors import ModelLacksTools, ModelMissing, ModelReplyError
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.models.backends.base import BackendRequest, Capabilities, ReplyDone, TextChunk
from caal_node.models.backends.ollama import OllamaBackend
from caal_node.models.backends.openai import OpenAIBackend
from caal_node.models.embedding import EmbeddingApi, ServerEmbedder
from caal_node.models.model_preparation import find_schema_form, warm
from mcp_bridge import EmbeddingUnavailable
from tests.fixtures_models import OllamaModels

pytestmark = [pytest.mark.ollama, pytest.mark.model]

# One thread: two that wait for each other on a busy machine take a hundred times as long.
OPTIONS: dict[str, Any] = {"num_thread": 1}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "The time in a time zone",
        "parameters": {
            "type": "object",
            "properties": {"tz": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        },
    },
}
HELLO = (UserItem("Say hi."),)
WEIGHTS = 630_167_424
"""Of the 0.5B, with its embedding counted twice, as the GGUF file has it."""


@pytest.fixture
async def backend(ollama: OllamaModels) -> AsyncIterator[OllamaBackend]:
    made = OllamaBackend(ollama.with_tools, host=ollama.url, num_ctx=2048, options=OPTIONS)
    yield made
    await made.aclose()


async def spoken(
    backend: OllamaBackend | OpenAIBackend, request: BackendRequest
) -> tuple[str, ReplyDone]:
    chunks = [chunk async for chunk in backend.ask(request)]
    assert isinstance(chunks[-1], ReplyDone)
    return "".join(c.text for c in chunks if isinstance(c, TextChunk)), chunks[-1]


@pytest.mark.parametrize("stream", [True, False])
async def test_it_answers(backend: OllamaBackend, stream: bool) -> None:
    text, done = await spoken(backend, BackendRequest(items=HELLO, stream=stream, max_tokens=20))
    assert text.startswith("Hi")
    assert done.usage.prompt > 5
    assert done.usage.completion > 1


async def test_the_token_limit_is_told(backend: OllamaBackend) -> None:
    _, done = await spoken(backend, BackendRequest(items=HELLO, max_tokens=2))
    assert done.reason == "length"
    assert done.usage.completion == 2


async def test_a_reply_is_held_to_a_schema(backend: OllamaBackend) -> None:
    schema = {
        "anyOf": [
            {
                "type": "object",
                "properties": {"type": {"const": "final_answer"}, "text": {"enum": ["yes"]}},
                "required": ["type", "text"],
                "additionalProperties": False,
            }
        ]
    }
    text, _ = await spoken(backend, BackendRequest(items=HELLO, schema=schema, max_tokens=40))
    assert json.loads(text) == {"type": "final_answer", "text": "yes"}


async def test_a_history_of_calls_is_taken_and_read(backend: OllamaBackend) -> None:
    items: tuple[Item, ...] = (
        SystemItem("Be short."),
        UserItem("What time is it?"),
        AssistantItem("One moment."),
        CallItem("c1", "get_time", '{"tz": "UTC"}'),
        CallItem("c2", "get_time", '{"tz": null}'),
        ResultItem("c1", "get_time", '{"time":"09:41"}'),
        ResultItem("c2", "get_time", "unknown", is_error=True),
    )
    with_calls = BackendRequest(items=items, tools=(TOOL,), max_tokens=1)
    without = BackendRequest(items=(*items[:3], *items[5:]), tools=(TOOL,), max_tokens=1)
    seen = (await spoken(backend, with_calls))[1].usage.prompt
    # The template shows the calls next to the words before them: two calls are some 40 tokens.
    assert seen - (await spoken(backend, without))[1].usage.prompt > 20


async def test_capabilities_are_those_of_the_template(
    ollama: OllamaModels, backend: OllamaBackend
) -> None:
    assert await backend.capabilities() == Capabilities(True, False, True, 2048, WEIGHTS)
    plain = OllamaBackend(ollama.without_tools, host=ollama.url)
    assert (await plain.capabilities()).tools is False
    with pytest.raises(ModelLacksTools):
        await spoken(plain, BackendRequest(items=HELLO, tools=(TOOL,)))
    await plain.aclose()


async def test_thinking_is_not_asked_of_a_model_that_cannot(ollama: OllamaModels) -> None:
    backend = OllamaBackend(
        ollama.with_tools, host=ollama.url, num_ctx=2048, think=True, options=OPTIONS
    )
    text, _ = await spoken(backend, BackendRequest(items=HELLO, max_tokens=2))
    await backend.aclose()
    assert text


async def test_a_missing_model_is_named_with_its_fix(ollama: OllamaModels) -> None:
    backend = OllamaBackend("not-here:1b", host=ollama.url)
    with pytest.raises(ModelMissing, match="ollama pull not-here:1b"):
        await warm(backend, BackendRequest(items=HELLO))
    with pytest.raises(ModelMissing):
        await backend.capabilities()
    await backend.aclose()


async def test_a_prompt_that_does_not_fit_is_refused_not_cut(backend: OllamaBackend) -> None:
    """Left to itself Ollama drops the oldest messages, and answers something else."""
    items = (SystemItem("Be short."), UserItem("word " * 3000), UserItem("Say hi."))
    with pytest.raises(ModelReplyError, match="context length") as raised:
        await spoken(backend, BackendRequest(items=items, max_tokens=1))
    assert raised.value.status == 400


async def test_warming_reads_the_head_for_one_token(backend: OllamaBackend) -> None:
    head = BackendRequest(items=(SystemItem("You are a voice assistant."),), tools=(TOOL,))
    usage = await warm(backend, head)
    assert usage.prompt > 100
    assert usage.completion == 1


async def test_closing_a_reply_stops_the_server(backend: OllamaBackend) -> None:
    """There is one slot: had the server gone on, the second answer would wait for 2,000 tokens."""
    count = (UserItem("Count from one to one thousand, in words, and leave nothing out."),)
    chunks = backend.ask(BackendRequest(items=count, max_tokens=2000))
    first = await anext(chunks)
    assert isinstance(first, TextChunk)
    loop = asyncio.get_running_loop()
    await chunks.aclose()
    before = loop.time()
    await spoken(backend, BackendRequest(items=count, max_tokens=1))
    # One token takes a second or two where 2,000 take a hundred.
    assert loop.time() - before < 40


async def test_the_openai_api_of_ollama(ollama: OllamaModels) -> None:
    backend = OpenAIBackend(ollama.with_tools, base_url=f"{ollama.url}/v1")
    assert (await backend.capabilities()).tools is None
    text, done = await spoken(backend, BackendRequest(items=HELLO, max_tokens=2))
    assert text
    assert done.reason == "length"
    missing = OpenAIBackend("not-here", base_url=ollama.url)
    with pytest.raises(ModelMissing):
        await spoken(missing, BackendRequest(items=HELLO))
    await backend.aclose()
    await missing.aclose()


async def test_its_openai_api_holds_a_reply_to_a_schema(ollama: OllamaModels) -> None:
    backend = OpenAIBackend(ollama.with_tools, base_url=f"{ollama.url}/v1")
    assert (await backend.capabilities()).schema is None
    assert await find_schema_form(backend) is True
    assert backend.dialect.schema_form == "response_format"
    assert (await backend.capabilities()).schema is True
    await backend.aclose()


async def test_levels_of_thinking_that_its_openai_api_refuses_are_left_out(
    ollama: OllamaModels,
) -> None:
    backend = OpenAIBackend(ollama.with_tools, base_url=f"{ollama.url}/v1", think="low")
    text, _ = await spoken(backend, BackendRequest(items=HELLO, max_tokens=4))
    assert text
    assert backend.dialect.refused == {"reasoning_effort": None}
    await backend.aclose()


@pytest.mark.parametrize("api", ["ollama", "openai"])
async def test_its_vectors_of_texts_are_taken(ollama: OllamaModels, api: EmbeddingApi) -> None:
    url = ollama.url if api == "ollama" else f"{ollama.url}/v1"
    embedder = ServerEmbedder(ollama.with_tools, api=api, base_url=url)
    rows = await embedder.embed(["start a timer", "begin a timer", "the sky is blue"])
    same = await embedder.embed(["start a timer"])
    await embedder.aclose()
    assert rows.shape == (3, 896), "of the 0.5B"
    assert float(rows[0] @ same[0]) > 0.999
    assert float(rows[0] @ rows[1]) > float(rows[0] @ rows[2])
    gone = ServerEmbedder("no-such-model", api=api, base_url=url)
    with pytest.raises(EmbeddingUnavailable, match="no-such-model"):
        await gone.embed(["x"])
    await gone.aclose()
