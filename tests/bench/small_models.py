"""Tool use by small models, by several ways of asking, on sixty requests as people speak them.

Run: `python -m tests.bench.small_models [--ollama URL MODEL] [--limit N] [--ways NAME ...]
[--on-demand 100] [--in-front 26]`. With either the whole agent is asked too (agent_ways.py), with
the requests' own tools in front of the conversation (`agent`), and with the same tools among so
many, told on demand or all in front; without `--ways` these stand beside `node` alone.
By default the embedded engine with the 0.5B demo weights (python -m caal_node.weights
qwen2.5-coder-0.5b). Temperature 0. Of the requests 35 need one call, 10 two, 15 none. `name` and
`args` are of the 35, `none` of the 15, `two` (both calls, with their arguments) of the 10; `right`
is of all. `leaks` counts replies in which JSON would be spoken. `s` is the mean of a decision, in
the engine's processor time where it is embedded, else on the wall; `warm s` what came before.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

from caal_node.core.errors import CaalError
from caal_node.models.backends.http_transport import TransportDeadlines
from caal_node.models.backends.ollama import OllamaBackend
from caal_node.models.backends.openai import OpenAIBackend
from caal_node.models.embedded_engine import EmbeddedEngine
from caal_node.weights import QWEN_CODER_05B, present
from tests.bench import agent_ways
from tests.bench.asked_ways import WAYS, Clock, Setting, wall
from tests.bench.spoken_requests import Heard, Score, load
from tests.bench.table import print_table

SLOW = TransportDeadlines(first=900.0, between=120.0)
COLUMNS = ("way", "name", "args", "two", "none", "right", "leaks", "s", "warm s", "prompt tokens")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ollama", nargs=2, metavar=("URL", "MODEL"))
    parser.add_argument("--gguf", type=Path, help="other weights for the embedded engine")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--limit", type=int, help="requests, spread over all kinds")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS))
    parser.add_argument("--on-demand", type=int, metavar="TOOLS", help="of which few are told")
    parser.add_argument("--in-front", type=int, metavar="TOOLS", help="all of them in front")
    parser.add_argument("--set", choices=("measured", "tuning"), default="measured")
    parser.add_argument("--misses", action="store_true", help="print what was not right")
    return parser.parse_args()


async def run(given: argparse.Namespace) -> None:
    requests = load(given.set).first(given.limit)
    rows: list[tuple[object, ...]] = []
    for name, way in chosen(given).items():
        # An engine each: none finds another's prompts in the cache.
        async with served(given) as (backend, url, model, clock):
            setting = Setting(backend, url, model, requests, clock)
            began = clock()
            async with way(setting) as ask:
                warmed = clock() - began
                score, heard = Score(), list[Heard]()
                for request in requests.requests:
                    try:
                        heard.append(await ask(request.say))
                    except CaalError as error:
                        heard.append(Heard((), "", 0.0, 0))
                        print(f"  {name}: {error}")
                    if not score.add(request, heard[-1]) and given.misses:
                        said = heard[-1].spoken[:90]
                        print(f"  {name}: {request.say!r}: {heard[-1].calls} {said!r}", flush=True)
            seconds = fmean(one.seconds for one in heard)
            tokens = fmean(one.prompt_tokens for one in heard if one.prompt_tokens)
            row = (name, score.name, score.arguments, score.two, score.none, score.right)
            rows.append((*row, score.leaks, seconds, warmed, round(tokens)))
            print_table(f"{len(requests.requests)} {given.set} requests, {model}", COLUMNS, rows)


def chosen(given: argparse.Namespace) -> Mapping[str, Callable[[Setting], Any]]:
    """Return the ways of asking by the names that the table has them under."""
    if given.on_demand is None and given.in_front is None:
        return {name: WAYS[name] for name in given.ways or WAYS}
    ways = {name: WAYS[name] for name in given.ways or ("node",)}
    ways["agent"] = agent_ways.in_front()
    if given.in_front is not None:
        ways[f"{given.in_front} in front"] = agent_ways.in_front(given.in_front)
    if given.on_demand is not None:
        ways[f"{given.on_demand} on demand"] = agent_ways.on_demand(given.on_demand)
    return ways


@asynccontextmanager
async def served(
    given: argparse.Namespace,
) -> AsyncGenerator[tuple[OllamaBackend | OpenAIBackend, str, str, Clock]]:
    if given.ollama:
        url, model = given.ollama
        ollama = OllamaBackend(model, host=url, temperature=0.0, deadlines=SLOW)
        try:
            yield ollama, f"{url.rstrip('/')}/v1", model, wall
        finally:
            await ollama.aclose()
        return
    gguf = given.gguf or present(QWEN_CODER_05B)
    if gguf is None:
        sys.exit(f"no weights: python -m caal_node.weights {QWEN_CODER_05B.key}")
    async with EmbeddedEngine(gguf, threads=given.threads, prompt_cache_mib=0) as engine:
        backend = OpenAIBackend(
            engine.name, base_url=engine.base_url, temperature=0.0, deadlines=SLOW
        )
        assert engine.pid is not None
        try:
            yield backend, engine.base_url, engine.name, processor_time(engine.pid)
        finally:
            await backend.aclose()


def processor_time(pid: int) -> Clock:
    """Seconds that the process has used; on the wall where the system does not tell."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return time.perf_counter
    tick = os.sysconf("SC_CLK_TCK")

    def used() -> float:
        fields = stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / tick

    return used


if __name__ == "__main__":
    asyncio.run(run(options()))
