"""Claims of what was not done: what the labelled replies let through, and what a clause costs.

Run: `python -m tests.bench.claims`. The replies are those of tests/data/claims; nothing was learned
from `held_out`. Behind a call that has worked, no more is held than what another call was for that
has not. The costs are CPU milliseconds, of the clauses of all replies with
their turns' calls, of clauses without an action, and of the longest clauses behind 32 long calls.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Sequence
from typing import Final

from caal_node.answers.checked_reply import WHOLE_CLAUSE_CHARS, ClauseSplitter
from caal_node.grounding.claim_check import ClaimCheck
from caal_node.grounding.ledger import Ledger, LedgerEntry
from tests.bench.table import print_table
from tests.stand_ins.claim_replies import DATA, Judged, judge, labelled

PLAIN: Final = DATA.parent / "ordinary_replies_held_out.txt"
LONG: Final = "I've turned off the lamp and locked the door and sent a note to Anna, "


def main() -> None:
    for name in ("tuning", "held_out"):
        rows = [judge(reply) for reply in labelled(name)]
        kinds = sorted({row.reply.kind for row in rows})
        table = [_row(kind, [row for row in rows if row.reply.kind == kind]) for kind in kinds]
        for acted, what in ((False, "no call has worked"), (True, "a call has worked")):
            table.append(_row(what, [row for row in rows if row.acted == acted]))
        columns = ("kind", "replies", "uncovered claims", "of them spoken", "held for nothing")
        print_table(f"Replies: {name}", columns, [*table, _row("all", rows)])
        print()
    replies = [reply for name in ("tuning", "held_out") for reply in labelled(name)]
    lines = filter(None, PLAIN.read_text("utf-8").splitlines())
    plain = [(line, Ledger("how is it?")) for line in lines]
    first = [(_long(n), _long_ledger(n)) for n in range(8)]
    columns = ("CPU ms a clause", "clauses", "median", "99 of 100", "most")
    rows = [
        _cost("labelled replies", ((reply.text, reply.ledger) for reply in replies)),
        _cost("without an action", plain),
        _cost("400 characters, 32 long calls: a turn's first", first),
        _cost(
            "the same: a further one",
            [(_long(n + 1), ledger) for n, (_, ledger) in enumerate(first)],
        ),
    ]
    costs = [[what, count, *(f"{ms:.2f}" for ms in took)] for what, count, *took in rows]
    print_table("Cost", columns, costs)


def _row(kind: str, rows: Sequence[Judged]) -> list[object]:
    claims = sum(len(row.reply.uncovered) for row in rows)
    spoken, held = sum(len(row.spoken) for row in rows), sum(bool(row.held) for row in rows)
    return [kind, len(rows), claims, spoken, held]


def _cost(what: str, texts: Iterable[tuple[str, Ledger]]) -> tuple[str, int, float, float, float]:
    took: list[float] = []
    for text, ledger in texts:
        check, splitter = ClaimCheck(lambda ledger=ledger: ledger), ClauseSplitter()
        for clause in [*splitter.feed(text), splitter.finish()]:
            began = time.process_time()
            check.check(clause)
            took.append((time.process_time() - began) * 1000)
    took.sort()
    return what, len(took), statistics.median(took), took[int(len(took) * 0.99)], took[-1]


def _long(number: int) -> str:
    text = LONG * (WHOLE_CLAUSE_CHARS // len(LONG) + 1)
    return f"{number} {text.replace(', ', ' or ')}"[:WHOLE_CLAUSE_CHARS]


def _long_ledger(number: int) -> Ledger:
    calls = list[LedgerEntry]()
    for n in range(32):
        text = '{"words": "' + f"nothing of the kind {number} of {n} " * 400 + '"}'
        calls.append(LedgerEntry(f"c{n}", f"tool_{n}", {"text": text}, "done", text, "write", text))
    return Ledger(f"turn off the lamp {number}", tuple(calls))


if __name__ == "__main__":
    main()
