"""The ways of asking that `small_models` compares, each as one coroutine: request in, heard out."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

from livekit.agents import APIConnectOptions, RunContext, function_tool, llm
from livekit.plugins import openai

from caal_node.context.schemas import catalogue
from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import AssistantItem, Item, SystemItem, UserItem
from caal_node.core.prompt_files import read
from caal_node.models.backends.base import (
    Backend,
    BackendRequest,
    NativeCall,
    ReplyDone,
    ServerCall,
    ServerResult,
    TextChunk,
)
from caal_node.models.model_connection import ModelConnection
from caal_node.models.model_preparation import warm
from caal_node.models.question import Question
from caal_node.models.reply_attempt import FailureSignal
from caal_node.models.retry_policy import RetryPolicy
from caal_node.models.strategies import (
    CallStrategy,
    NativeStrategy,
    PlainStrategy,
    TextProtocolStrategy,
)
from caal_node.reply_parser import Event, parse_reply, summarise
from tests.bench.spoken_requests import Heard, Requests

REPLY_TOKENS: Final = 200
PATIENT: Final = APIConnectOptions(max_retry=0, timeout=600.0)

Clock: TypeAlias = Callable[[], float]
Ask: TypeAlias = Callable[[str], Awaitable[Heard]]


@dataclass(frozen=True, slots=True)
class Setting:
    backend: Backend
    openai_url: str
    model: str
    requests: Requests
    clock: Clock
    """Seconds: the engine's own processor time where it can be read, else of the wall."""

    def question(self, words: str) -> Question:
        return Question(
            (SystemItem(read("system.md")), UserItem(words)),
            PromptTools(self.requests.tools, self.requests.examples),
            stream=False,
            max_tokens=REPLY_TOKENS,
        )


@asynccontextmanager
async def native(setting: Setting) -> AsyncGenerator[Ask]:
    """The server's own tool calls, and its text as it is."""
    way = NativeStrategy()
    await warm(setting.backend, way.request(setting.question("hello")))

    async def ask(words: str) -> Heard:
        began = setting.clock()
        calls: list[tuple[str, Mapping[str, Any]]] = []
        spoken: list[str] = []
        prompt = 0
        async with aclosing(setting.backend.ask(way.request(setting.question(words)))) as chunks:
            async for chunk in chunks:
                match chunk:
                    case NativeCall():
                        calls.append((chunk.name, arguments_of(chunk.arguments)))
                    case TextChunk():
                        spoken.append(chunk.text)
                    case ReplyDone():
                        prompt = chunk.usage.prompt
                    case _:
                        pass
        return Heard(tuple(calls), "".join(spoken), setting.clock() - began, prompt)

    yield ask


class _Examples:
    """A plain prompt: the tools in a list, their examples as chat turns, and nothing else."""

    def request(self, question: Question) -> BackendRequest:
        tools = question.tools
        rules = (
            f"{read('system.md')}\n\nTo use a tool, answer with one JSON object and nothing else: "
            '{"name": "<tool>", "arguments": {...}}. Otherwise answer in plain words.\n\n'
            f"Tools:\n{catalogue(tools.schemas)}"
        )
        turns: list[Item] = []
        for name in tools.names:
            for example in tools.examples[name]:
                call = {"name": name, "arguments": dict(example.arguments)}
                turns += [UserItem(example.utterance), AssistantItem(json.dumps(call))]
        for said, answer in _PLAIN_ANSWERS:
            turns += [UserItem(said), AssistantItem(answer)]
        items = (SystemItem(rules), *turns, *question.items[1:])
        return BackendRequest(items, stream=False, max_tokens=question.max_tokens)


_PLAIN_ANSWERS: Final = (
    ("what's the tallest building in Paris", "That is the Eiffel Tower."),
    ("fly me to the moon", "Sorry, I can't do that."),
)


@asynccontextmanager
async def examples(setting: Setting) -> AsyncGenerator[Ask]:
    """A plain prompt with examples alone, its reply read as any text is."""
    way = _Examples()
    await warm(setting.backend, way.request(setting.question("hello")))

    async def ask(words: str) -> Heard:
        began = setting.clock()
        spoken, prompt = "", 0
        async with aclosing(setting.backend.ask(way.request(setting.question(words)))) as chunks:
            async for chunk in chunks:
                spoken += chunk.text if isinstance(chunk, TextChunk) else ""
                prompt = chunk.usage.prompt if isinstance(chunk, ReplyDone) else prompt
        reply = parse_reply(spoken, setting.requests.tools)
        calls = tuple((call.name, call.arguments) for call in reply.calls)
        return Heard(calls, reply.text, setting.clock() - began, prompt)

    yield ask


@asynccontextmanager
async def livekit(setting: Setting) -> AsyncGenerator[Ask]:
    """livekit's openai plugin on `/v1`, with the same tools."""

    async def run(raw_arguments: dict[str, object], context: RunContext[Any]) -> str:
        return ""

    tools: list[llm.Tool] = [
        function_tool(run, raw_schema=dict(tool["function"])) for tool in setting.requests.tools
    ]
    model = openai.LLM(
        model=setting.model,
        base_url=setting.openai_url,
        api_key="none",
        temperature=0.0,
        max_completion_tokens=REPLY_TOKENS,
    )

    async def ask(words: str) -> Heard:
        began = setting.clock()
        ctx = llm.ChatContext.empty()
        ctx.add_message(role="system", content=read("system.md"))
        ctx.add_message(role="user", content=words)
        calls: list[tuple[str, Mapping[str, Any]]] = []
        spoken: list[str] = []
        prompt = 0
        async with model.chat(chat_ctx=ctx, tools=tools, conn_options=PATIENT) as stream:
            async for chunk in stream:
                if chunk.delta:
                    spoken.append(chunk.delta.content or "")
                    calls += [(c.name, arguments_of(c.arguments)) for c in chunk.delta.tool_calls]
                if chunk.usage:
                    prompt = chunk.usage.prompt_tokens
        return Heard(tuple(calls), "".join(spoken), setting.clock() - began, prompt)

    await ask("hello")
    try:
        yield ask
    finally:
        await model.aclose()


def by(strategy: CallStrategy) -> Callable[[Setting], Any]:
    """One strategy alone, with a plain reply where it fails."""

    @asynccontextmanager
    async def opened(setting: Setting) -> AsyncGenerator[Ask]:
        connection = ModelConnection(setting.backend, native_tools=False)
        connection.retry_policy = Only(setting.backend.model, strategy)
        await warm(setting.backend, strategy.request(setting.question("hello")))
        yield _asking(setting, connection)

    return opened


@asynccontextmanager
async def node(setting: Setting) -> AsyncGenerator[Ask]:
    """What the node does by itself: probe, warm-up, call threshold, retries."""
    connection = ModelConnection(setting.backend, native_tools=None)
    await connection.warm(setting.question("hello"))
    yield _asking(setting, connection)
    stats = connection.retry_policy.stats
    native = "natively" if stats.native else "by text"
    print(f"  is asked {native}; {dict(stats.signals)} {dict(stats.steps)}", flush=True)


class Only(RetryPolicy):
    def __init__(self, model: str, strategy: CallStrategy) -> None:
        super().__init__(model)
        self._only = strategy

    def first_strategy(self, question: Question) -> CallStrategy:
        return self._only

    def _weaker_strategy(
        self, strategy: CallStrategy, signal: FailureSignal | None, question: Question
    ) -> CallStrategy | None:
        return None if isinstance(strategy, PlainStrategy) else PlainStrategy(as_text=True)


def _asking(setting: Setting, connection: ModelConnection) -> Ask:
    async def ask(words: str) -> Heard:
        began = setting.clock()
        events: list[Event] = []
        prompt = 0
        async with aclosing(connection.ask(setting.question(words))) as parts:
            async for part in parts:
                if isinstance(part, ReplyDone):
                    prompt = part.usage.prompt or prompt
                elif not isinstance(part, ServerCall | ServerResult):
                    events.append(part)
        reply = summarise(events)
        calls = tuple((call.name, call.arguments) for call in reply.calls)
        return Heard(calls, reply.text, setting.clock() - began, prompt)

    return ask


def arguments_of(text: str) -> Mapping[str, Any]:
    """Return a call's arguments; under "?" what is no object, which no request wants."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        return {"?": text}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"?": value}


WAYS: Final[Mapping[str, Callable[[Setting], Any]]] = MappingProxyType(
    {
        "native": native,
        "examples": examples,
        "livekit": livekit,
        "jsonl": by(TextProtocolStrategy()),
        "jsonl+schema": by(TextProtocolStrategy(constrain=True)),
        "node": node,
    }
)

wall: Final[Clock] = time.perf_counter
