"""The ways in which BFCL's benches ask a model: natively, by LiveKit's plugin, and by the node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from livekit.agents import APIConnectOptions, llm
from livekit.agents.llm import function_tool
from livekit.plugins import openai

from caal_node.config.settings import Settings
from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import Item, SystemItem
from caal_node.core.tool_spec import ToolSchema
from caal_node.factories import make_llm
from caal_node.grounding.references import references_in
from caal_node.models import question as models
from caal_node.models.backends.base import BackendRequest, NativeCall, ReplyDone, TextChunk
from caal_node.models.chat_context import to_chat_ctx
from caal_node.models.model_connection import ModelConnection
from caal_node.reply_parser import Event, ToolCall, summarise
from caal_node.reply_parser.arguments import load_json

Way: TypeAlias = Literal["native", "livekit", "node"]
WAYS: Final[tuple[Way, ...]] = ("native", "livekit", "node")
REPLY_TOKENS: Final = 256
"""BFCL's longest right call is about 150."""
ANSWER_S: Final = 300.0
"""Seconds for one answer."""
PATIENT: Final = APIConnectOptions(max_retry=0, timeout=ANSWER_S)
SYSTEM: Final = SystemItem(
    "You are a helpful assistant. Use a tool where one does what the person asks for."
)


@dataclass(frozen=True, slots=True)
class Answer:
    calls: Sequence[ToolCall]
    said: str
    prompt: int
    """Tokens, of all its requests."""


Ask: TypeAlias = Callable[
    [ModelConnection, tuple[Item, ...], tuple[ToolSchema, ...]], Awaitable[Answer]
]
"""It puts a conversation, which ends with what a person said or with a result."""


async def asked_natively(
    model: ModelConnection, items: tuple[Item, ...], tools: tuple[ToolSchema, ...]
) -> Answer:
    request = BackendRequest(items, tools=tools, stream=False, max_tokens=REPLY_TOKENS)
    calls: list[ToolCall] = []
    said, prompt = "", 0
    async with aclosing(model.backend.ask(request)) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, NativeCall):
                calls.append(ToolCall(chunk.name, _object(chunk.arguments)))
            elif isinstance(chunk, TextChunk):
                said += chunk.text
            elif isinstance(chunk, ReplyDone):
                prompt += chunk.usage.prompt
    return Answer(calls, said, prompt)


async def asked_as_the_node_does(
    model: ModelConnection, items: tuple[Item, ...], tools: tuple[ToolSchema, ...]
) -> Answer:
    events: list[Event] = []
    prompt = 0
    asked = models.Question(
        items,
        PromptTools(tools),
        stream=False,
        max_tokens=REPLY_TOKENS,
        references=references_in(items),
    )
    async with aclosing(model.ask(asked)) as parts:
        async for part in parts:
            if isinstance(part, ReplyDone):
                prompt += part.usage.prompt
            elif isinstance(part, Event):
                events.append(part)
    reply = summarise(events)
    return Answer(reply.calls, reply.text, prompt)


async def asked_by_livekit(
    model: ModelConnection, items: tuple[Item, ...], tools: tuple[ToolSchema, ...]
) -> Answer:
    async def run(raw_arguments: dict[str, object]) -> str:
        return ""

    offered: list[llm.Tool] = [
        function_tool(run, raw_schema=dict(tool["function"])) for tool in tools
    ]
    calls: list[ToolCall] = []
    said, prompt = "", 0
    async with (
        aclosing(_plugin(model)) as plugin,
        plugin.chat(chat_ctx=to_chat_ctx(items), tools=offered, conn_options=PATIENT) as stream,
    ):
        async for chunk in stream:
            if chunk.delta:
                said += chunk.delta.content or ""
                calls += [ToolCall(c.name, _object(c.arguments)) for c in chunk.delta.tool_calls]
            prompt += chunk.usage.prompt_tokens if chunk.usage else 0
    return Answer(calls, said, prompt)


def _plugin(model: ModelConnection) -> openai.LLM:
    address = model.backend.address.rstrip("/").removesuffix("/v1")
    return openai.LLM(
        model=model.backend.model,
        base_url=f"{address}/v1",
        api_key="none",
        temperature=0.0,
        max_completion_tokens=REPLY_TOKENS,
    )


def _object(text: str) -> dict[str, Any]:
    value = load_json(text or "{}")
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def connect(settings: Settings) -> ModelConnection:
    """A connection to the settings' model, asked as they say. Close it."""
    backend = make_llm(settings).backend
    return ModelConnection(backend, settings.asks_natively, settings.text_form)


ASK: Final[Mapping[Way, Ask]] = {
    "native": asked_natively,
    "livekit": asked_by_livekit,
    "node": asked_as_the_node_does,
}
