"""Whether a turn's calls cover what an answer claims to have done.

A call covers a claim of its own action about its own things. One that failed, was refused, was only
told of in a dry run, or has no result yet never counts as done; what is under way or promised is
covered by a call that waits for its result as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from caal_node.grounding.action_claims import (
    ActionClaim,
    ClaimKind,
    RequestKind,
    claims_in,
    is_conditional,
    request_kind,
)
from caal_node.grounding.action_words import ANYTHING, LOOK_UP, REQUESTED, ActionWords, action_words
from caal_node.grounding.call_words import CallWords, call_words, does, known_stems
from caal_node.grounding.ledger import Ledger, LedgerEntry
from caal_node.grounding.spoken_check import NotDone, Say
from caal_node.policy.heard_words import COMMON, stem, stems, words

ENTRIES_MAX: Final = 64
"""Calls of a turn that are looked at, and as many of earlier ones: twice what a turn may have."""


class ClaimCheck:
    """Judges the clauses of one answer, in their order.

    `ledger` is asked for at each clause, as calls of the same reply join it.
    """

    def __init__(self, ledger: Callable[[], Ledger], language: str = "en") -> None:
        self._ledger = ledger
        self._words = action_words(language)
        self._before: ClaimKind | None = None
        self._conditional = False

    def check(self, clause: str) -> Say | NotDone:
        """Return the clause, or that it claims what the turn's calls do not cover."""
        ledger = self._ledger()
        request = request_kind(ledger.request, self._words)
        claims = [] if self._conditional else claims_in(clause, request, self._words, self._before)
        self._remember(clause, claims)
        if not claims:
            return Say(clause)
        if all(covers(ledger, claim, request, self._words) for claim in claims):
            return Say(clause)
        return NotDone(clause)

    def kinds(self, clause: str) -> frozenset[ClaimKind]:
        """Return what kinds of claims a clause holds, by itself."""
        request = request_kind(self._ledger().request, self._words)
        return frozenset(claim.kind for claim in claims_in(clause, request, self._words))

    def _remember(self, clause: str, claims: Sequence[ActionClaim]) -> None:
        end = clause.rstrip()[-1:]
        goes_on = end not in ".!?…" and not clause.endswith("\n")
        opens = self._conditional or is_conditional(clause, self._words)
        self._conditional = goes_on and opens and not claims
        self._before = claims[-1].kind if goes_on and claims else None


def covers(ledger: Ledger, claim: ActionClaim, request: RequestKind, words: ActionWords) -> bool:
    """Say whether the calls of `ledger` cover `claim`."""
    turn, earlier = (_calls(each, words) for each in (ledger.turn, ledger.earlier))
    if words.frames["already"].search(claim.text) or not request.commands(claim.action, words):
        turn = earlier + turn  # what was done before is reported, and nothing is asked for
    counted = ("done",) if claim.kind == "done" else ("done", "pending")
    done = [call for call in turn if call.state in counted]
    open_calls = [call for call in turn if call.state not in counted and not _mended(call, done)]
    if claim.action == LOOK_UP:
        return bool(done)
    told = [call for call in done if call.reads]
    if not claim.by_agent and told and _so_already(claim, told, words):
        return True
    acted = [call for call in done if not call.reads]
    if claim.action == ANYTHING and not acted and not request.actions:
        acted = done  # "Done." behind a look-up, where nothing else was asked for
    things = things_of(claim, words)
    asked = known_stems(stems(ledger.request), words)
    alone = len(acted) == 1
    fitting = [call for call in acted if _fits(call, claim, things, asked, request, words, alone)]
    if not fitting:
        return False
    return _nothing_left_out(claim, things, fitting, open_calls, words)


def _calls(entries: Sequence[LedgerEntry], words: ActionWords) -> list[CallWords]:
    newest = entries[-ENTRIES_MAX:]
    return [call_words(entry, words, len(newest)) for entry in newest]


def _fits(
    call: CallWords,
    claim: ActionClaim,
    things: frozenset[str],
    asked: frozenset[str],
    request: RequestKind,
    words: ActionWords,
    alone: bool,
) -> bool:
    """Say whether a call does what is claimed, with one of the claim's things if it names any."""
    if claim.action == ANYTHING:
        return (
            not request.actions
            or not call.actions
            or call.general
            or _related(call.actions, request.actions, words)
        )
    if claim.action == REQUESTED:
        if call.actions & words.specific and not stems(call.tool) & asked:
            return False
        return not things or bool(things & call.things) or (alone and things <= asked)
    if claim.action in call.against or not does(call, claim.action, request, words):
        return False
    if not things or things & call.things:
        return True
    if not things & asked:
        return False
    if claim.action not in call.actions:
        # Of a tool that says nothing of itself ("night_mode"), the request says what it does.
        return alone and not call.actions and claim.action not in words.outward
    # It does what is claimed, with what was asked for: its arguments may say that by a number.
    return request.actions <= words.related[claim.action]


def _related(some: frozenset[str], others: frozenset[str], words: ActionWords) -> bool:
    return any(words.related[name] & others for name in some)


def _nothing_left_out(
    claim: ActionClaim,
    things: frozenset[str],
    fitting: Sequence[CallWords],
    open_calls: Sequence[CallWords],
    words: ActionWords,
) -> bool:
    """Say whether the claim names nothing that only a call without success, or none, was about."""
    known = frozenset[str]().union(*(call.things for call in fitting))
    named = frozenset(w for w in words.places if stem(w) in things)
    if any(stem(place) not in known for place in named) and any(
        stem(place) in known for place in words.places
    ):
        return False
    missed = [
        call
        for call in open_calls
        # Whoever was asked and said no knows that it was not done.
        if not call.declined and (claim.action == ANYTHING or _same_kind(call, fitting))
    ]
    if any(things & (call.own - known) for call in open_calls):
        return False
    if missed and words.frames["everything"].search(claim.text):
        return False
    if missed and not things & known and not _counts(claim, len(fitting)):
        return False
    if claim.action in ("send", "call"):
        return not _other_person(claim, known, words)
    return True


def _counts(claim: ActionClaim, done: int) -> bool:
    """Say whether the claim names a number of things that so many calls have done."""
    told = [int(word) for word in map(stem, words(claim.text)) if word.isdecimal()]
    return bool(told) and max(told) <= done


def _same_kind(call: CallWords, fitting: Sequence[CallWords]) -> bool:
    return any(call.tool == other.tool or call.actions & other.actions for other in fitting)


def _other_person(claim: ActionClaim, known: frozenset[str], language: ActionWords) -> bool:
    """Say whether the claim names a receiver whom no call names."""
    pairs = pairwise(words(claim.text))
    receivers = [after for before, after in pairs if before in language.receivers]
    named = [one for one in receivers if one not in language.no_receivers]
    return bool(named) and not any(stem(one) in known for one in named)


def _mended(call: CallWords, done: Sequence[CallWords]) -> bool:
    """Say whether a call without success was made again with success."""
    return any(
        other.tool == call.tool and 2 * len(call.own & other.own) > len(call.own) - (not call.own)
        for other in done
    )


def _so_already(claim: ActionClaim, told: Sequence[CallWords], language: ActionWords) -> bool:
    """Say whether the claim tells what a call has found to be so."""
    said = language.frames["already"].search(claim.text)
    return said is not None and any(stems(claim.text) & call.things for call in told)


@lru_cache(256)
def _things_in(text: str, language: ActionWords) -> frozenset[str]:
    verbs = language.verbs
    for form in (verbs.past, verbs.ing, verbs.base):
        for match in form.finditer(text):
            head = match[0].split(" ")
            inside = " ".join(head[1:-1]) if len(head) > 1 else ""
            text = text.replace(match[0], inside, 1)
    for phrase in (verbs.states, *verbs.phrases.values()):
        text = phrase.sub(" ", text)
    left = words(language.frames["shortened"].sub(" ", text))
    left = [word for word in left if word not in language.no_objects and word not in language.tools]
    found = known_stems(map(stem, left), language) - COMMON
    # Whether a number is right is another check's: "six" may be 18:00 in the call.
    return frozenset(word for word in found if not word.isdecimal())


def things_of(claim: ActionClaim, language: ActionWords) -> frozenset[str]:
    """Return the stems of what a claim is about."""
    return _things_in(claim.text, language)
