"""What a second look stops and holds up, on calls of real models.

Run: `python -m tests.bench.second_look --ollama URL --caller MODEL --looker MODEL --folder F`.
The calls are those of `tests.bench.confidence`, each of which is put to `--looker` as the node puts
it. A wrong call that is doubted is stopped, as the person is asked; a right one is held up. The
rows are for looks at every call, and for those only whose own confidence leaves room for doubt.
`s` is the median of a look, where they were asked one at a time (`--at-once 1`) and not kept.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from caal_node.core.errors import ModelError
from caal_node.core.items import SystemItem, UserItem
from caal_node.core.prompt_files import read
from caal_node.grounding.confidence import confidence_of
from caal_node.models.second_look import ProposedCall, read_second_look, second_look_request
from caal_node.tools.middleware.second_look import DOUBT_BELOW, SURE_FROM
from tests.bench.confidence import (
    MadeCall,
    curve_of,
    made_calls,
    measured_sets,
    server,
    tuning_sets,
)
from tests.bench.recorded_replies import RecordedBackend
from tests.bench.table import print_table


@dataclass(frozen=True, slots=True)
class LookedAt:
    made: MadeCall
    own: float
    look: float | None
    seconds: float | None


async def looked_at(
    backend: RecordedBackend, calls: list[MadeCall], does: dict[str, str], at_once: int
) -> list[LookedAt]:
    room = asyncio.Semaphore(at_once)

    async def one(made: MadeCall) -> LookedAt | None:
        talk = (SystemItem(read("system.md")), UserItem(made.request.say))
        proposed = ProposedCall(made.call.name, does[made.call.name], made.call.arguments)
        async with room:
            asked, began = backend.asked, time.perf_counter()
            try:
                async with aclosing(backend.ask(second_look_request(talk, proposed))) as reply:
                    found = await read_second_look(reply)
            except ModelError:
                return None
            took = time.perf_counter() - began
        alone = at_once == 1 and backend.asked > asked
        own = confidence_of(made.signals)
        return LookedAt(made, own, found, took if alone else None)

    return [each for each in await asyncio.gather(*map(one, calls)) if each is not None]


def rows_of(looks: list[LookedAt]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    seconds = [each.seconds for each in looks if each.seconds is not None]
    for name, sure_from in (("every call", 2.0), (f"below {SURE_FROM}", SURE_FROM)):
        asked = [each for each in looks if each.own < sure_from]
        doubted = [each for each in asked if each.look is not None and each.look < DOUBT_BELOW]
        right = sum(each.made.right for each in looks)
        held = sum(each.made.right for each in doubted)
        stopped, wrong = len(doubted) - held, len(looks) - right
        took = round(median(seconds), 1) if seconds else ""
        stops = f"{stopped} of {wrong}", f"{held} of {right}"
        rows.append((name, len(looks), len(asked), *stops, took))
    for least in (0.3, 0.5, 0.7):
        doubted = [each for each in looks if each.own < least]
        held = sum(each.made.right for each in doubted)
        right = sum(each.made.right for each in looks)
        stopped, wrong = len(doubted) - held, len(looks) - right
        name = f"no look, own < {least}"
        rows.append((name, len(looks), 0, f"{stopped} of {wrong}", f"{held} of {right}", 0))
    return rows


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ollama", metavar="URL", help="without it, only what is kept is read")
    parser.add_argument("--caller", required=True)
    parser.add_argument("--looker", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--set", choices=("measured", "tuning"), default="measured")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--at-once", type=int, default=60)
    parser.add_argument("--show", action="store_true", help="print every look")
    return parser.parse_args()


async def run(given: argparse.Namespace) -> None:
    sets = measured_sets() if given.set == "measured" else tuning_sets()
    does: dict[str, str] = {}
    calls: list[MadeCall] = []
    kept = RecordedBackend(server(None, given.caller), given.folder)
    for requests in sets:
        functions = [tool["function"] for tool in requests.tools]
        does |= {each["name"]: each["description"] for each in functions}
        calls += await made_calls(kept, requests, at_once=1)
    if given.limit:
        calls = calls[:: max(1, len(calls) // given.limit)]
    backend = RecordedBackend(server(given.ollama, given.looker), given.folder)
    try:
        looks = await looked_at(backend, calls, does, given.at_once)
    finally:
        await backend.aclose()
    if not looks:
        raise SystemExit("no calls are kept: run tests.bench.confidence first")
    if given.show:
        for each in looks:
            call = each.made.call
            told = "nothing" if each.look is None else f"{each.look:.2f}"
            verdict = "right" if each.made.right else "wrong"
            print(verdict, f"own {each.own:.2f} look {told}", each.made.request.say, call.name)
            print("      ", call.arguments)
    columns = ("looked at", "calls", "looks", "wrong stopped", "right held up", "s")
    print_table(
        f"{given.set}: calls of {given.caller}, looked at by {given.looker}",
        columns,
        rows_of(looks),
    )
    judged = [(each.look, each.made.right) for each in looks if each.look is not None]
    own = [(each.own, each.made.right) for each in looks]
    print(f"AUC of the look {curve_of('', judged).area:.2f}, own {curve_of('', own).area:.2f}")


if __name__ == "__main__":
    asyncio.run(run(options()))
