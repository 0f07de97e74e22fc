"""The labelled replies of tests/data/claims, each with its turn's request and calls.

`== WORDS` begins a turn with a person's request, `<- STATE TOOL {ARGUMENTS} RESULT` is a call of
it, `<~ ...` a call of an earlier turn, and `KIND: TEXT` a reply. What a reply claims without a call
that covers it stands in [[two brackets]]; all else may be said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from caal_node.answers.checked_reply import ClauseSplitter
from caal_node.grounding.claim_check import ClaimCheck, NotDone
from caal_node.grounding.ledger import CallState, Ledger, LedgerEntry

DATA = Path(__file__).parents[1] / "data" / "claims"
_MARKED = re.compile(r"\[\[(.*?)\]\]")


@dataclass(frozen=True, slots=True)
class LabelledReply:
    """One reply, and where it claims what was not done."""

    kind: str
    text: str
    uncovered: tuple[tuple[int, int], ...]
    """Where the uncovered claims stand in the text."""
    ledger: Ledger


@dataclass(frozen=True, slots=True)
class Judged:
    """What the check made of one reply."""

    reply: LabelledReply
    spoken: tuple[str, ...]
    """The uncovered claims that were let through."""
    held: tuple[str, ...]
    """The clauses that were held back and might have been said."""

    @property
    def acted(self) -> bool:
        """Whether a call of its turn has worked that may have changed something."""
        turn = self.reply.ledger.turn
        return any(entry.state == "done" and not entry.reads for entry in turn)


def labelled(name: str) -> list[LabelledReply]:
    """Return the replies of `tuning` or `held_out`."""
    return list(_read((DATA / f"{name}.txt").read_text(encoding="utf-8")))


def judge(reply: LabelledReply) -> Judged:
    """Have the check read one reply, clause by clause."""
    check, splitter = ClaimCheck(lambda: reply.ledger), ClauseSplitter()
    stopped: list[tuple[int, int]] = []
    at = 0
    for clause in [*splitter.feed(reply.text), splitter.finish()]:
        if isinstance(check.check(clause), NotDone):
            stopped.append((at, at + len(clause)))
        at += len(clause)
    spoken = [span for span in reply.uncovered if not any(_meet(span, other) for other in stopped)]
    held = [span for span in stopped if not any(_meet(span, other) for other in reply.uncovered)]
    return Judged(
        reply,
        tuple(reply.text[begin:end] for begin, end in spoken),
        tuple(reply.text[begin:end] for begin, end in held),
    )


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _read(text: str) -> Iterator[LabelledReply]:
    ledger = Ledger()
    for line in text.splitlines():
        if line.startswith("== "):
            ledger = Ledger(line[3:])
        elif line.startswith("<- "):
            ledger = Ledger(ledger.request, (*ledger.turn, _entry(line)), ledger.earlier)
        elif line.startswith("<~ "):
            ledger = Ledger(ledger.request, ledger.turn, (*ledger.earlier, _entry(line)))
        elif line and not line.startswith("#"):
            kind, _, words = line.partition(": ")
            yield _reply(kind, words, ledger)


def _reply(kind: str, words: str, ledger: Ledger) -> LabelledReply:
    text, spans, at = "", list[tuple[int, int]](), 0
    for match in _MARKED.finditer(words):
        text += words[at : match.start()]
        spans.append((len(text), len(text) + len(match[1])))
        text += match[1]
        at = match.end()
    return LabelledReply(kind, text + words[at:], tuple(spans), ledger)


def _entry(line: str) -> LedgerEntry:
    state, tool, rest = line[3:].split(" ", 2)
    arguments, end = json.JSONDecoder().raw_decode(rest)
    return LedgerEntry(
        f"call_{tool}",
        tool,
        cast("dict[str, Any]", arguments),
        cast("CallState", state),
        rest[end:].strip(),
    )
