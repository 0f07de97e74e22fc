"""BFCL's multi-turn conversations: a server's own tool calls, LiveKit's plugin, and the node's way.

Run: `python -m tests.bench.bfcl_multi_turn --server [API:]MODEL@URL [--limit 12] [--ways native
livekit node] [--kept FILE]`. In each turn the model is asked until it makes no more call, eight
times at most; BFCL's own program runs the calls, and BFCL's own checker judges the state and the
results that they leave. With `--kept`, what was played is kept in FILE with all its calls, and a
later run goes on behind it. `calls` counts those of the right calls that were made word for word in
their turn, however the turns before went. The conversations are those of `bfcl_conversations`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from livekit.agents import APIError

from caal_node.config.settings import Settings
from caal_node.core.addresses import parse_reference
from caal_node.core.errors import ModelError
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem, UserItem
from caal_node.models.model_connection import ModelConnection
from caal_node.reply_parser import ToolCall
from tests.bench.bfcl_conversations import (
    BfclConversation,
    BfclProgram,
    conversations,
    turns_right,
    wanted_made,
    written,
)
from tests.bench.bfcl_data import wheel
from tests.bench.bfcl_ways import ANSWER_S, ASK, SYSTEM, WAYS, Answer, Way, connect
from tests.bench.table import print_table

STEPS_MAX: Final = 8
"""Answers of a turn. The longest right one has seven calls, each of which may be a step."""
CONTEXT: Final = 8192
RESULT_CHARS: Final = 2_000
"""Characters of a result that the model is shown."""


@dataclass(frozen=True, slots=True)
class Played:
    """One conversation, as a model played it."""

    calls: list[list[list[str]]]
    """Of each turn, in steps, as the checker reads them."""
    said: list[str]
    """What was said at the end of each turn."""
    asked: int
    """Answers that were asked for."""
    prompt: int
    """Tokens, of all requests."""
    failed: int
    """Turns that ended with an error."""
    seconds: float


async def played(
    model: ModelConnection, way: Way, conversation: BfclConversation, program: BfclProgram
) -> Played:
    began = time.perf_counter()
    items: list[Item] = [SYSTEM]
    calls: list[list[list[str]]] = []
    said: list[str] = []
    asked = prompt = failed = 0
    for words in conversation.turns:
        items.append(UserItem(words))
        steps: list[list[str]] = []
        answer = None
        for _ in range(STEPS_MAX):
            answer = await _answer(model, way, items, conversation)
            asked += 1
            if answer is None or not answer.calls:
                break
            prompt += answer.prompt
            steps.append(_run(answer.calls, items, conversation, program))
        failed += answer is None
        prompt += answer.prompt if answer else 0
        said.append(answer.said if answer else "")
        items.append(AssistantItem(said[-1] or "Done."))
        calls.append(steps)
    return Played(calls, said, asked, prompt, failed, time.perf_counter() - began)


async def _answer(
    model: ModelConnection, way: Way, items: Sequence[Item], conversation: BfclConversation
) -> Answer | None:
    """Return the next answer; None where the server gives none."""
    with contextlib.suppress(ModelError, APIError, TimeoutError):  # counted as failed
        async with asyncio.timeout(ANSWER_S):
            return await ASK[way](model, tuple(items), conversation.tools)
    return None


def _run(
    calls: Sequence[ToolCall],
    items: list[Item],
    conversation: BfclConversation,
    program: BfclProgram,
) -> list[str]:
    """Run the calls of one answer, write them into the conversation, and return them."""
    made: list[str] = []
    for call in calls:
        call_id = f"call_{len(items)}"
        arguments = json.dumps(dict(call.arguments), separators=(",", ":"))
        items.append(CallItem(call_id, call.name, arguments))
        line = written(call, conversation.tools)
        result = program.run(line) if line else "Error during execution: no such call"
        made += [line] if line else []
        items.append(ResultItem(call_id, call.name, result[:RESULT_CHARS]))
    return made


class KeptConversations:
    """What was played, by model, way and conversation, in a file of JSON lines."""

    def __init__(self, path: Path | None) -> None:
        self._path: Final = path
        self._played: Final[dict[tuple[str, ...], Played]] = {}
        if path is not None and path.exists():
            for line in path.read_text("utf-8").splitlines():
                row = json.loads(line)
                key = tuple(row.pop("key"))
                self._played[key] = Played(**row)

    def get(self, *key: str) -> Played | None:
        return self._played.get(key)

    def keep(self, played: Played, *key: str) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, **asdict(played)}) + "\n")


def row(
    archive: Path, way: Way, rounds: Sequence[tuple[BfclConversation, Played]]
) -> tuple[object, ...]:
    through = [turns_right(archive, each, played.calls) for each, played in rounds]
    found = [
        wanted_made(each, turn, steps)
        for each, played in rounds
        for turn, steps in enumerate(played.calls)
    ]
    count = max(1, sum(len(each.turns) for each, _ in rounds))
    whole = sum(n == len(each.turns) for n, (each, _) in zip(through, rounds, strict=True))
    return (
        *(way, len(rounds), whole, sum(n > 0 for n in through)),
        f"{sum(through)} of {count}",
        f"{sum(made for made, _ in found)} of {sum(wanted for _, wanted in found)}",
        sum(len(step) for _, played in rounds for turn in played.calls for step in turn),
        round(sum(played.asked for _, played in rounds) / count, 1),
        sum(played.failed for _, played in rounds),
        round(sum(played.seconds for _, played in rounds) / count, 1),
        sum(played.prompt for _, played in rounds) // count,
    )


COLUMNS: Final = (
    *("way", "conversations", "right", "first turn right", "turns right in a row"),
    *("calls", "made", "answers a turn", "errors", "s a turn", "tokens a turn"),
)


async def bench(options: argparse.Namespace) -> None:
    archive = wheel()
    settings = Settings(temperature=0, num_ctx=CONTEXT)
    settings = settings.with_model(parse_reference(options.server))
    kept = KeptConversations(options.kept)
    rows: list[tuple[object, ...]] = []
    for way in options.ways:
        async with contextlib.aclosing(connect(settings)) as model:
            rounds: list[tuple[BfclConversation, Played]] = []
            for each in conversations(archive, options.limit):
                key = (model.backend.model, way, each.id)
                if (found := kept.get(*key)) is None:
                    if way == "node" and not rounds:
                        await model.find_strategy()
                    found = await played(model, way, each, BfclProgram(archive, each))
                    kept.keep(found, *key)
                rounds.append((each, found))
                right = turns_right(archive, each, found.calls)
                print(way, each.id, f"{right} of {len(each.turns)}", flush=True)
            rows.append(row(archive, way, rounds))
    print_table(f"BFCL multi-turn, the file system alone, {settings.model}", COLUMNS, rows)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--server", required=True, help="[API:]MODEL[@URL]")
    options.add_argument("--limit", type=int, default=12, help="conversations, of thirteen")
    options.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    options.add_argument("--kept", type=Path, help="a file of what was played, to go on from")
    asyncio.run(bench(options.parse_args()))


if __name__ == "__main__":
    main()
