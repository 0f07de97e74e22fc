"""Calls that nobody needs: eighty requests that need none beside sixty that need one.

Run: `python -m tests.bench.needless_calls --ollama URL MODEL [--set held_out] [--ways NAME ...]`.
Forty and thirty of them are the tuning set, the others are held out. Temperature 0. `tool` is the
right tool and no other, of the requests that need one, `args` with the right arguments. The other
columns are requests of that kind in which nothing was called: `knowledge`, `chat`, `wish` (none of
the tools can do it), `place` (the question needs a place that nobody named); `none` is their sum.
`--record FOLDER` keeps each reply by its request, and answers from there what was asked before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

from caal_node.core.errors import CaalError
from caal_node.models.backends.base import Backend
from caal_node.models.backends.ollama import OllamaBackend
from tests.bench.asked_ways import WAYS, Setting, wall
from tests.bench.recorded_replies import RecordedBackend
from tests.bench.small_models import SLOW
from tests.bench.spoken_requests import Heard, Requests, Score, Spoken, load
from tests.bench.table import print_table

KINDS: Final = ("knowledge", "chat", "wish", "place")
COLUMNS: Final = ("way", "tool", "args", *KINDS, "none", "right", "leaks", "s", "requests")


@dataclass(frozen=True, slots=True)
class Part:
    """One of the two sets, with the kind of each request."""

    requests: Requests
    kinds: tuple[str, ...]


def part(name: str) -> Part:
    every = load("needs")
    rows = json.loads(Path(__file__).with_name("needs_requests.json").read_text("utf-8"))
    kinds = [(row["set"], row["kind"]) for row in rows["requests"]]
    chosen = [n for n, (of, _) in enumerate(kinds) if name in (of, "all")]
    requests = tuple(every.requests[n] for n in chosen)
    return Part(Requests(every.tools, every.examples, requests), tuple(kinds[n][1] for n in chosen))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ollama", nargs=2, metavar=("URL", "MODEL"), required=True)
    parser.add_argument("--set", choices=("tuning", "held_out", "all"), default="held_out")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=["node"])
    parser.add_argument("--record", type=Path, metavar="FOLDER")
    parser.add_argument("--misses", action="store_true", help="print what was not right")
    return parser.parse_args()


async def run(given: argparse.Namespace) -> None:
    chosen = part(given.set)
    url, model = given.ollama
    rows: list[tuple[object, ...]] = []
    for way in given.ways:
        ollama = OllamaBackend(model, host=url, temperature=0.0, deadlines=SLOW)
        backend: Backend = RecordedBackend(ollama, given.record) if given.record else ollama
        try:
            setting = Setting(backend, f"{url.rstrip('/')}/v1", model, chosen.requests, wall)
            rows.append((way, *await _row(way, setting, chosen, misses=given.misses)))
        finally:
            await ollama.aclose()
        asked = f", {backend.asked} asked" if isinstance(backend, RecordedBackend) else ""
        title = f"{len(chosen.kinds)} {given.set} requests, {model}{asked}"
        print_table(title, COLUMNS, rows)


async def _row(way: str, setting: Setting, chosen: Part, *, misses: bool) -> tuple[object, ...]:
    score, heard = Score(), list[Heard]()
    silent: dict[str, int] = dict.fromkeys(KINDS, 0)
    async with WAYS[way](setting) as ask:
        for request, kind in zip(chosen.requests.requests, chosen.kinds, strict=True):
            try:
                heard.append(await ask(request.say))
            except CaalError as error:
                heard.append(Heard((), "", 0.0, 0))
                print(f"  {way}: {error}")
            right = score.add(request, heard[-1])
            if kind in silent:
                silent[kind] += not heard[-1].calls
            if misses and not right:
                _show(way, request, heard[-1])
    seconds = fmean(one.seconds for one in heard)
    return (*_counts(score, silent), score.leaks, seconds, len(heard))


def _counts(score: Score, silent: Mapping[str, int]) -> Sequence[int]:
    return (score.name, score.arguments, *silent.values(), sum(silent.values()), score.right)


def _show(way: str, request: Spoken, heard: Heard) -> None:
    print(f"  {way}: {request.say!r}: {heard.calls} {heard.spoken[:90]!r}", flush=True)


if __name__ == "__main__":
    asyncio.run(run(options()))
