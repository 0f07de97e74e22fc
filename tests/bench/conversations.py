"""Whole conversations with a real model: what people hear with the checks of replies and without.

Run: `python -m tests.bench.conversations --ollama URL MODEL --record FOLDER [--checks off on]`.
Twenty-six conversations of three to five turns (tests/data/conversations), held out, with fourteen
household tools that a script answers, at temperature 0: some calls fail, are refused, take too long
or find nothing, some words refer to what was said, some wishes no tool fulfils. `off` is the node
with CAAL_CHECKS=hedges, `on` with all of them. `claims` are turns in which something was claimed
that no call has done, `wrong` those with a fact that is in no result, `right` those with the right
calls and no others, `needless` the calls beside them; `extra` are requests beyond one and one more
for each round of calls, `most` the most of them in a turn; `prefix` is how many requests left what
the model had read before them as it was. FOLDER keeps each reply of the model, and the played turns
as MODEL-CHECKS.json, of which `python -m tests.bench.conversation_pages` makes docs/transcripts.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from caal_node import LLM, CaalAgent
from caal_node.core.events import ClaimCorrected, TurnEnded
from caal_node.core.items import UserItem
from caal_node.core.prompt_files import read
from caal_node.models.backends.base import Backend, BackendRequest, Capabilities, Chunk
from caal_node.models.backends.ollama import OllamaBackend
from caal_node.policy.policy import Policy
from caal_node.testing import AgentConversation, plain_settings
from tests.bench.conversation_household import Household, read_rows
from tests.bench.conversation_score import MadeCall, PlayedTurn, score, to_row
from tests.bench.recorded_replies import RecordedBackend
from tests.bench.small_models import SLOW
from tests.bench.table import print_table

TURN_S: Final = 600.0
"""Seconds of a turn at most, of a slow model that is asked six times."""
CALL_S: Final = "1"
"""Seconds of a call at most: the household answers at once, or not at all."""
CHECKS: Final[Mapping[str, Mapping[str, str]]] = {"off": {"CAAL_CHECKS": "hedges"}, "on": {}}
COLUMNS: Final = (
    "checks", "turns", "claims", "wrong", "wrong %", "right", "needless", "requests", "extra",
    "most", "prefix", "s a turn",
)  # fmt: skip


class ObservedBackend:
    """Passes requests on, and keeps them."""

    def __init__(self, backend: Backend) -> None:
        self.requests: list[BackendRequest] = []
        self._backend: Final = backend

    def sent(self) -> Sequence[BackendRequest]:
        """Return every request so far, the oldest first."""
        return self.requests

    @property
    def model(self) -> str:
        return self._backend.model

    @property
    def address(self) -> str:
        return self._backend.address

    async def capabilities(self) -> Capabilities:
        return await self._backend.capabilities()

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        self.requests.append(request)
        async with aclosing(self._backend.ask(request)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def aclose(self) -> None:
        """Do nothing: whoever opened the backend closes it."""


async def play(
    row: Mapping[str, Any],
    model: LLM,
    requests: Callable[[], Sequence[BackendRequest]],
    checks: Mapping[str, str],
) -> dict[str, Any]:
    """Play one conversation, and return its turns with their scores.

    `requests` gives every request that the model was sent so far.
    """
    # What is played must not depend on how fast the machine is.
    unhurried = json.dumps({"seconds": TURN_S})
    settings = plain_settings(CAAL_TOOL_TIMEOUT=CALL_S, CAAL_TOOL_CALLS=unhurried, **checks)
    # Nobody is asked for a yes here, as the script would have to answer.
    settings = settings.model_copy(update={"tools": Policy(mode="open")})
    household = Household()
    agent = CaalAgent(settings=settings, tiers={"mcp": household.source}, warm=False)
    turns: list[PlayedTurn] = []
    rows: list[dict[str, Any]] = []
    first = len(requests())
    async with AgentConversation(agent, model, turn_s=TURN_S) as conversation:
        for asked in row["turns"]:
            household.gives = asked.get("gives", {})
            before, began = len(requests()), time.perf_counter()
            record = await conversation.say(asked["say"])
            calls = tuple(
                MadeCall(each.tool, each.arguments or {}, each.outcome or "", each.result or "")
                for each in record.calls
            )
            ended = [each for each in record.events if isinstance(each, TurnEnded)]
            turn = PlayedTurn(
                asked["say"],
                asked["kind"],
                calls,
                record.text,
                len(requests()) - before,
                ended[-1].rounds if ended else 0,
                time.perf_counter() - began,
            )
            corrected = [
                f"{each.claim} -> {each.became}"
                for each in record.events
                if isinstance(each, ClaimCorrected)
            ]
            rows.append({**to_row(turn, score(turn, asked, turns)), "corrected": corrected})
            turns.append(turn)
    asked_of = requests()[first:]
    kept = [_keeps(*pair) for pair in pairwise(asked_of)]
    return {"name": row["name"], "turns": rows, "kept": kept}


def _keeps(before: BackendRequest, after: BackendRequest) -> bool:
    """Say whether a request begins with all that stood before the person's words in the last.

    A claim, and the note that its call is wanted, stand at the end of one request alone.
    """
    note = read("must_call.md")
    said = [
        at
        for at, item in enumerate(before.items)
        if isinstance(item, UserItem) and item.text != note
    ]
    head = before.items[: said[-1]] if said else ()
    return after.items[: len(head)] == head and after.tools == before.tools


def table_row(checks: str, played: Sequence[Mapping[str, Any]]) -> tuple[object, ...]:
    """Count what came of one run."""
    turns = [turn for each in played for turn in each["turns"]]
    scores = [turn["score"] for turn in turns]
    extra = [turn["requests"] - turn["rounds"] - 1 for turn in turns]
    wrong = sum(bool(each["wrong"]) for each in scores)
    kept = [one for each in played for one in each["kept"]]
    return (
        checks,
        len(turns),
        sum(bool(each["claims"]) for each in scores),
        wrong,
        100 * wrong / len(turns),
        sum(each["right"] for each in scores),
        sum(each["needless"] for each in scores),
        sum(turn["requests"] for turn in turns) / len(turns),
        sum(extra) / len(turns),
        max(extra),
        f"{sum(kept)} of {len(kept)}",
        sum(turn["seconds"] for turn in turns) / len(turns),
    )


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ollama", nargs=2, metavar=("URL", "MODEL"), required=True)
    parser.add_argument("--record", type=Path, metavar="FOLDER", required=True)
    parser.add_argument("--checks", nargs="+", choices=list(CHECKS), default=["off", "on"])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="conversations by their names")
    parser.add_argument("--first", type=int, metavar="N", help="the first N conversations alone")
    return parser.parse_args()


async def run(given: argparse.Namespace) -> None:
    url, name = given.ollama
    rows: list[tuple[object, ...]] = []
    every = read_rows("held_out")["conversations"][: given.first]
    chosen = [row for row in every if not given.only or row["name"] in given.only]
    for checks in given.checks:
        ollama = OllamaBackend(name, host=url, temperature=0.0, deadlines=SLOW)
        recorded = RecordedBackend(ollama, given.record / "replies")
        seen = ObservedBackend(recorded)
        model = LLM(backend=seen)
        played: list[dict[str, Any]] = []
        try:
            await model.find_strategy()  # its question is no turn's
            for row in chosen:
                played.append(await play(row, model, seen.sent, CHECKS[checks]))
                print(f"  {checks}: {row['name']}, {recorded.asked} asked", flush=True)
        finally:
            await model.aclose()
            await ollama.aclose()
            out = given.record / f"{name}-{checks}.json"
            out.write_text(json.dumps(played, ensure_ascii=False, indent=1), encoding="utf-8")
        rows.append(table_row(checks, played))
    print_table(f"{len(chosen)} conversations, {name}", COLUMNS, rows)


if __name__ == "__main__":
    asyncio.run(run(options()))
