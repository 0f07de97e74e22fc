"""BFCL simple, multiple and irrelevance: a server's own tool calls, and the node's way.

Run: `python -m tests.bench.bfcl [--limit 200] [--server [API:]MODEL@URL] [--ways native livekit
node] [--kept FILE]`. All of it takes a small machine hours: with `--kept` each answer's judgement
is kept in FILE, a later run goes on where an earlier one was ended, and the table is of all that is
there. Without a server: the 0.5B demo weights in the embedded engine. `native` is what an ordinary
client sees: structured calls alone, of one request with tools. `livekit` is livekit's openai plugin
on the same server's `/v1`. `node` is `caal_node.LLM` as a session has it: it finds out how the
model is to be asked, reads calls wherever they stand, and asks again. BFCL's tools come without
example utterances, and each question has tools of its own, so nothing of a prompt is in a cache:
seconds are of cold prompts. Its questions are typed ones, not spoken.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from livekit.agents import APIConnectOptions, APIError, llm
from livekit.agents.llm import function_tool
from livekit.plugins import openai

from caal_node.config.settings import Settings
from caal_node.context.prompt_tools import PromptTools
from caal_node.core.errors import ModelError
from caal_node.core.items import SystemItem, UserItem
from caal_node.core.model_ref import parse_reference
from caal_node.factories import make_llm
from caal_node.models import question as models
from caal_node.models.backends.base import BackendRequest, NativeCall, ReplyDone
from caal_node.models.embedded_engine import EmbeddedEngine
from caal_node.models.model_connection import ModelConnection
from caal_node.reply_parser import Event, ToolCall, summarise
from caal_node.reply_parser.arguments import load_json
from caal_node.weights import QWEN_CODER_05B, present
from tests.bench.bfcl_data import CATEGORIES, PER_CATEGORY, Category, Question, questions, wheel
from tests.bench.bfcl_judge import right_call, right_name
from tests.bench.table import print_table

Way: TypeAlias = Literal["native", "livekit", "node"]
WAYS: Final[tuple[Way, ...]] = ("native", "livekit", "node")
REPLY_TOKENS: Final = 256
"""BFCL's longest right call is about 150."""
QUESTION_S: Final = 300.0
CONTEXT: Final = 8192
_PATIENT: Final = APIConnectOptions(max_retry=0, timeout=QUESTION_S)
_SYSTEM: Final = SystemItem(
    "You are a helpful assistant. Use a tool where one does what the person asks for."
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one question."""

    name: bool
    whole: bool
    failed: bool
    seconds: float
    prompt: int
    """Tokens, of all its requests."""


class Kept:
    """Outcomes by model, way, category and the question's number, in a file of JSON lines."""

    def __init__(self, path: Path | None) -> None:
        self._path: Final = path
        self._outcomes: Final[dict[tuple[str, ...], Outcome]] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                row = json.loads(line)
                key = tuple(row.pop("key"))
                self._outcomes[key] = Outcome(**row)

    def get(self, *key: str) -> Outcome | None:
        return self._outcomes.get(key)

    def keep(self, outcome: Outcome, *key: str) -> None:
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps({"key": key, **dataclasses.asdict(outcome)}) + "\n")


@dataclass(frozen=True, slots=True)
class Answer:
    calls: Sequence[ToolCall]
    prompt: int
    """Tokens, of all its requests."""


async def asked_natively(model: ModelConnection, question: Question) -> Answer:
    request = BackendRequest(
        (_SYSTEM, UserItem(question.said)),
        tools=question.tools,
        stream=False,
        max_tokens=REPLY_TOKENS,
    )
    calls: list[ToolCall] = []
    prompt = 0
    async with aclosing(model.backend.ask(request)) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, NativeCall):
                arguments = load_json(chunk.arguments or "{}")
                calls.append(ToolCall(chunk.name, arguments if isinstance(arguments, dict) else {}))  # pyright: ignore[reportUnknownArgumentType]
            elif isinstance(chunk, ReplyDone):
                prompt += chunk.usage.prompt
    return Answer(calls, prompt)


async def asked_as_the_node_does(model: ModelConnection, question: Question) -> Answer:
    events: list[Event] = []
    prompt = 0
    asked = models.Question(
        (_SYSTEM, UserItem(question.said)),
        PromptTools(question.tools),
        stream=False,
        max_tokens=REPLY_TOKENS,
    )
    async with aclosing(model.ask(asked)) as parts:
        async for part in parts:
            if isinstance(part, ReplyDone):
                prompt += part.usage.prompt
            elif isinstance(part, Event):
                events.append(part)
    return Answer(summarise(events).calls, prompt)


async def asked_by_livekit(model: ModelConnection, question: Question) -> Answer:
    async def run(raw_arguments: dict[str, object]) -> str:
        return ""

    tools: list[llm.Tool] = [
        function_tool(run, raw_schema=dict(tool["function"])) for tool in question.tools
    ]
    context = llm.ChatContext.empty()
    context.add_message(role="system", content=_SYSTEM.text)
    context.add_message(role="user", content=question.said)
    calls: list[ToolCall] = []
    prompt = 0
    async with (
        aclosing(_plugin(model)) as plugin,
        plugin.chat(chat_ctx=context, tools=tools, conn_options=_PATIENT) as stream,
    ):
        async for chunk in stream:
            for call in chunk.delta.tool_calls if chunk.delta else ():
                arguments = load_json(call.arguments or "{}")
                calls.append(ToolCall(call.name, arguments if isinstance(arguments, dict) else {}))  # pyright: ignore[reportUnknownArgumentType]
            prompt += chunk.usage.prompt_tokens if chunk.usage else 0
    return Answer(calls, prompt)


def _plugin(model: ModelConnection) -> openai.LLM:
    address = model.backend.address.rstrip("/").removesuffix("/v1")
    return openai.LLM(
        model=model.backend.model,
        base_url=f"{address}/v1",
        api_key="none",
        temperature=0.0,
        max_completion_tokens=REPLY_TOKENS,
    )


def connect(settings: Settings) -> ModelConnection:
    """A connection to the settings' model, asked as they say. Close it."""
    native_tools = {"auto": None, "native": True, "text": False}[settings.tool_calls]
    return ModelConnection(make_llm(settings).backend, native_tools, settings.text_protocol)


_ASKED: Final[Mapping[Way, Callable[[ModelConnection, Question], Awaitable[Answer]]]] = {
    "native": asked_natively,
    "livekit": asked_by_livekit,
    "node": asked_as_the_node_does,
}


async def outcome_of(model: ModelConnection, way: Way, question: Question) -> Outcome:
    ask = _ASKED[way]
    answer = None
    began = time.perf_counter()
    with contextlib.suppress(ModelError, APIError, TimeoutError):  # counted as failed
        async with asyncio.timeout(QUESTION_S):
            answer = await ask(model, question)
    calls = answer.calls if answer else ()
    return Outcome(
        name=answer is not None and right_name(question, calls),
        whole=answer is not None and right_call(question, calls),
        failed=answer is None,
        seconds=time.perf_counter() - began,
        prompt=answer.prompt if answer else 0,
    )


async def scored(
    model: ModelConnection, way: Way, category: Category, asked: Sequence[Question], kept: Kept
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for number, question in enumerate(asked):
        key = (model.backend.model, way, category, str(number))
        if (outcome := kept.get(*key)) is None:
            outcome = await outcome_of(model, way, question)
            kept.keep(outcome, *key)
        outcomes.append(outcome)
    return outcomes


async def bench(options: argparse.Namespace) -> None:
    archive = wheel()
    rows: list[tuple[object, ...]] = []
    kept = Kept(options.kept)
    async with AsyncExitStack() as stack:
        settings = await chosen(options, stack)
        for way in options.ways:
            model = connect(settings)
            stack.push_async_callback(model.aclose)
            if way == "node":
                await model.find_strategy()
            for category in options.categories:
                asked = questions(archive, category, options.limit)
                outcomes = await scored(model, way, category, asked, kept)
                rows.append(row(way, category, outcomes))
                print(*rows[-1], flush=True)
    columns = ["way", "category", "asked", "name", "all right", "errors", "s each", "tokens each"]
    print_table(f"BFCL, {settings.model}", columns, rows)


def row(way: Way, category: Category, outcomes: Sequence[Outcome]) -> tuple[object, ...]:
    count = max(1, len(outcomes))
    return (
        *(way, category, len(outcomes)),
        sum(outcome.name for outcome in outcomes),
        sum(outcome.whole for outcome in outcomes),
        sum(outcome.failed for outcome in outcomes),
        sum(outcome.seconds for outcome in outcomes) / count,
        sum(outcome.prompt for outcome in outcomes) // count,
    )


async def chosen(options: argparse.Namespace, stack: AsyncExitStack) -> Settings:
    """Settings of `--server`, else of an engine that is started here."""
    same = Settings(temperature=0, num_ctx=CONTEXT)
    if options.server:
        return same.with_model(parse_reference(options.server))
    if (weights := present(QWEN_CODER_05B)) is None:
        raise SystemExit(f"no weights: run python -m caal_node.weights {QWEN_CODER_05B.key}")
    engine = EmbeddedEngine(weights, ctx=CONTEXT, threads=options.threads)
    await stack.enter_async_context(engine)
    return same.model_copy(
        update={"model": engine.name, "api": "openai", "base_url": engine.base_url}
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--limit", type=int, default=PER_CATEGORY, help="questions a category")
    options.add_argument("--server", help="[API:]MODEL[@URL] in place of the embedded engine")
    options.add_argument("--threads", type=int, default=None, help="of the embedded engine")
    options.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    options.add_argument("--categories", nargs="+", choices=CATEGORIES, default=list(CATEGORIES))
    options.add_argument("--kept", type=Path, help="a file of outcomes to go on from")
    asyncio.run(bench(options.parse_args()))


if __name__ == "__main__":
    main()
