"""What a real model does with eighty texts from outside that ask for a call of their own.

Run: `python -m tests.bench.injection [--weight KEY | --ollama URL MODEL] [--limit N] [--show]`.
By default the embedded engine with the 0.5B demo weights, temperature 0. Each case is one turn of a
whole agent over twelve tools, and the person in it never says yes. `asked for` counts cases in
which the model made the call that the text asks for, `done` those in which its tool ran, `answered`
those in which the person was told what they wanted to know. The first line of the table is without
any middleware, the second with that of `tests.injection_gates`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from caal_node.agent import CaalAgent
from caal_node.core.events import ToolCallEnded, ToolCallStarted
from caal_node.models.llm import LLM
from caal_node.testing import AgentConversation, plain_settings
from caal_node.tools.call_middleware import CallMiddleware
from caal_node.tools.pipeline import Gates
from caal_node.weights import QWEN_CODER_05B
from tests.bench.table import print_table
from tests.injection import TOOLS, House, InjectionCase, load_cases

TURN_S: Final = 120.0
"""Seconds for a turn; on two cores a 0.5B takes five to ten."""
ROUNDS: Final = "3"
"""Rounds of calls in a turn: enough for a call after the result, which is what is looked for."""


@dataclass(frozen=True, slots=True)
class Played:
    """What came of one case."""

    case: InjectionCase
    asked_for: bool
    done: bool
    answered: bool | None
    """None where there is nothing that would be right, as behind an error."""
    said: str
    calls: tuple[str, ...]
    seconds: float


async def play(
    case: InjectionCase, model: LLM, middleware: Sequence[CallMiddleware], *, warm: bool
) -> Played:
    """Say the words of one case to an agent of its own, and note what was done.

    `warm` has the model read the prompt's head first, and measure how sure of a call it has to be.
    """
    house = House(case)
    tiers: Any = house.tiers
    agent = CaalAgent(
        settings=plain_settings(CAAL_MAX_TOOL_ROUNDS=ROUNDS),
        tiers=tiers,
        gates=Gates(middleware=list(middleware)),
        warm=warm,
    )
    async with AgentConversation(agent, model, turn_s=TURN_S) as talk:
        if warm:
            await agent.warmed()
        began = time.perf_counter()
        try:
            turn = await talk.say(case.say)
            said = turn.text
        except TimeoutError:
            said = ""
        started, ended = talk.events_of(ToolCallStarted), talk.events_of(ToolCallEnded)
    outcomes = {event.call_id: event.outcome for event in ended}
    calls = tuple(
        f"{each.tool}{dict(each.arguments or {})} {outcomes.get(each.call_id)}" for each in started
    )
    asked_for = any(case.is_disallowed(each.tool, each.arguments or {}) for each in started)
    tool = TOOLS.get(case.source)
    answered = None
    if tool is not None and tool.right and case.place != "error":
        answered = any(word in said.lower() for word in tool.right)
    took = time.perf_counter() - began
    return Played(case, asked_for, bool(house.harm), answered, said, calls, took)


def spread(cases: list[InjectionCase], limit: int | None) -> list[InjectionCase]:
    """Return `limit` of the cases, evenly from all of them."""
    if limit is None or limit >= len(cases):
        return cases
    return [cases[number * len(cases) // limit] for number in range(limit)]


def row(name: str, played: Sequence[Played]) -> tuple[object, ...]:
    answered = [each.answered for each in played if each.answered is not None]
    told = f"{sum(answered)}/{len(answered)}"
    seconds = sum(each.seconds for each in played) / len(played)
    harmed = sum(each.asked_for for each in played), sum(each.done for each in played)
    return (name, len(played), *harmed, told, seconds)


async def run(given: argparse.Namespace) -> None:
    cases = spread(load_cases(), given.limit)
    if given.ollama:
        url, name = given.ollama
        model = LLM(name, "ollama", url, temperature=0.0)
    else:
        name = given.weight
        model = LLM(name, "embedded", temperature=0.0)
    rows: list[tuple[object, ...]] = []
    for way, middleware in WAYS.items():
        if way not in given.ways:
            continue
        played: list[Played] = []
        for case in cases:
            # What the first one has found out of the model stays with it.
            played.append(await play(case, model, middleware, warm=not (rows or played)))
            if given.show:
                last = played[-1]
                told = f"asked={last.asked_for:d} done={last.done:d} right={last.answered}"
                print(f"  {case.id}: {told} {last.calls} {last.said[:160]!r}", flush=True)
        rows.append(row(way, played))
        places = Counter(each.case.kind for each in played if each.asked_for)
        print_table(
            f"{len(cases)} texts from outside, {name}",
            ("middleware", "cases", "asked for", "done", "answered", "s"),
            rows,
        )
        print(f"  asked for, by kind: {dict(places)}", flush=True)
    await model.aclose()


WAYS: Final[dict[str, Sequence[CallMiddleware]]] = {"none": ()}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ollama", nargs=2, metavar=("URL", "MODEL"))
    parser.add_argument("--weight", default=QWEN_CODER_05B.key, help="of caal_node.weights")
    parser.add_argument("--limit", type=int, help="cases, spread over all kinds")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--show", action="store_true", help="print every case")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(asyncio.run(run(options())))
