"""Whether a turn's calls cover what an answer claims to have done.

What a clause claims is judged by a model that has learned it from labelled clauses
(`caal_node.language`); whether it was done, the turn's calls say. To deny what was done is worse
than to let a claim pass: where a call of the turn has worked that may change something, only what
a call without success was for is held, and what no call was for of several things asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, Protocol, TypeAlias

from caal_node.core.tool_spec import ToolSchema
from caal_node.grounding.ledger import Ledger, LedgerEntry
from caal_node.grounding.stated_facts import (
    STATE_STEMS,
    asks_for_state,
    says_state,
    without_states,
)
from caal_node.language.judge import READ_CHARS, judge_of, without_quotes
from caal_node.language.requests import intent_of, share
from caal_node.policy.heard_words import COMMON, NO, QUESTIONS, YES, stem, stems

# What is spoken of an answer's clauses, by what is known.


@dataclass(frozen=True, slots=True)
class Say:
    """This is spoken in the clause's place: the clause itself, a mended one, or "" for nothing."""

    text: str


@dataclass(frozen=True, slots=True)
class NotDone:
    """The clause claims an action that no call of the turn covers; nothing of it is spoken."""

    claim: str


class SpokenCheck(Protocol):
    """Judges one clause at a time, in the order in which they are spoken."""

    def check(self, clause: str) -> Say | NotDone:
        """Say what is spoken of `clause`, which keeps its white space; this does no I/O."""
        ...


# Holds a state that no call has read: "the back door is locked", "it is already off".
#
# Only what is certain is held: the person asks whether a thing is open or locked or on, or wants it
# so, a tool knows of such a thing, and neither a result, nor a call, nor anybody's words tell of
# it.

RESULT_CHARS: Final = 8_000
"""Characters of an earlier result that are read; a longer one may tell of anything."""
ASKED_STATE: Final = 0.5
"""Odds of a state or a claim from which a clause tells one, and supposes none."""
_ASKS_OTHERWISE: Final = re.compile(
    r"^(?:\w+[,.]? )?(?:how|why|when|where|who|what)\b", re.IGNORECASE
)
"""A question that is not answered by a state alone."""
_NO_THINGS: Final = COMMON | STATE_STEMS | YES | NO | frozenset(map(stem, QUESTIONS))


class UnreadStates:
    """Judges the clauses of one answer.

    Args:
        ledger: What was done in the turn and before it.
        tools: What the model may call.
        told: What was said before the person's newest words, and the instructions.
    """

    def __init__(
        self, ledger: Callable[[], Ledger], tools: Sequence[ToolSchema], told: Sequence[str]
    ) -> None:
        self._ledger: Final = ledger
        self._tools: Final = tools
        self._told: Final = told

    def check(self, clause: str) -> Say | NotDone:
        """Return the clause, or that it reports a state that was not read."""
        if not says_state(clause) or clause.rstrip().endswith("?"):
            return Say(clause)
        ledger, odds = self._ledger(), clause_odds(clause)
        if intent_of(ledger.request) == "none" or odds["state"] + odds["done"] < ASKED_STATE:
            return Say(clause)
        if _ASKS_OTHERWISE.match(ledger.request) or not asks_for_state(ledger.request):
            return Say(clause)
        texts = ledger.request, without_states(clause)
        asked, told = (stems(text) - _NO_THINGS for text in texts)
        things = asked & told if told else asked
        if not things or self._is_known(things, ledger) or not self._has_tool(things):
            return Say(clause)
        return NotDone(clause)

    def _is_known(self, things: frozenset[str], ledger: Ledger) -> bool:
        if any(not things.isdisjoint(stems(text)) for text in self._told):
            return True
        if any(entry.reads for entry in ledger.turn):
            return True  # Whether it fits is the facts' check.
        return any(_tells(entry, things) for entry in (*ledger.turn, *ledger.earlier))

    def _has_tool(self, things: frozenset[str]) -> bool:
        return any(
            not things.isdisjoint(stems(text))
            for tool in self._tools
            if any(thing in (text := json.dumps(tool["function"]).lower()) for thing in things)
        )


def _tells(entry: LedgerEntry, things: frozenset[str]) -> bool:
    if entry.by_server or len(entry.result) > RESULT_CHARS:
        return True
    text = f"{entry.tool} {json.dumps(entry.arguments)[:RESULT_CHARS]} {entry.result}"
    return not things.isdisjoint(stems(text))


Claim: TypeAlias = Literal["done", "underway", "promise", "looked"]
CLAIMS: Final[tuple[Claim, ...]] = ("done", "underway", "promise", "looked")
"""The labels of clauses that claim something of the agent."""
CLAIMED: Final = 0.6
"""Odds together from which a clause is a claim. docs/small-models.md says what that finds and what
it lets through."""
SURELY: Final = 0.8
"""The same where the person wants nothing done."""
HINTED: Final = 0.15
"""Odds of a claim from which a clause that tells a result of what was asked for is one."""
CLAUSE_CHARS: Final = 5 * READ_CHARS
"""Characters of a clause in which quotes are looked for, and what is left of it judged."""
CALL_CHARS: Final = 300
"""Characters of a call's arguments whose words count as the call's."""
_CLAUSES: Final = judge_of("clause")
"""It is read with the module: no turn may wait for a file."""
_ONE_WORD: Final = re.compile(r"^\s*+[^\W\d_]++[,!.…]\s++(?=\S)")
"""What an answer begins with, and what says nothing of the rest: "Okay, "."""
_MARKS: Final = " \t\r\n.,;:!?'\"*_"
"""What stands around a clause."""
_ALL: Final = frozenset(
    map(stem, ("both", "all", "everything", "everyone", "beide", "alle", "alles"))
)
_ALREADY: Final = frozenset(map(stem, ("already", "still", "schon", "bereits", "noch")))


class ClaimCheck:
    """Judges the clauses of one answer, in their order.

    `ledger` is asked for at each clause, as calls of the same reply join it.
    """

    def __init__(self, ledger: Callable[[], Ledger]) -> None:
        self._ledger: Final = ledger
        self._before = ""
        """What the sentence has in front of the next clause."""
        self._invented = False
        """Whether the rest of the sentence tells what was found by a look-up that was none."""

    def check(self, clause: str) -> Say | NotDone:
        """Return the clause, or that it claims what the turn's calls do not cover."""
        before, goes_on = self._before, clause.rstrip()[-1:] not in ".!?…" and clause[-1:] != "\n"
        self._before = (before + clause)[-READ_CHARS:] if goes_on else ""
        invented, self._invented = self._invented, False
        if not clause.strip() or clause.rstrip().endswith("?"):
            return Say(clause)
        if not invented and not is_uncovered(clause, _odds(clause, before), self._ledger()):
            return Say(clause)
        self._invented = goes_on and (invented or claim_of(clause) == "looked")
        return NotDone(clause)


def _odds(clause: str, before: str = "") -> Mapping[str, float]:
    """Return how likely each label of a clause is. What stands in front of it in its sentence may
    make it no claim ("If you like, "), and never one; a single word ("Okay, ") says nothing."""
    odds = clause_odds(clause)
    if " " not in before.strip():
        return odds
    whole = clause_odds((before + clause)[-READ_CHARS:])
    return {
        label: min(odds[label], whole[label]) if label in CLAIMS else odds[label] for label in odds
    }


@lru_cache(64)
def clause_odds(clause: str) -> Mapping[str, float]:
    """Return how likely each label of a clause is, without what it quotes and a word in front."""
    return _CLAUSES.odds(_ONE_WORD.sub("", without_quotes(clause[:CLAUSE_CHARS]), 1))


def claims(clause: str) -> bool:
    """Say whether a clause claims something by itself, whoever covers it."""
    return share(clause_odds(clause), CLAIMS) >= CLAIMED


def claim_of(clause: str) -> Claim | Literal["state"]:
    """Return what a clause that was held most likely claims."""
    odds = clause_odds(clause)
    return max((*CLAIMS, "state"), key=lambda label: odds[label])


def is_uncovered(clause: str, odds: Mapping[str, float], ledger: Ledger) -> bool:
    """Say whether a clause with such odds claims what the calls of `ledger` do not cover."""
    if _is_told(clause, ledger.turn):
        return False
    if any(entry.state == "done" and not entry.reads for entry in ledger.turn):
        return _is_of_failed(clause, odds, ledger.turn)
    wanted = intent_of(ledger.request) == "act"
    tells_earlier = not wanted or not stems(clause).isdisjoint(_ALREADY)
    done = [
        entry
        for entry in (*ledger.turn, *(ledger.earlier if tells_earlier else ()))
        if entry.state == "done"
    ]
    if not all(entry.reads for entry in done):
        return False  # what was done before is told of
    waiting, looked = any(entry.state == "pending" for entry in ledger.turn), bool(done)
    open_claims = ["done"]
    if not waiting:
        open_claims += ["underway", "promise"]
        if not looked:
            open_claims.append("looked")
    if share(odds, open_claims) >= (CLAIMED if wanted else SURELY):
        # "Done." behind a call that has found something is not about what was to be changed.
        return not looked or not _shared(clause, ledger) <= COMMON
    return wanted and not looked and _tells_result(clause, odds, ledger)


def _is_told(clause: str, turn: Iterable[LedgerEntry]) -> bool:
    """Say whether a clause is a result's own words."""
    text = clause.strip(_MARKS)
    return " " in text and any(text in entry.result for entry in turn)


def _shared(clause: str, ledger: Ledger) -> frozenset[str]:
    """Return the stems that a clause has of the person's words."""
    return stems(clause) & stems(ledger.request)


def _tells_result(clause: str, odds: Mapping[str, float], ledger: Ledger) -> bool:
    """Say whether a clause tells what was asked for as if it were so: "the light is on"."""
    said = stems(clause)
    if not said.isdisjoint(_ALREADY) or _shared(clause, ledger) <= COMMON:
        return False
    if not says_state(clause):
        if ledger.turn or share(odds, CLAIMS) < HINTED:
            return False  # a failed call may tell how things are
        request = ledger.request.strip(_MARKS)
        if " " in request and _ONE_WORD.sub("", clause, 1).strip(_MARKS).find(request) > 0:
            return False  # "You said ..." repeats the request and tells no result
    return share(odds, (*CLAIMS, "state")) >= CLAIMED


def _is_of_failed(clause: str, odds: Mapping[str, float], turn: Iterable[LedgerEntry]) -> bool:
    """Say whether a clause tells as done what only calls without success were for, or speaks of all
    where there is such a call."""
    said = stems(clause)
    of_all = not said.isdisjoint(_ALL)
    if share(odds, (*CLAIMS, "state") if of_all or says_state(clause) else CLAIMS) < CLAIMED:
        return False
    done = [entry for entry in turn if entry.state == "done"]
    known = frozenset[str]().union(*map(_own, done))
    missed = [entry for entry in turn if entry.state not in ("done", "pending")]
    return any(
        of_all or not said.isdisjoint(_own(entry) - known)
        for entry in missed
        if not _is_mended(entry, done)
    )


def _own(entry: LedgerEntry) -> frozenset[str]:
    """Return the stems of what a call was made with."""
    text = json.dumps([*entry.arguments.values()], ensure_ascii=False)[:CALL_CHARS]
    return stems(text) - COMMON


def _is_mended(entry: LedgerEntry, done: Iterable[LedgerEntry]) -> bool:
    """Say whether a call without success was made again with success."""
    own = _own(entry)
    return any(
        other.tool == entry.tool and 2 * len(own & _own(other)) > len(own) - (not own)
        for other in done
    )
