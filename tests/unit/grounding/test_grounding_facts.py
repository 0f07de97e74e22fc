"""An answer does not tell what its results rule out, or have nothing of."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caal_node.core.prompt_files import sentence
from caal_node.grounding.claim_check import Say, SpokenCheck
from caal_node.grounding.fact_check import fact_check
from caal_node.grounding.ledger import (
    CallState,
    Ledger,
    LedgerEntry,
    elsewhere,
    is_unrelated,
    kind_of,
)
from tests.stand_ins.fact_pairs import pairs_of


def entry(
    result: Any,
    arguments: dict[str, Any] | None = None,
    state: CallState = "done",
    tool: str = "get",
) -> LedgerEntry:
    text = result if isinstance(result, str) else json.dumps(result)
    return LedgerEntry("c1", tool, arguments or {}, state, text, "read")


def of(request: str, turn: tuple[LedgerEntry, ...]) -> Callable[[], Ledger]:
    ledger = Ledger(request, turn)
    return lambda: ledger


def check_of(result: Any, request: str = "", **arguments: Any) -> SpokenCheck:
    return fact_check(of(request, (entry(result, arguments),)))


def said(check: SpokenCheck, clause: str) -> str:
    verdict = check.check(clause)
    assert isinstance(verdict, Say)
    return verdict.text


def test_where_nothing_was_found_only_what_was_told_before_is_told() -> None:
    earlier = (entry({"price": 80}, tool="search"),)
    ledger = Ledger("what is at 19", (entry({"events": []}),), earlier)
    for clause in ("You asked about 19.", "That one costs 80.", "Your code is 4711."):
        assert said(fact_check(lambda: ledger, ["my code is 4711"]), clause) == clause
    for clause in ("Your code is 4711.", "It is at 20:15.", "It is on Friday.", "It costs 81."):
        assert said(fact_check(lambda: ledger), clause) == sentence("found_nothing")


@given(st.text(max_size=12) | st.sampled_from([chr(0xFC5E), "ª", "日本"]))
def test_whatever_was_looked_up_without_a_result_a_sentence_says_so(query: str) -> None:
    check = check_of({"events": []}, "what is on", query=query)
    heard = said(check, "It is at 20:15.")
    assert heard.startswith(sentence("found_nothing").rstrip("."))


def test_where_too_much_was_told_to_be_searched_it_may_have_been_told() -> None:
    calls = tuple(
        entry({"events": []}, {f"at{n}": "half past 7 on 3 March, " * 40 for n in range(20)})
        for _ in range(32)
    )
    check = fact_check(of("what is on", calls))
    assert said(check, "Anton is coming for 300 euros.") == "Anton is coming for 300 euros."


@pytest.mark.parametrize(
    ("result", "clause", "heard"),
    [
        ({"time": "06:32"}, "It is 6:32 PM in Tokyo.", "It is 6:32 AM in Tokyo."),
        ({"time": "2026-03-03T18:05:00+09:00"}, "It's 6:05 a.m. there.", "It's 6:05 PM there."),
        ({"starts": "09:15"}, "It starts at 21:15.", "It starts at 09:15."),
        ({"day": "2026-03-03"}, "That is on Wednesday.", "That is on Tuesday."),
        (
            {"now": "2026-03-03T22:54:01+09:00"},
            "It's 22:54:01, on Tuesday, in the Pacific Time Zone (UTC-8).",
            "It's 22:54:01, on Tuesday.",
        ),
        (
            {"now": "2026-03-03T22:54:01+09:00"},
            "22:54:01, on Tuesday, in the Pacific Time Zone (UTC+9)",
            "22:54:01, on Tuesday (UTC+9)",
        ),
    ],
)
def test_a_time_that_the_only_one_of_the_results_rules_out_is_corrected(
    result: Any, clause: str, heard: str
) -> None:
    assert said(check_of(result), clause) == heard


@pytest.mark.parametrize(
    ("result", "clause"),
    [
        ({"time": "06:32"}, "It is 6:32 in Tokyo."),
        ({"opens": "09:00", "closes": "21:00"}, "It closes at 9 PM."),
        ({"time": "2026-03-03T06:32:00Z"}, "It is 6:32 PM in Auckland."),
        ({"time": "06:32"}, "It is half past six in the evening."),
        ({"from": "2026-03-03", "to": "2026-03-04"}, "It is open until Friday."),
        ({"born": "03-03"}, "It is on Friday."),
        ({"now": "2026-03-03T22:54:01+09:00"}, "It's 22:54 (UTC+9), Tokyo time."),
        ({"time": "09:30"}, "It is at 9:30 in the evening."),
        ({"day": "2026-03-03"}, "It was on Monday, the 2nd."),
        ({"time": "06:32 " + "x" * 9_000}, "It is 6:32 PM."),
    ],
)
def test_a_time_that_may_be_right_stays(result: Any, clause: str) -> None:
    assert said(check_of(result), clause) == clause


@pytest.mark.parametrize(
    ("result", "clause", "heard"),
    [
        ({"temp_c": 21}, "It is 21 degrees Fahrenheit.", "It is 21 degrees Celsius."),
        ({"temperature": 4, "unit": "°C"}, "It's 4 °F there.", "It's 4 degrees Celsius there."),
        (
            {"wind_kmh": 17},
            "It blows at 17 mph today.",
            "It blows at 17 kilometres per hour today.",
        ),
        ("The lake is 12 kilometres away.", "It's 12 miles away.", "It's 12 kilometres away."),
        ([{"room": "attic", "power_w": 60}], "It takes 60 kilowatts.", "It takes 60 watts."),
    ],
)
def test_a_unit_that_the_results_rule_out_is_corrected(
    result: Any, clause: str, heard: str
) -> None:
    assert said(check_of(result), clause) == heard


@pytest.mark.parametrize(
    ("result", "clause"),
    [
        ({"temp_c": 21}, "It is 21 degrees Celsius."),
        ({"temp_c": 21}, "It is 70 degrees Fahrenheit."),
        ({"temp_c": 21}, "It is 21 degrees."),
        ({"temp_c": 21}, "It feels like about 21 degrees Fahrenheit."),
        ({"temp_c": 50, "temp_f": 122}, "It is 122 degrees Fahrenheit."),
        ({"temp_c": 10, "high_f": 10}, "The high is 10 degrees Fahrenheit."),
        ({"price_eur": 20}, "It costs 20 dollars."),
        ({"ride_min": 20}, "It takes 20 hours."),
        ({"temp_max": 20, "size_m": 20}, "It is 20 degrees Celsius."),
        ({"temp_c": 21, "text": "x" * 1_600}, "It is 21 degrees Fahrenheit."),
    ],
)
def test_a_unit_that_may_be_right_stays(result: Any, clause: str) -> None:
    assert said(check_of(result), clause) == clause


def test_what_the_person_said_or_asked_for_is_no_wrong_time() -> None:
    check = check_of({"alarm": "06:30"}, "why not at 6:30 PM", at="18:30")
    assert said(check, "You asked for 6:30 PM.") == "You asked for 6:30 PM."


@pytest.mark.parametrize(
    "ledger",
    [
        Ledger("how high is it"),
        Ledger("how high is it", (), (entry({"height": 7}),)),
        Ledger("how high is it", (entry("", state="pending"),)),
        Ledger("how high is it", (entry({"text": "7 " * 20_000}),)),
        Ledger("how high is it", (entry([{"height": n} for n in range(1_500)]),)),
    ],
    ids=["no call", "an earlier call", "no result yet", "a huge text", "a huge list"],
)
def test_what_has_no_whole_results_is_not_judged(ledger: Ledger) -> None:
    assert (
        said(fact_check(lambda: ledger), "It is 4,806 metres high.") == "It is 4,806 metres high."
    )


@pytest.mark.parametrize(
    "clause",
    ["Shall I set it to 25?", "Would you like 3 of them", "If it were 40 degrees, I'd stay in."],
)
def test_questions_offers_and_suppositions_state_nothing(clause: str) -> None:
    assert said(check_of({"temperature": 20}), clause) == clause


@pytest.mark.parametrize(
    ("result", "state", "key"),
    [
        ({"messages": [], "total": 0}, "done", "found_nothing_about"),
        ("No results found.", "done", "found_nothing_about"),
        ([], "done", "found_nothing_about"),
        ({"error": "timeout"}, "failed", "found_failed"),
        ({"error": "refused"}, "failed", "found_failed"),
    ],
)
def test_nothing_and_an_error_are_told_as_that(result: Any, state: CallState, key: str) -> None:
    ledger = Ledger("any mail from Teresa", (entry(result, {"from": "Teresa"}, state),))
    told = sentence(key).replace("{what}", "Teresa")
    assert said(fact_check(lambda: ledger), "Teresa is asking about the holiday.") == told
    assert said(fact_check(lambda: ledger), "You have two new mails.") == told
    for honest in ("There is no mail from Teresa.", "Sorry, that did not work."):
        assert said(fact_check(lambda: ledger), honest) == honest


def test_what_is_of_something_else_is_told_as_that() -> None:
    check = check_of({"city": "New York", "temperature": -3}, "weather in Cork", city="Cork")
    told = sentence("found_elsewhere").replace("{found}", "New York").replace("{asked}", "Cork")
    assert said(check, "In Cork it's minus three.") == told
    assert said(check, "In New York it's minus three.") == "In New York it's minus three."


@pytest.mark.parametrize(
    ("asked", "found"),
    [("Wien", "Vienna"), ("Lisbon", "Lisboa"), ("NYC", "New York"), ("Cork", "Cork, Ireland")],
)
def test_two_names_of_one_place_are_one(asked: str, found: str) -> None:
    assert elsewhere(entry({"city": found}, {"city": asked})) is None


NOTES = "The plumber is at 555 0148. My garage code is 7741."
LEASE = "Dogs and cats need the written consent of the owner, who may refuse it. " * 4


@pytest.mark.parametrize(
    ("request_", "tool", "query", "result", "clause"),
    [
        (
            *("what's the capital of Portugal", "search_notes", "capital of Portugal", NOTES),
            "The capital of Portugal is Plumber at 555 0148 and the garage code is 7741.",
        ),
        (
            *("what's the capital of Portugal", "notes__find", "capital Portugal"),
            {"query": "capital Portugal", "notes": [{"title": "Anna", "mail": "anna@example.org"}]},
            "Its capital is Anna.",
        ),
        (
            *("what does a blue whale eat", "search_documents", "blue whale food"),
            {"answer_from": [{"source": "Lease", "text": LEASE}]},
            "Blue whales need written consent.",
        ),
        (
            *("how many moons does Jupiter have", "web_search", "Jupiter moons", LEASE),
            "It has a written consent.",
        ),
    ],
)
def test_what_a_search_for_a_fact_of_the_world_finds_elsewhere_is_no_answer(
    request_: str, tool: str, query: str, result: Any, clause: str
) -> None:
    check = fact_check(of(request_, (entry(result, {"query": query}, tool=tool),)))
    for own in ("I looked for it.", "I believe it is Lisbon, or krill, or 95.", "No luck there."):
        assert said(check, own) == own
    assert said(check, clause) == sentence("found_nothing_about").replace("{what}", query)


@pytest.mark.parametrize(
    ("request_", "tool", "query", "result"),
    [
        ("what is the capital of Mongolia", "web_search", "capital of Mongolia", "Ulaanbaatar"),
        ("what does serendipity mean", "search_dictionary", "serendipity", "Luck by chance."),
        ("how do I make pizza dough", "search_notes", "pizza dough", "500 g flour, 7 g yeast"),
        ("how do I tie a bowline", "search_notes", "bowline", "Round the tree and down the hole"),
        (
            "what is the capital of Peru",
            "search_notes",
            "capital Peru",
            "Lima, my flight is in May",
        ),
        (
            "how do you prune roses",
            "search_notes",
            "prune roses",
            "Our shears: above a bud, in March",
        ),
        ("what does a blue whale eat", "search_notes", "blue whales", f"Whales eat krill. {NOTES}"),
        ("what was the plumber's number again", "search_notes", "plumber", "Viktor is at 555 0148"),
        ("find me a plumber", "places_search", "plumber", "Klempner Kurz, telephone 0341 555 014"),
        ("how high is Mont Blanc", "get_weather", "Mont Blanc", NOTES),
        ("what's the capital of Portugal", "search_notes", "", NOTES),
        ("was ist die Hauptstadt von Portugal", "search_notes", "Hauptstadt Portugal", "Lissabon"),
    ],
)
def test_a_result_that_may_answer_is_no_unrelated_one(
    request_: str, tool: str, query: str, result: str
) -> None:
    assert not is_unrelated(entry(result, {"query": query}, tool=tool), request_)


@pytest.mark.parametrize("part", ["tuning", "held_out", "unseen", "unseen_2", "unseen_3"])
def test_no_labelled_result_is_unrelated(part: str) -> None:
    assert not any(
        is_unrelated(each, pair.ledger.request)
        for pair in pairs_of(part)
        for each in pair.ledger.turn
    )


def test_a_call_that_changes_something_may_answer_nothing() -> None:
    light = LedgerEntry("c1", "switch_light", {"room": "hall"}, "done", "", "write")
    assert kind_of(light) == "found"
    assert said(fact_check(of("light on", (light,))), "The hall light is on.") != ""


def test_the_opposite_of_a_state_is_turned_round() -> None:
    garage = {"name": "garage", "state": "open"}
    assert said(check_of(garage), "Yes, the garage is closed.") == "the garage is open."
    assert said(check_of(garage), "No, it's not closed.") == "No, it's not closed."


def test_a_state_that_was_changed_since_is_not_held_against_the_answer() -> None:
    read = entry({"name": "garage", "state": "open"})
    closed = LedgerEntry("c2", "close_garage", {}, "done", '{"ok":true}', "write")
    check = fact_check(of("close the garage", (read, closed)))
    assert said(check, "The garage is closed.") == "The garage is closed."


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner),
    max_leaves=12,
)
KEYS = st.sampled_from(["city", "date", "count", "temperature", "unit", "time_left", "on", "state"])


@settings(max_examples=150)
@given(
    st.dictionaries(KEYS, VALUES) | VALUES,
    st.dictionaries(KEYS, VALUES),
    st.lists(
        st.text(max_size=60) | st.just("It is 7 degrees at half past two, on Monday."), max_size=3
    ),
)
def test_no_result_and_no_clause_is_too_odd(
    result: Any, arguments: dict[str, Any], clauses: list[str]
) -> None:
    check = fact_check(of("what is it", (entry(result, arguments),)))
    for clause in clauses:
        text = said(check, clause)
        assert len(text) <= len(clause) + 200


@given(st.integers(-40, 10_000), st.sampled_from(["degrees", "percent", "kilometres", "euros", ""]))
def test_a_value_of_a_result_may_always_be_told(value: int, unit: str) -> None:
    clause = f"It is {value} {unit} now."
    assert said(check_of({"value": value}), clause) == clause


@pytest.mark.parametrize(
    ("request_", "clause"),
    [
        ("wie warm ist es in Graz", "In Graz hat es 21,4 Grad bei 48 Prozent."),
        ("quel temps fait-il", "Il fait 23,5 degrés et le vent souffle à 10 km/h."),
        ("hava nasıl", "Bugün 25 derece."),
    ],
)
def test_an_answer_in_another_language_is_not_judged(request_: str, clause: str) -> None:
    assert said(check_of({"temperature": 19}, request_), clause) == clause


@pytest.mark.parametrize(
    "part", ["tuning", "held_out", *(f"unseen{n}" for n in ("", "_2", "_3", "_4", "_empty"))]
)
def test_nothing_right_is_doubted(part: str) -> None:
    pairs = list(pairs_of(part))
    doubted = [
        pair.clause
        for pair in pairs
        if pair.is_right and said(pair.check(), pair.clause) != pair.clause
    ]
    assert doubted == []


def test_answers_to_nothing_and_to_an_error_are_found() -> None:
    kinds = ("empty", "error", "other", "not found")
    wrong = [
        pair
        for part in ("tuning", "held_out", "unseen")
        for pair in pairs_of(part)
        if pair.kind in kinds and not pair.is_right
    ]
    missed = [p.clause for p in wrong if said(p.check(), p.clause) == p.clause]
    assert len(wrong) >= 35
    assert missed == []


@pytest.mark.parametrize(
    ("tool", "result", "clause"),
    [
        ("list_open_windows", [], "Yes, all the windows are closed."),
        ("list_alerts", {"alerts": []}, "Everything is fine with the windows."),
        ("next_match", "No match today, the next one is on Friday at 18:00.", "It is on Friday."),
        ("lookup", "Nothing to do, the windows are already clean.", "The windows are dirt free."),
        ("close_windows", [], "The windows are shut tight."),
        ("run_workflow", {"items": []}, "The windows workflow was started."),
    ],
)
def test_an_empty_list_may_say_that_all_is_well(tool: str, result: Any, clause: str) -> None:
    call = entry(result, tool=tool)
    call = replace(call, effect="read" if tool.startswith(("list", "next", "look")) else "write")
    assert said(fact_check(of("are the windows closed", (call,))), clause) == clause


@pytest.mark.parametrize("state", ["refused", "dry_run"])
def test_a_call_that_was_not_made_is_told_of_elsewhere(state: CallState) -> None:
    check = fact_check(of("is the door locked", (entry({"error": "refused"}, state=state),)))
    assert said(check, "The door is still locked.") == "The door is still locked."
