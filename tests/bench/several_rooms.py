"""Prompt tokens that four rooms of one agent make a real server evaluate, turn by turn in turn.

Run: `python -m tests.bench.several_rooms [--llama] [--ollama] [--rooms 4] [--turns 6]`; both
servers unless one is named. Needs the 0.5B demo weights, xllamacpp, and an `ollama` that
`.ci/build-ollama` has built. The rooms are `CaalAgent`s with twelve tools, warmed as in a room;
the replies are a script's, and the engine reads each request for one token (counting_engine.py).
llama.cpp counts in its `timings`, Ollama in its log ("loading cache slot", `remaining`).

`ideal` is one head and every room's own turns, which is what a server reads that keeps all it has
read. `one room` is what a single room makes the same server read. The words are each room's own,
or the same in all, which a server that compares prompts reads once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from caal_node import CaalAgent
from caal_node.core.tool_spec import ToolSpec
from caal_node.models.backends.base import Backend
from caal_node.models.backends.http_transport import TransportDeadlines
from caal_node.models.backends.ollama import OllamaBackend
from caal_node.models.backends.openai import OpenAIBackend
from caal_node.models.llm import LLM
from caal_node.testing import AgentConversation, plain_settings
from caal_node.weights import QWEN_CODER_05B, present
from tests.bench.counting_engine import DEADLINE_S, CountingEngine, Read
from tests.bench.one_layer import write_one_layer
from tests.bench.scripted_day import DAY, Turn
from tests.bench.table import print_table
from tests.stand_ins import fifty_tools, llama_server, ollama_server
from tests.stand_ins.conversation import FakeTier

TOOLS: Final = 12
CONTEXT_TOKENS: Final = 8_192
NAMES: Final = ("kitchen", "study", "cellar", "garden", "attic", "garage", "hall", "nursery")
COLUMNS: Final = (
    *("server", "words", "rooms", "requests", "evaluated", "head"),
    *("of ideal", "of one room", "longest in a turn"),
)
_LOADED: Final = re.compile(rb"loading cache slot.* prompt=(\d+) used=(\d+) remaining=(\d+)")


class SharedLlama(CountingEngine):
    """A llama.cpp whose slots are the real one's."""

    def __init__(self, address: str) -> None:
        super().__init__(f"{address}/v1", "one-layer", CONTEXT_TOKENS)

    async def _slots(self, _request: web.Request) -> web.Response:
        return web.json_response((await self._engine.get("/../slots")).json())

    async def _llama_completion(self, _request: web.Request) -> web.Response:
        told = (await self._engine.post("/../completion", json=self.requests[-1].json)).json()
        timings = told["timings"]
        self.counts.reads.append(Read(timings["prompt_n"], timings["cache_n"], 1))
        return web.json_response(told)


class SharedOllama(CountingEngine):
    """Takes `/api/chat`, and has a real Ollama read it."""

    def __init__(self, server: ollama_server.Ollama, model: str, log: Path) -> None:
        super().__init__(server.url, model, CONTEXT_TOKENS)
        self.llama = False
        self._log: Final = log

    async def _ollama_chat(self, request: web.Request) -> web.StreamResponse:
        body = self.requests[-1].json
        # Two threads that wait for each other on a busy machine take a hundred times as long.
        options = {**body["options"], "num_predict": 1, "num_thread": 1}
        reply = await self._engine.post(
            "/api/chat", json={**body, "stream": False, "options": options}
        )
        if reply.is_error:
            raise web.HTTPBadGateway(text=reply.text[:500])
        loaded = _LOADED.findall(await asyncio.to_thread(self._log.read_bytes))
        _, cached, evaluated = map(int, loaded[-1])
        self.counts.reads.append(Read(evaluated, cached, len(json.dumps(body))))
        self.prompt_tokens = evaluated + cached
        return await super()._ollama_chat(request)


@dataclass(frozen=True, slots=True)
class Measured:
    warm_ups: tuple[int, ...]
    """Tokens evaluated for each room's beginning."""
    turns: tuple[int, ...]
    """The same for each turn of each room."""
    requests: int

    @property
    def total(self) -> int:
        return sum(self.warm_ups) + sum(self.turns)


@asynccontextmanager
async def opened(backend: Backend, turns: tuple[Turn, ...]) -> AsyncGenerator[AgentConversation]:
    """A room that is ready for its first turn."""
    model = LLM(backend=backend, native_tools=True)
    settings = plain_settings(
        CAAL_NUM_CTX=str(CONTEXT_TOKENS), CAAL_TOOL_TOKENS=str(CONTEXT_TOKENS)
    )
    agent = CaalAgent(settings=settings, tiers={"n8n": FakeTier(*specs(turns), answer=_answer)})
    try:
        async with AgentConversation(agent, model, turn_s=DEADLINE_S) as talk:
            await agent.warmed()
            yield talk
    finally:
        await model.aclose()


def specs(turns: tuple[Turn, ...]) -> list[ToolSpec]:
    needed = {name for turn in turns for name, _ in turn.calls}
    tools = sorted(fifty_tools.tools(), key=lambda tool: tool.name not in needed)[:TOOLS]
    return [
        ToolSpec("n8n", "n8n", t.name, t.name, t.description or "", t.input_schema) for t in tools
    ]


async def _answer(spec: ToolSpec, _: Any) -> Any:
    return json.loads(fifty_tools.result(spec.name))


async def measured(
    engine: CountingEngine, backends: list[Backend], turns: tuple[Turn, ...], *, own_words: bool
) -> Measured:
    """Hold the script in a room for each of `backends`, each turn in one after the other."""
    reads = engine.counts.reads
    begun: list[int] = []
    spent: list[int] = []
    async with AsyncExitStack() as stack:
        rooms: list[AgentConversation] = []
        for backend in backends:
            before = len(reads)
            rooms.append(await stack.enter_async_context(opened(backend, turns)))
            begun.append(sum(read.tokens for read in reads[before:]))
        for turn in turns:
            for name, room in zip(NAMES, rooms, strict=False):
                before = len(reads)
                engine.script.begin(_of_room(turn, name) if own_words else turn)
                await room.say(engine.script.turn.said)
                if engine.script.asked != len(turn.calls) + 1:
                    raise RuntimeError(f"{turn.said!r}: {engine.script.asked} requests")
                spent.append(sum(read.tokens for read in reads[before:]))
    return Measured(tuple(begun), tuple(spent), len(reads))


def _of_room(turn: Turn, name: str) -> Turn:
    return replace(
        turn, said=f"The {name} asks: {turn.said}", answer=f"To the {name}: {turn.answer}"
    )


async def rows_of(
    server: str, start: Any, make: Any, given: argparse.Namespace
) -> list[tuple[object, ...]]:
    """Rows for one room and for several; `start` gives a fresh engine, `make` a room's backend."""
    turns = DAY[: given.turns]
    rows: list[tuple[object, ...]] = []
    for own_words in (True, False):
        alone: Measured | None = None
        for count in (1, given.rooms):
            with start() as shared:
                async with shared as engine:
                    backends: list[Backend] = [make(engine) for _ in range(count)]
                    found = await measured(engine, backends, turns, own_words=own_words)
            alone = alone or found
            ideal = alone.total + (count - 1) * sum(alone.turns)
            words = "own" if own_words else "same"
            rows.append(
                (
                    *(server, words, count, found.requests, found.total, sum(found.warm_ups)),
                    *(f"{found.total / ideal:.2f}", f"{found.total / alone.total:.2f}"),
                    max(found.turns),
                )
            )
            print(*rows[-1], list(found.warm_ups), list(found.turns), flush=True)
    return rows


def _llama_backend(**extra: int) -> Any:
    def make(engine: CountingEngine) -> Backend:
        return OpenAIBackend(
            engine.model,
            base_url=engine.openai_url,
            extra=extra,
            deadlines=TransportDeadlines(first=DEADLINE_S),
        )

    return make


def _ollama_backend(engine: CountingEngine) -> Backend:
    patient = TransportDeadlines(first=DEADLINE_S)
    return OllamaBackend(engine.model, host=engine.url, num_ctx=CONTEXT_TOKENS, deadlines=patient)


async def bench_llama(weights: Path, given: argparse.Namespace) -> list[tuple[object, ...]]:
    def started(*, unified: bool) -> Any:
        @contextmanager
        def start() -> Generator[SharedLlama]:
            tokens = CONTEXT_TOKENS * (1 if unified else given.rooms)
            with llama_server.running(
                weights, context_tokens=tokens, slots=given.rooms, unified=unified
            ) as address:
                yield SharedLlama(address)

        return start

    chosen_by_server = _llama_backend(id_slot=-1)
    rows: list[tuple[object, ...]] = []
    for server, unified, make in (
        ("llama.cpp, a slot each", False, _llama_backend()),
        ("llama.cpp, its own choice", False, chosen_by_server),
        ("llama.cpp, unified KV", True, _llama_backend()),
    ):
        rows += await rows_of(server, started(unified=unified), make, given)
    return rows


async def bench_ollama(
    weights: Path, folder: Path, given: argparse.Namespace
) -> list[tuple[object, ...]]:
    binary = ollama_server.find_ollama()
    if binary is None:
        raise FileNotFoundError("no ollama: .ci/build-ollama builds one")

    def started(**settings: str) -> Any:
        @contextmanager
        def start() -> Generator[SharedOllama]:
            log = folder / "ollama.log"
            with ollama_server.running(
                binary, folder / "ollama", log_file=log, OLLAMA_DEBUG="1", **settings
            ) as server:
                model = server.create("one-layer", weights)
                yield SharedOllama(server, model, log)

        return start

    kept = {"OLLAMA_MULTIUSER_CACHE": "1", "OLLAMA_NEW_ENGINE": "1"}
    rows: list[tuple[object, ...]] = []
    for server, settings in (
        ("Ollama as it comes", {}),
        *(
            (f"Ollama, {prompts} kept", {**kept, "OLLAMA_NUM_PARALLEL": str(prompts)})
            for prompts in (given.rooms, 2 * given.rooms)
        ),
    ):
        rows += await rows_of(server, started(**settings), _ollama_backend, given)
    return rows


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--llama", action="store_true")
    options.add_argument("--ollama", action="store_true")
    options.add_argument("--rooms", type=int, default=4, choices=range(2, len(NAMES) + 1))
    options.add_argument("--turns", type=int, default=6, choices=range(1, len(DAY) + 1))
    given = options.parse_args()
    both = given.llama == given.ollama
    if (gguf := present(QWEN_CODER_05B)) is None:
        missing = f"python -m caal_node.weights {QWEN_CODER_05B.key}"
        print(f"the weights are not in the cache ({missing}): nothing measured", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "one-layer.gguf"
        write_one_layer(gguf, weights)
        rows: list[tuple[object, ...]] = []
        if both or given.llama:
            rows += asyncio.run(bench_llama(weights, given))
        if both or given.ollama:
            rows += asyncio.run(bench_ollama(weights, Path(folder), given))
    print_table(f"prompt tokens evaluated, {given.turns} turns a room", COLUMNS, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
