"""Labelled pairs of an answer's clause and the results that it is made of (tests/data/facts).

A scene has a request, the calls of the turn with their results, those of earlier turns, what else
is known, and clauses: the right ones, and the wrong ones with what should be said in their place,
where that is certain.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from caal_node.grounding.claim_check import SpokenCheck
from caal_node.grounding.fact_check import fact_check
from caal_node.grounding.ledger import Ledger, LedgerEntry

FOLDER: Final = Path(__file__).parents[1] / "data" / "facts"
WRITING: Final = ("set_", "switch", "play_")
"""How the names of tools begin that change something."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A clause of an answer with the results that it is made of."""

    kind: str
    ledger: Ledger
    known: tuple[str, ...]
    clause: str
    is_right: bool
    mended: str | None = None
    """What should be said in place of a wrong clause; None where any other words do."""

    def check(self) -> SpokenCheck:
        return fact_check(lambda: self.ledger, self.known)


def pairs_of(part: str) -> Iterator[Pair]:
    """Yield the labelled pairs of a part of the data."""
    for scene in json.loads((FOLDER / f"{part}.json").read_text(encoding="utf-8")):
        ledger = Ledger(
            scene["request"], _entries(scene["calls"]), _entries(scene.get("earlier", []))
        )
        known = tuple(scene.get("known", ()))
        for clause in scene["right"]:
            yield Pair(scene["kind"], ledger, known, clause, is_right=True)
        for wrong in scene.get("wrong", ()):
            clause, mended = (wrong, None) if isinstance(wrong, str) else wrong
            yield Pair(scene["kind"], ledger, known, clause, is_right=False, mended=mended)


def _entries(calls: list[Any]) -> tuple[LedgerEntry, ...]:
    found: list[LedgerEntry] = []
    for at, (tool, arguments, result, *state) in enumerate(calls):
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        effect = "write" if tool.startswith(WRITING) else "read"
        ended = state[0] if state else "done"
        found.append(LedgerEntry(f"c{at}", tool, arguments, ended, text, effect))
    return tuple(found)
