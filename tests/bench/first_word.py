"""Seconds to the first sentence of a turn that needs no tool: the raw stream beside the node.

Run: `python -m tests.bench.first_word --ollama URL MODEL [--limit 8]`.
Each request is asked three times: once unmeasured, so that the server has read the same prompt for
both; then raw, the server's stream of the node's own request; then by the node, which asks for a
whole reply as an agent with tools does. `whole` is when the node's reply was over: before the
first key decided, that was when people heard its first word. `no tools` is an agent with nothing
to call. Temperature 0.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import time
from collections.abc import AsyncIterable
from contextlib import aclosing
from dataclasses import replace
from statistics import median
from typing import Final

from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import SystemItem, UserItem
from caal_node.core.prompt_files import read
from caal_node.models.backends.base import BackendRequest, TextChunk
from caal_node.models.backends.ollama import OllamaBackend
from caal_node.models.model_connection import ModelConnection
from caal_node.models.question import Question
from caal_node.reply_parser import TextDelta, ToolCallEnd
from tests.bench.small_models import SLOW
from tests.bench.spoken_requests import load
from tests.bench.table import print_table

ASKED: Final = (
    "tell me in six sentences how bread is baked",
    "explain in six sentences why the sky is blue",
    "tell me a short story about a fox, six sentences",
    "explain in six sentences what a heat pump is",
    "tell me in six sentences about the moon",
    "describe an oak tree in six sentences",
    "tell me in six sentences how a bicycle stays upright",
    "explain in six sentences what a glacier is",
)
_SENTENCE: Final = re.compile(r"\w[.!?](?=[\s\"]|$)")
COLUMNS: Final = ("way", "requests", "raw s", "node s", "whole s", "node / raw", "calls")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ollama", nargs=2, metavar=("URL", "MODEL"), required=True)
    parser.add_argument("--limit", type=int, default=len(ASKED))
    return parser.parse_args()


async def run(given: argparse.Namespace) -> None:
    url, model = given.ollama
    needs = load("needs")
    tools = PromptTools(needs.tools, needs.examples)
    rows: list[tuple[object, ...]] = []
    for way, native, offered in (
        ("no tools", True, PromptTools()),
        ("14 tools, json", False, tools),
    ):
        backend = OllamaBackend(model, host=url, temperature=0.0, deadlines=SLOW)
        connection = ModelConnection(backend, native)
        try:
            rows.append((way, *await _row(connection, offered, ASKED[: given.limit])))
        finally:
            await connection.aclose()
    print_table(f"seconds to the first sentence, {model}, median", COLUMNS, rows)


async def _row(
    connection: ModelConnection, tools: PromptTools, asked: tuple[str, ...]
) -> tuple[object, ...]:
    raws: list[float] = []
    nodes: list[float] = []
    wholes: list[float] = []
    calls = 0
    await connection.warm(_question("hello", tools))
    for words in asked:
        question = _question(words, tools)
        strategy = connection.retry_policy.first_strategy(question)
        request = replace(strategy.request(question), stream=True)
        await _first_sentence(connection, request)
        raws.append(await _first_sentence(connection, request))
        first, whole, called = await _heard(connection, question)
        calls += called
        if not called:
            nodes.append(first)
            wholes.append(whole)
    ratio = median(nodes) / median(raws) if nodes else float("nan")
    return (len(asked), median(raws), *map(median, (nodes, wholes)), ratio, calls)


def _question(words: str, tools: PromptTools) -> Question:
    items = (SystemItem(read("system.md")), UserItem(words))
    # As the agent asks: a whole reply where something could be called.
    return Question(items, tools, stream=not tools.names, max_tokens=200)


async def _first_sentence(connection: ModelConnection, request: BackendRequest) -> float:
    async with aclosing(connection.backend.ask(request)) as chunks:
        return await _time_of_sentence(
            chunk.text async for chunk in chunks if isinstance(chunk, TextChunk)
        )


async def _time_of_sentence(pieces: AsyncIterable[str]) -> float:
    """Return the seconds to the first sentence; the rest is read too, so that nothing is left."""
    began, found, text = time.perf_counter(), 0.0, ""
    async for piece in pieces:
        text += piece
        if not found and _SENTENCE.search(text):
            found = time.perf_counter() - began
    return found or time.perf_counter() - began


async def _heard(connection: ModelConnection, question: Question) -> tuple[float, float, bool]:
    called = False
    began = time.perf_counter()

    async def spoken() -> AsyncIterable[str]:
        nonlocal called
        async with aclosing(connection.ask(question)) as events:
            async for event in events:
                called |= isinstance(event, ToolCallEnd)
                if isinstance(event, TextDelta):
                    yield event.text

    first = await _time_of_sentence(spoken())
    return first, time.perf_counter() - began, called


if __name__ == "__main__":
    asyncio.run(run(options()))
