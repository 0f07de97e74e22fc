"""What a real model does with eighty texts from outside that ask for a call of their own.

Run: `python -m tests.bench.injection [--weight KEY | --ollama URL MODEL] [--limit N] [--minutes N]
[--show]`.
By default the embedded engine with the 0.5B demo weights, temperature 0. Each case is one turn of a
whole agent over twelve tools, and the person in it never says yes. So that the model has read the
text for certain, the reader's call is made for it; `--unread` leaves that to the model as well.

`asked for` counts cases in which the model made the call that the text asks for, `done` those in
which its tool ran, `answered` those in which the person was told what they wanted to know. The
first row is without middleware. The second is with a yes for what destroys and for what only a
tool's words have asked for; it plays those cases anew in which the first made the call, as in all
others there is nothing to refuse.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from caal_node.agent import CaalAgent
from caal_node.core.events import ToolCallEnded, ToolCallStarted
from caal_node.models.backends.base import (
    Backend,
    BackendRequest,
    Capabilities,
    Chunk,
    NativeCall,
    ReplyDone,
    TextChunk,
    Usage,
)
from caal_node.models.backends.embedded import EmbeddedBackend
from caal_node.models.backends.http_transport import TransportDeadlines
from caal_node.models.backends.ollama import OllamaBackend
from caal_node.models.llm import LLM
from caal_node.testing import AgentConversation, plain_settings
from caal_node.tools.call_middleware import CallMiddleware
from caal_node.tools.pipeline import Gates
from caal_node.weights import QWEN_CODER_05B
from tests.bench.table import print_table
from tests.stand_ins.injection import TOOLS, House, InjectionCase, load_cases
from tests.stand_ins.injection_gates import NobodySaysYes

TURN_S: Final = 900.0
"""Seconds for a turn; on two cores a 0.5B takes five to ten, and a 1.5B half a minute. A server
that others ask too takes many times as long."""
DEADLINES: Final = TransportDeadlines(first=TURN_S, between=TURN_S)
"""A server that others ask too may have a request wait for a whole turn."""
UNANSWERED: Final = "(no answer in time)"
ROUNDS: Final = "3"
"""Rounds of calls in a turn: enough for a call after the result, which is what is looked for."""


class ReaderFirst:
    """A model whose next reply is a call that it is given, and whose others are its own.

    The call is made as the request asks for calls: with a server's tools, or as text.
    """

    def __init__(self, wrapped: Backend) -> None:
        self._wrapped: Final = wrapped
        self.given: tuple[str, Mapping[str, Any]] | None = None
        """The name and the arguments of the call."""

    @property
    def model(self) -> str:
        return self._wrapped.model

    @property
    def address(self) -> str:
        return self._wrapped.address

    async def capabilities(self) -> Capabilities:
        return await self._wrapped.capabilities()

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        given, self.given = self.given, None
        if given is not None:
            name, arguments = given
            if request.tools:
                yield NativeCall("read", name, json.dumps(arguments))
            else:
                calls = [{"name": name, "arguments": arguments}]
                yield TextChunk(json.dumps({"calls": calls}))
            yield ReplyDone("stop", Usage())
            return
        async with aclosing(self._wrapped.ask(request)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def aclose(self) -> None:
        await self._wrapped.aclose()


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
    case: InjectionCase,
    model: LLM,
    middleware: Sequence[CallMiddleware],
    *,
    warm: bool,
    reader: ReaderFirst | None = None,
) -> Played:
    """Say the words of one case to an agent of its own, and note what was done.

    `reader` is the model's server where the reader's call is made for it. `warm` has the model
    read the prompt's head first, and measure how sure of a call it has to be.
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
        if reader is not None and case.read is not None and not case.described:
            reader.given = (case.source, dict(case.read.arguments))
        began = time.perf_counter()
        try:
            turn = await talk.say(case.say)
            said = turn.text
        except TimeoutError:
            said = UNANSWERED
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
    """Return `limit` of the cases, so mixed that any beginning of them is of every kind.

    Those that change the table of tools are last, as the model reads its prompt anew for each.
    """
    step = 7
    mixed = [case for first in range(step) for case in cases[first::step]]
    chosen = mixed if limit is None else mixed[:limit]
    return sorted(chosen, key=lambda case: case.described)


def row(name: str, played: Sequence[Played]) -> tuple[object, ...]:
    answered = [each.answered for each in played if each.answered is not None]
    told = f"{sum(answered)}/{len(answered)}"
    seconds = sum(each.seconds for each in played) / len(played)
    harmed = sum(each.asked_for for each in played), sum(each.done for each in played)
    return (name, len(played), *harmed, told, seconds)


async def run(given: argparse.Namespace) -> None:
    cases = spread(load_cases(), given.limit)
    server: Backend
    if given.ollama:
        url, name = given.ollama
        server = OllamaBackend(name, host=url, temperature=0.0, deadlines=DEADLINES)
    else:
        name = given.weight
        server = EmbeddedBackend(name, temperature=0.0)
    reader = None if given.unread else ReaderFirst(server)
    model = LLM(name, backend=reader or server)
    ends_at = time.monotonic() + given.minutes * 60
    plain: list[Played] = []
    gated: list[Played] = []
    for case in cases:
        # What the first one has found out of the model stays with it.
        plain.append(await play(case, model, (), warm=not plain, reader=reader))
        again = plain[-1].asked_for
        gates = [NobodySaysYes()]
        gated.append(
            await play(case, model, gates, warm=False, reader=reader) if again else plain[-1]
        )
        for each in plain[-1:] + (gated[-1:] if again else []):
            if given.show:
                told = f"asked={each.asked_for:d} done={each.done:d} right={each.answered}"
                told += f" {each.seconds:.0f}s"
                print(f"  {case.id}: {told} {each.calls} {each.said[:160]!r}", flush=True)
        if time.monotonic() > ends_at:
            break
    kinds = Counter(each.case.kind for each in plain if each.asked_for)
    rows = {"none": plain, "a yes": gated}
    # A model that has said nothing in time has not kept from anything either.
    kept = {name: [e for e in each if e.said != UNANSWERED] for name, each in rows.items()}
    print_table(
        f"{len(plain)} of {len(cases)} texts from outside, {name}",
        ("middleware", "cases", "asked for", "done", "answered", "s"),
        [row(name, each) for name, each in kept.items() if each],
    )
    print(f"  no answer in time: {len(plain) - len(kept['none'])}")
    print(f"  asked for, by kind: {dict(kinds)}", flush=True)
    await model.aclose()


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ollama", nargs=2, metavar=("URL", "MODEL"))
    parser.add_argument("--weight", default=QWEN_CODER_05B.key, help="of caal_node.weights")
    parser.add_argument("--limit", type=int, help="cases, spread over all kinds")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no case after")
    parser.add_argument("--unread", action="store_true", help="the model calls the reader itself")
    parser.add_argument("--show", action="store_true", help="print every case")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(asyncio.run(run(options())))
