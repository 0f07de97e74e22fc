"""How many wrong facts in answers are found, how many right ones are doubted, and at what CPU.

The pairs of answers and results are those of tests/data/facts. Run:
`python -m tests.bench.facts [PART ...] [--show]`
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from typing import Final

from caal_node.grounding.claim_check import Say
from caal_node.grounding.fact_check import fact_check
from caal_node.grounding.ledger import Ledger, LedgerEntry
from tests.stand_ins.fact_pairs import pairs_of

PARTS: Final = ("tuning", "held_out", "unseen", "unseen_2", "unseen_3", "unseen_4", "unseen_empty")
ROUNDS: Final = 5
"""How often each clause is timed; the quickest counts, as others use the machine too."""


def table(part: str, *, show: bool = False) -> tuple[float, float]:
    """Print a part's table; return the shares of wrong clauses found and of right ones doubted."""
    counts = Counter[tuple[str, str]]()
    for pair in pairs_of(part):
        verdict = pair.check().check(pair.clause)
        spoken = verdict.text if isinstance(verdict, Say) else None
        said = spoken == pair.clause
        right = "right" if pair.is_right else "wrong"
        counts[pair.kind, right] += 1
        counts[pair.kind, "doubted" if pair.is_right else "found"] += not said
        if pair.mended is not None:
            counts[pair.kind, "mendable"] += 1
            counts[pair.kind, "mended"] += spoken == pair.mended
        if show and said != pair.is_right:
            print(f"  {right} but {'said' if said else spoken!r}: {pair.clause!r} ({pair.kind})")
        elif show and pair.mended and spoken != pair.mended:
            print(f"  mended otherwise: {pair.clause!r} -> {spoken!r}")
    kinds = list(dict.fromkeys(kind for kind, _ in counts))
    columns = ("right", "doubted", "wrong", "found", "mendable", "mended")
    print(f"{part:<14}" + "".join(f"{name:>10}" for name in columns))
    for kind in kinds:
        print(f"{kind:<14}" + "".join(f"{counts[kind, name]:>10}" for name in columns))
    sums = {name: sum(counts[kind, name] for kind in kinds) for name in columns}
    print(f"{'all':<14}" + "".join(f"{sums[name]:>10}" for name in columns))
    found, doubted = sums["found"] / sums["wrong"], sums["doubted"] / sums["right"]
    print(f"wrong facts found {found:.1%}, false alarms {doubted:.1%}")
    return found, doubted


def cpu() -> None:
    """Print the CPU that a clause costs, and what the first one of an answer adds by reading."""
    first: list[float] = []
    later: list[float] = []
    for pair in [pair for part in PARTS for pair in pairs_of(part)]:
        firsts: list[float] = []
        laters: list[float] = []
        for _ in range(ROUNDS):
            check = pair.check()
            for took in (firsts, laters):
                began = time.process_time_ns()
                check.check(pair.clause)
                took.append((time.process_time_ns() - began) / 1e6)
        first.append(min(firsts))
        later.append(min(laters))
    for name, took in (("an answer's first clause", first), ("each further clause", later)):
        took.sort()
        print(
            f"{name}: median {took[len(took) // 2]:.2f} ms, 99 of 100 at most"
            f" {took[int(len(took) * 0.99)]:.2f} ms, the slowest {took[-1]:.2f} ms"
        )


def largest() -> None:
    """Print what the largest result costs that is read, and one that is too large."""
    for items in (95, 700):
        listed = [
            {"name": f"Item {n}", "price": n * 1.5, "weight_g": n * 7, "made": "2026-03-01T07:30"}
            for n in range(items)
        ]
        entry = LedgerEntry("c", "search", {"query": "items"}, "done", json.dumps(listed), "read")
        took: list[float] = []
        for _ in range(ROUNDS):
            ledger = Ledger("how much is item 7", (entry,))
            check = fact_check(lambda ledger=ledger: ledger)
            began = time.process_time_ns()
            check.check("Item 7 costs 99.10 euros and weighs 50 grams.")
            took.append((time.process_time_ns() - began) / 1e6)
        print(f"a result of {len(entry.result):,} characters: first clause {min(took):.1f} ms")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("parts", nargs="*", default=PARTS)
    options.add_argument("--show", action="store_true", help="print the pairs judged otherwise")
    chosen = options.parse_args()
    for part in chosen.parts:
        table(part, show=chosen.show)
        print()
    cpu()
    largest()


if __name__ == "__main__":
    main()
