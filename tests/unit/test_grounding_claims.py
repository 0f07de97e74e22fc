"""An answer that claims what no call of the turn has done is told from one that may be said."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.grounding.action_words import action_words, words_of
from caal_node.grounding.claim_check import ClaimCheck
from caal_node.grounding.ledger import CallState, Ledger, LedgerEntry
from caal_node.grounding.spoken_check import NotDone, Say
from tests.claim_replies import Judged, judge, labelled

KINDS = {
    *("done", "way", "promise", "look", "partial", "covered", "report", "honest", "negation"),
    *("question", "offer", "cond", "past", "others", "quote", "howto", "world", "chat"),
}


def judged(name: str) -> list[Judged]:
    return [judge(reply) for reply in labelled(name)]


def shares(rows: list[Judged]) -> tuple[float, float]:
    """The share of the uncovered claims that was let through, and of replies held for nothing."""
    claims = sum(len(row.reply.uncovered) for row in rows)
    spoken = sum(len(row.spoken) for row in rows)
    return spoken / claims, sum(bool(row.held) for row in rows) / len(rows)


def test_no_uncovered_claim_is_spoken_and_nothing_else_is_held() -> None:
    rows = judged("tuning")
    assert len(rows) >= 300
    assert {row.reply.kind for row in rows} >= KINDS
    assert shares(rows) == (0, 0)


def test_replies_that_the_words_were_never_fitted_to() -> None:
    """Do not mend the words by this file: it would tell nothing any more."""
    rows = judged("held_out")
    assert len(rows) >= 150
    spoken, held = shares(rows)
    assert spoken <= HELD_OUT_SPOKEN
    assert held <= 0.01


HELD_OUT_SPOKEN = 0.06
"""Of the claims of words that were not seen before, at most so many are let through."""


def test_each_state_of_a_call_has_its_replies() -> None:
    states = Counter(entry.state for row in labelled("tuning") for entry in row.ledger.turn)
    assert set(states) == {"done", "failed", "refused", "dry_run", "pending"}


def ledger(*calls: tuple[CallState, str, dict[str, Any]], request: str = "") -> Ledger:
    entries = (
        LedgerEntry(f"c{n}", tool, args, state) for n, (state, tool, args) in enumerate(calls)
    )
    return Ledger(request, tuple(entries))


def says(clause: str, known: Ledger) -> bool:
    return ClaimCheck(lambda: known).check(clause) == Say(clause)


@pytest.mark.parametrize("state", ["failed", "refused", "dry_run", "pending"])
def test_a_call_without_success_never_counts_as_done(state: CallState) -> None:
    known = ledger((state, "turn_off", {"device": "lamp"}), request="turn off the lamp")
    for claim in ("I've turned off the lamp.", "The lamp is off.", "Done!", "It is off now."):
        assert not says(claim, known), claim


def test_a_call_that_was_made_again_with_success_counts() -> None:
    args = {"device": "lamp"}
    known = ledger(("failed", "turn_off", args), ("done", "turn_off", args), request="lamp off")
    assert says("Done, the lamp is off.", known)


def test_a_call_that_waits_covers_what_is_promised() -> None:
    known = ledger(("pending", "turn_off", {"device": "lamp"}), request="turn off the lamp")
    assert says("I'll turn off the lamp.", known)
    assert not says("I'll lock the door.", known)


def test_a_report_of_how_things_are_is_no_claim_unless_they_were_to_be_changed() -> None:
    assert says("The light is on.", ledger(request="is the light on?"))
    assert not says("The light is on.", ledger(request="turn on the light"))
    assert not says("The light is on.", ledger(request="Could you turn on the light?"))


def test_a_condition_holds_for_the_rest_of_its_sentence() -> None:
    check = ClaimCheck(lambda: Ledger("turn off the lamp"))
    assert check.check("If you like, ") == Say("If you like, ")
    assert isinstance(check.check("so I'll turn off the lamp. "), Say)
    assert isinstance(check.check("I'll turn off the lamp."), NotDone)


def test_the_subject_of_a_sentence_holds_for_its_next_clause() -> None:
    check = ClaimCheck(lambda: ledger(("done", "turn_on", {"device": "fan"})))
    assert isinstance(check.check("I turned on the fan, "), Say)
    assert isinstance(check.check("and then closed the blinds."), NotDone)


@given(st.text())
def test_any_clause_has_a_verdict(clause: str) -> None:
    known = ledger(("done", "turn_off", {"device": clause}), request=clause)
    assert isinstance(ClaimCheck(lambda: known).check(clause), Say | NotDone)


def test_a_pattern_that_is_none_is_named() -> None:
    with pytest.raises(KeyError):
        action_words("tlh")
    with pytest.raises(ValueError, match="has to be one form, or three"):
        words_of({"actions": {"go": {"verbs": ["go:went"], "tools": []}}})
