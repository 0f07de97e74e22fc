"""BFCL simple, multiple and irrelevance: a server's own tool calls, and the node's way.

Run: `python -m tests.bench.bfcl [--limit 200] [--server [API:]MODEL@URL] [--ways native node]`.
Without a server: the 0.5B demo weights in the embedded engine. `native` is what an ordinary client
sees: structured calls alone, of one request with tools. `node` is `caal_node.LLM` as a session has
it: it finds out how the model is to be asked, reads calls wherever they stand, and asks again.
BFCL's tools come without example utterances, and each question has tools of its own, so nothing of
a prompt is in a cache: seconds are of cold prompts. Its questions are typed ones, not spoken.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from caal_node.context.items import System, User
from caal_node.errors import ModelError
from caal_node.models import question as models
from caal_node.models.embedded import EmbeddedEngine
from caal_node.models.llm import LLM
from caal_node.models.port import Done, NativeCall, Request
from caal_node.models.reference import parse_reference
from caal_node.replies import Event, ToolCall, summarise
from caal_node.replies.values import load_json
from caal_node.session import make_llm
from caal_node.settings import Settings
from caal_node.weights import QWEN_CODER_05B, present
from tests.bench.bfcl_data import CATEGORIES, PER_CATEGORY, Category, Question, questions, wheel
from tests.bench.bfcl_judge import right_call, right_name
from tests.bench.table import print_table

Way: TypeAlias = Literal["native", "node"]
WAYS: Final[tuple[Way, ...]] = ("native", "node")
REPLY_TOKENS: Final = 256
"""BFCL's longest right call is about 150."""
QUESTION_S: Final = 300.0
CONTEXT: Final = 8192
_SYSTEM: Final = System(
    "You are a helpful assistant. Use a tool where one does what the person asks for."
)


@dataclass(slots=True)
class Score:
    name: int = 0
    whole: int = 0
    total: int = 0
    failed: int = 0
    seconds: float = 0.0
    prompt: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    calls: Sequence[ToolCall]
    prompt: int
    """Tokens, of all its requests."""


async def asked_natively(model: LLM, question: Question) -> Answer:
    request = Request(
        (_SYSTEM, User(question.said)),
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
            elif isinstance(chunk, Done):
                prompt += chunk.usage.prompt
    return Answer(calls, prompt)


async def asked_as_the_node_does(model: LLM, question: Question) -> Answer:
    events: list[Event] = []
    prompt = 0
    asked = models.Question(
        (_SYSTEM, User(question.said)),
        question.tools,
        stream=False,
        max_tokens=REPLY_TOKENS,
    )
    async with aclosing(model.ladder.ask(asked)) as parts:
        async for part in parts:
            if isinstance(part, Done):
                prompt += part.usage.prompt
            elif isinstance(part, Event):
                events.append(part)
    return Answer(summarise(events).calls, prompt)


async def scored(model: LLM, way: Way, asked: Sequence[Question]) -> Score:
    score = Score()
    for question in asked:
        began = time.perf_counter()
        try:
            async with asyncio.timeout(QUESTION_S):
                answer = await (
                    asked_natively(model, question)
                    if way == "native"
                    else asked_as_the_node_does(model, question)
                )
        except (ModelError, TimeoutError):
            answer = None
            score.failed += 1
        score.seconds += time.perf_counter() - began
        score.total += 1
        if answer is not None:
            score.prompt += answer.prompt
            score.name += right_name(question, answer.calls)
            score.whole += right_call(question, answer.calls)
    return score


async def bench(options: argparse.Namespace) -> None:
    archive = wheel()
    rows: list[tuple[object, ...]] = []
    async with AsyncExitStack() as stack:
        settings = await chosen(options, stack)
        for way in options.ways:
            model = make_llm(settings)
            stack.push_async_callback(model.aclose)
            if way == "node":
                await model.find_way()
            for category in options.categories:
                asked = questions(archive, category, options.limit)
                rows.append(row(way, category, await scored(model, way, asked)))
                print(*rows[-1], flush=True)
    columns = ["way", "category", "asked", "name", "all right", "errors", "s each", "tokens each"]
    print_table(f"BFCL, {settings.model}", columns, rows)


def row(way: Way, category: Category, score: Score) -> tuple[object, ...]:
    count = max(1, score.total)
    return (
        *(way, category, score.total, score.name, score.whole, score.failed),
        *(score.seconds / count, score.prompt // count),
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
    asyncio.run(bench(options.parse_args()))


if __name__ == "__main__":
    main()
