"""The OpenAI backend on a real llama.cpp server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from caal_node.core.errors import ModelReplyError
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, SystemItem, UserItem
from caal_node.models import model_preparation
from caal_node.models.backends.base import (
    Backend,
    BackendRequest,
    Capabilities,
    ReplyDone,
    SchemaForm,
    TextChunk,
)
from caal_node.models.backends.openai import CompletionsBackend, OpenAIBackend
from caal_node.models.model_preparation import warm

pytestmark = pytest.mark.model

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "The time in a time zone",
        "parameters": {"type": "object", "properties": {"tz": {"type": "string"}}},
    },
}
HELLO = (UserItem("Say hi."),)
WEIGHTS = 630_167_424
"""Of the 0.5B, with its embedding counted twice, as the GGUF file has it."""


@pytest.fixture
async def backend(llama: str) -> AsyncIterator[OpenAIBackend]:
    made = OpenAIBackend("any name", base_url=llama)
    yield made
    await made.aclose()


async def spoken(backend: Backend, request: BackendRequest) -> tuple[str, ReplyDone]:
    chunks = [chunk async for chunk in backend.ask(request)]
    assert isinstance(chunks[-1], ReplyDone)
    return "".join(c.text for c in chunks if isinstance(c, TextChunk)), chunks[-1]


@pytest.mark.parametrize("stream", [True, False])
async def test_it_answers(backend: OpenAIBackend, stream: bool) -> None:
    text, done = await spoken(backend, BackendRequest(items=HELLO, stream=stream, max_tokens=20))
    assert text.startswith("Hello")
    assert done.usage.prompt > 5
    assert done.usage.completion > 1


@pytest.mark.parametrize("form", ["response_format", "json_schema"])
async def test_it_holds_a_reply_to_a_schema_in_two_forms(
    backend: OpenAIBackend, form: SchemaForm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_preparation, "SCHEMA_FORMS", [form])
    assert await model_preparation.find_schema_form(backend) is True
    assert backend.dialect.schema_form == form


async def test_capabilities_come_from_its_template(backend: OpenAIBackend) -> None:
    assert await backend.capabilities() == Capabilities(True, False, True, 4096, WEIGHTS)


async def test_a_reply_is_held_to_a_schema(backend: OpenAIBackend) -> None:
    schema = {"type": "object", "properties": {"a": {"const": "x"}}, "required": ["a"]}
    request = BackendRequest(items=HELLO, schema=schema, max_tokens=20, stream=False)
    assert json.loads((await spoken(backend, request))[0]) == {"a": "x"}


async def test_a_warmed_head_is_not_read_again(backend: OpenAIBackend) -> None:
    head = (SystemItem("You are a voice assistant that knows the time of every place."),)
    usage = await warm(backend, BackendRequest(items=head, tools=(TOOL,)))
    history: tuple[Item, ...] = (
        *head,
        UserItem("What time is it?"),
        AssistantItem("One moment."),
        CallItem("c1", "get_time", '{"tz": "UTC"}'),
        ResultItem("c1", "get_time", "09:41"),
    )
    _, done = await spoken(backend, BackendRequest(items=history, tools=(TOOL,), max_tokens=1))
    assert done.usage.cached > usage.prompt - 20
    assert done.usage.prompt > usage.prompt


async def test_a_prompt_that_does_not_fit_is_refused(backend: OpenAIBackend) -> None:
    with pytest.raises(ModelReplyError, match="context size") as raised:
        await spoken(backend, BackendRequest(items=(UserItem("word " * 5000),)))
    assert raised.value.status == 400


async def test_closing_a_reply_frees_the_slot(backend: OpenAIBackend) -> None:
    """There is one slot: had the server gone on, the second answer would wait for 2,000 tokens."""
    count = (UserItem("Count from one to one thousand, in words, and leave nothing out."),)
    chunks = backend.ask(BackendRequest(items=count, max_tokens=2000))
    assert isinstance(await anext(chunks), TextChunk)
    await chunks.aclose()
    _, done = await spoken(backend, BackendRequest(items=count, max_tokens=1))
    assert done.reason == "length"


async def test_text_completion(llama: str) -> None:
    backend = CompletionsBackend("any name", base_url=llama)
    text, done = await spoken(backend, BackendRequest(items=HELLO, max_tokens=3))
    await backend.aclose()
    assert text
    assert done.usage.completion == 3
