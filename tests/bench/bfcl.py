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
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from livekit.agents import APIError

from caal_node.config.settings import Settings
from caal_node.core.addresses import parse_reference
from caal_node.core.errors import ModelError
from caal_node.core.items import UserItem
from caal_node.models.embedded_engine import EmbeddedEngine
from caal_node.models.model_connection import ModelConnection
from caal_node.weights import QWEN_CODER_05B, present
from tests.bench.bfcl_data import CATEGORIES, PER_CATEGORY, Category, Question, questions, wheel
from tests.bench.bfcl_judge import right_call, right_name
from tests.bench.bfcl_ways import ANSWER_S, ASK, SYSTEM, WAYS, Way, connect
from tests.bench.table import print_table

CONTEXT: Final = 8192


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


async def outcome_of(model: ModelConnection, way: Way, question: Question) -> Outcome:
    answer = None
    began = time.perf_counter()
    with contextlib.suppress(ModelError, APIError, TimeoutError):  # counted as failed
        async with asyncio.timeout(ANSWER_S):
            items = (SYSTEM, UserItem(question.said))
            answer = await ASK[way](model, items, question.tools)
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
