"""An answer that claims what no call of the turn has done is told from one that may be said."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.grounding.claim_check import ClaimCheck, NotDone, Say
from caal_node.grounding.ledger import CallState, Ledger, LedgerEntry
from tests.stand_ins.claim_replies import Judged, judge, labelled

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


@pytest.mark.parametrize(
    ("name", "least", "spoken_most", "held_most"),
    [("tuning", 300, 0.08, 0.03), ("held_out", 150, 0.16, 0.02)],
)
def test_what_was_not_done_is_held_where_no_call_has_worked(
    name: str, least: int, spoken_most: float, held_most: float
) -> None:
    """Do not fix the sentences by `held_out`: it would tell nothing any more."""
    rows = [row for row in judged(name) if not row.acted]
    assert len(rows) >= least
    spoken, held = shares(rows)
    assert spoken <= spoken_most
    assert held <= held_most


@pytest.mark.parametrize("name", ["tuning", "held_out"])
def test_behind_a_call_that_worked_nothing_is_denied(name: str) -> None:
    rows = [row for row in judged(name) if row.acted]
    assert len(rows) >= 50
    assert [row.held for row in rows if row.held] == []


def test_the_replies_are_of_all_kinds() -> None:
    assert {row.kind for row in labelled("tuning")} >= KINDS


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
    assert says("I'm turning it off.", known)
    assert not says("I've turned off the lamp.", known)


def test_a_report_of_how_things_are_is_no_claim_unless_they_were_to_be_changed() -> None:
    assert says("The light is on.", ledger(request="is the light on?"))
    assert not says("The light is on.", ledger(request="turn on the light"))
    assert not says("The light is on.", ledger(request="Could you turn on the light?"))


def test_the_request_repeated_is_no_result() -> None:
    request = "hello and some unremarkable considerations concerning narrow terminals"
    assert says(f"You said {request}.", ledger(request=request))
    assert says("You said turn it on in the hall.", ledger(request="turn it on in the hall"))
    jazz = "Wake me with some jazz at seven."
    assert not says(jazz, ledger(request=jazz)), "as an answer it is one"
    assert not says(f"Okay, {jazz}", ledger(request=jazz))


def test_a_condition_holds_for_the_rest_of_its_sentence() -> None:
    check = ClaimCheck(lambda: Ledger("turn off the lamp"))
    assert check.check("If you like, ") == Say("If you like, ")
    assert isinstance(check.check("so I'll turn off the lamp. "), Say)
    assert isinstance(check.check("I'll turn off the lamp."), NotDone)


def test_the_subject_of_a_sentence_holds_for_its_next_clause() -> None:
    check = ClaimCheck(lambda: Ledger("turn on the fan and close the blinds"))
    assert isinstance(check.check("I turned on the fan, "), NotDone)
    assert isinstance(check.check("and then closed the blinds."), NotDone)


@pytest.mark.parametrize(
    "claim",
    [
        "Ich habe die Lampe ausgeschaltet.",
        "Die Lampe ist jetzt aus.",
        "Erledigt!",
        "Ich mach sie gleich aus.",
        "ich hab die lampe ausgemacht",
    ],
)
def test_a_claim_in_german_is_one(claim: str) -> None:
    request = "mach bitte die Lampe aus"
    assert not says(claim, ledger(request=request))
    assert not says(claim, ledger(("failed", "turn_off", {"device": "lamp"}), request=request))
    assert says(claim, ledger(("done", "turn_off", {"device": "lamp"}), request=request))


@pytest.mark.parametrize(
    "honest",
    [
        "Ich konnte die Lampe nicht ausschalten.",
        "Soll ich die Lampe ausschalten?",
        "Welche Lampe meinst du?",
        "Dafür habe ich kein Werkzeug.",
        "I can't reach the lamp.",
        "Which lamp do you mean?",
        "If you like, I'll turn off the lamp.",
    ],
)
def test_what_is_honest_without_a_call_is_said(honest: str) -> None:
    assert says(honest, ledger(request="mach bitte die Lampe aus"))


def test_of_several_calls_only_what_one_without_success_was_for_is_held() -> None:
    known = ledger(
        ("done", "turn_on", {"device": "fan"}),
        ("failed", "close_cover", {"cover": "blinds"}),
        request="turn on the fan and close the blinds",
    )
    assert says("The fan is on.", known)
    assert says("I've turned on the fan for you.", known)
    assert not says("I also closed the blinds.", known)
    assert not says("Both are done.", known)
    assert says("The blinds did not respond.", known)


@given(st.text())
def test_any_clause_has_a_verdict(clause: str) -> None:
    known = ledger(("done", "turn_off", {"device": clause}), request=clause)
    assert isinstance(ClaimCheck(lambda: known).check(clause), Say | NotDone)


def test_what_a_result_says_in_these_words_may_be_said() -> None:
    told = "The request was sent, and whether it worked is not known."
    entry = LedgerEntry("c1", "start_pump", {}, "failed", f'{{"note": "{told}"}}')
    known = Ledger("start the pump", (entry,))
    assert says(told, known)
    assert not says("I've started the pump.", known)


def test_done_behind_a_call_that_only_reads_is_no_claim_of_what_was_asked_for() -> None:
    known = ledger(("done", "get_state", {"door": "front"}), request="please lock the front door")
    assert says("Done.", known)
    assert not says("I've locked the front door.", known)


def test_calls_of_earlier_turns_cover_what_is_asked_about_them() -> None:
    acted = LedgerEntry("c1", "lock_door", {"door": "front"}, "done")
    read = LedgerEntry("c2", "get_weather", {"town": "Cork"}, "done", effect="read")
    said = "I've locked the front door."
    assert says(said, Ledger("did you lock the front door?", earlier=(acted,)))
    assert not says(said, Ledger("did you lock the front door?", earlier=(read,)))
    assert not says(said, Ledger("lock the front door", earlier=(acted,)))
