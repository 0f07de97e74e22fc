"""What is said of a workflow that is no good voice tool yet."""

from __future__ import annotations

import itertools
import json
from importlib import resources
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from n8n import Finding, check, lint, workflows_in
from n8n.workflow_lint import CALL_GIVEN_UP_S

GOOD = (
    'Tells the time. Parameters: city (required, string).\nExample: time in Oslo -> {"city": "x"}'
)
SAMPLES = sorted(
    entry.name for entry in (resources.files("n8n") / "workflows").iterdir() if entry.is_file()
)


def workflow(notes: str = GOOD, *more: dict[str, Any], **hook: Any) -> dict[str, Any]:
    webhook = {
        "id": "1",
        "name": "Webhook",
        "type": "n8n-nodes-base.webhook",
        "webhookId": "w",
        "notes": notes,
        "parameters": {
            "httpMethod": "POST",
            "path": "p",
            "responseMode": "responseNode",
            "authentication": "headerAuth",
            **hook,
        },
    }
    return {"id": "w", "name": "clock", "nodes": [webhook, *more]}


def node(kind: str, **parameters: Any) -> dict[str, Any]:
    return {"id": kind, "name": kind, "type": f"n8n-nodes-base.{kind}", "parameters": parameters}


RESPOND = node("respondToWebhook", respondWith="json", responseBody="={{ $json.body.city }}")


def levels(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.level for finding in findings]


def test_a_good_workflow_has_no_finding() -> None:
    assert lint(workflow(GOOD, RESPOND)) == ()


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_has_nothing_worse_than_advice(name: str) -> None:
    text = (resources.files("n8n") / "workflows" / name).read_text("utf-8")
    (found,) = workflows_in(json.loads(text))
    assert set(levels(lint(found))) <= {"advice"}


@pytest.mark.parametrize(
    ("made", "level", "message", "fix"),
    [
        (workflow("", RESPOND), "warning", "it has no notes", "say in a sentence"),
        (
            workflow("Tells it.", RESPOND),
            "warning",
            "guessed from its nodes: city",
            "Parameters: city",
        ),
        (
            workflow(
                "Tells it.",
                node("code", jsCode="return $input.all();"),
                RESPOND | {"parameters": {}},
            ),
            "warning",
            "nothing tells which parameters",
            "Parameters: none",
        ),
        (workflow(GOOD.partition("\n")[0], RESPOND), "advice", "no example", "Example:"),
        (
            workflow("A. " * 200 + GOOD, RESPOND),
            "advice",
            "the prompt gets the first 300",
            "first two",
        ),
        (
            workflow(GOOD + "\nExample: x -> {", RESPOND),
            "warning",
            "its notes: line 3",
            "fix that line",
        ),
        (
            workflow(GOOD, responseMode="onReceived"),
            "warning",
            "answers before it has run",
            "Respond",
        ),
        (workflow(GOOD), "error", "has none", "add one"),
        (
            workflow(GOOD, RESPOND, responseMode="lastNode"),
            "error",
            "does not wait for",
            "Using 'Respond",
        ),
        (workflow(GOOD, RESPOND, authentication="none"), "advice", "whoever can reach", "n8n_auth"),
        (
            workflow(GOOD, RESPOND, options={"ignoreBots": True}),
            "error",
            "turns away",
            "Ignore Bots",
        ),
        (
            workflow(GOOD, responseMode="lastNode"),
            "warning",
            "answers with the request itself",
            "add the nodes",
        ),
        (workflow(GOOD, RESPOND, httpMethod="GET"), "error", "has no body", "POST"),
        (
            workflow(GOOD, RESPOND, node("wait", amount=2, unit="minutes")),
            "warning",
            "takes 120 s",
            "Takes: 125 s",
        ),
        (
            workflow(GOOD + "\nSpeak: words", RESPOND),
            "warning",
            "none of its nodes makes",
            "answer with",
        ),
        (
            workflow(GOOD, node("respondToWebhook", respondWith="binary")),
            "warning",
            "a file",
            "JSON",
        ),
        (
            workflow(GOOD, node("respondToWebhook", respondWith="noData")),
            "advice",
            "answers nothing",
            "Speak",
        ),
        (
            {"name": "form", "nodes": [node("formTrigger")]},
            "error",
            "no Webhook node",
            "begin it with",
        ),
        (workflow(GOOD, RESPOND, path="={{ 1 }}"), "error", "path is an expression", "fixed path"),
    ],
)
def test_each_fault_is_told_with_its_fix(
    made: dict[str, Any], level: str, message: str, fix: str
) -> None:
    finding = next(f for f in lint(made) if message in f.message)
    assert finding.level == level
    assert fix in finding.fix


def leading(first: dict[str, Any], *more: dict[str, Any]) -> dict[str, Any]:
    """A workflow whose nodes stand one after the other."""
    names = ["Webhook", *(n["name"] for n in more)]
    to = {
        a: {"main": [[{"node": b, "type": "main", "index": 0}]]}
        for a, b in itertools.pairwise(names)
    }
    return {**first, "nodes": [*first["nodes"], *more], "connections": to}


ANSWER = node("respondToWebhook", respondWith="json", responseBody="={{ $json }}")
SET_CITY = node("set", value="={{ $json.body.city }}") | {"typeVersion": 3.4}


@pytest.mark.parametrize(
    ("notes", "nodes", "message"),
    [
        ("city (required), zone (string)", [RESPOND], "its notes name zone, which no node reads"),
        ("city (required), zone (string)", [SET_CITY, ANSWER], "name zone, which no node reads"),
        (
            "city (required), zone (string)",
            [node("code", jsCode="const b = $json.body;\nreturn b.city;"), ANSWER],
            "name zone, which no node reads",
        ),
        (
            "city (required), zone (string)",
            [node("code", jsCode="const {city} = $input.first().json.body;"), ANSWER],
            "name zone, which no node reads",
        ),
        ("town (required)", [RESPOND], "which no node reads, and its nodes read city"),
        (
            "city (required)",
            [node("set", a="={{ $json.body.city + $json.body.zone }}"), ANSWER],
            "its nodes read zone, which its notes do not name",
        ),
        ("none", [RESPOND], "its nodes read city, which its notes do not name"),
        (
            "city (required), zone (string)",
            [node("if", value="={{ $json.body.city }}"), SET_CITY, ANSWER],
            "name zone, which no node reads",
        ),
        ("city (required), body (string)", [RESPOND], "name body, which no node reads"),
        (
            "city (required), query (string)",
            [
                node("set", a="={{ $json['body']['city'] + $json[\"query\"].city }}")
                | {"typeVersion": 3.4},
                ANSWER,
            ],
            "name query, which no node reads",
        ),
    ],
)
def test_names_that_notes_and_nodes_do_not_share_are_one_finding(
    notes: str, nodes: list[dict[str, Any]], message: str
) -> None:
    text = f"Tells the time. Parameters: {notes}." + (
        "" if notes == "none" else GOOD[GOOD.index("\n") :].replace("city", notes.split()[0])
    )
    findings = [f for f in lint(leading(workflow(text), *nodes)) if f.level == "warning"]
    assert [message in f.message for f in findings] == [True]
    assert "$json.body." in findings[0].fix or "name " in findings[0].fix


@pytest.mark.parametrize(
    "nodes",
    [
        [node("code", jsCode="const b = $json.body; return use(b);"), RESPOND],
        [node("code", jsCode="const {city, zone} = $json.body;"), RESPOND],
        [node("code", jsCode="const {city, ...more} = $json.body;"), RESPOND],
        [node("code", jsCode="const b = $json.body; b.city; for (const k in b) {}"), RESPOND],
        [node("code", jsCode="return $input.all();"), RESPOND],
        [node("set", value="={{ $json.body.zone ?? 'utc' }}"), RESPOND],
        [node("httpRequest", jsonBody="={{ $json.body }}"), RESPOND],
        [node("if", value="={{ $json.body.city }}"), node("code", jsCode="return $json"), RESPOND],
        [node("set", value="={{ $('Webhook').item.json.body['zone'] }}"), RESPOND],
        [node("executeWorkflow"), RESPOND],
    ],
)
def test_what_a_node_may_read_is_not_told_as_unread(nodes: list[dict[str, Any]]) -> None:
    text = GOOD.replace("(required, string)", "(required, string), zone (string)")
    assert lint(leading(workflow(text), *nodes)) == ()


def test_a_default_of_a_node_and_an_answer_of_another_server_want_no_notes() -> None:
    page = node("set", value="={{ $json.body.city + ($json.body.page || 1) }}")
    assert lint(leading(workflow(), page, RESPOND)) == ()
    full = {"response": {"response": {"fullResponse": True}}}
    asks = [node("httpRequest", city="={{ $json.body.city }}", options=full)]
    says = node("respondToWebhook", responseBody="={{ $json.body.temperature }}")
    assert lint(leading(workflow(), *asks, says)) == ()


def test_the_nodes_of_another_webhook_are_not_those_of_this_one() -> None:
    one, other = workflow()["nodes"][0], workflow()["nodes"][0] | {"id": "2", "name": "Other"}
    other = other | {"webhookId": "o", "parameters": {**other["parameters"], "path": "other"}}
    second = {**RESPOND, "name": "second", "parameters": {"a": "={{ $json.body.zone }}"}}
    to = {
        "Webhook": {"main": [[{"node": RESPOND["name"]}]]},
        "Other": {"main": [[{"node": "second"}]]},
    }
    both = {"id": "w", "name": "clock", "nodes": [one, other, RESPOND, second], "connections": to}
    (finding,) = lint(both)
    assert (finding.tool, finding.where) == ("clock_other", "other")
    assert "name city, which no node reads, and its nodes read zone" in finding.message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ('{"city": "Oslo", "days": 9}', "has a wrong days: 9 is greater than the maximum of 7"),
        ('{"city": "Oslo", "days": "two"}', "'two' is not of type 'integer'"),
        ('{"city": "Oslo", "unit": "k"}', "'k' is not one of ['c', 'f']"),
        ('{"city": "Oslo", "day": "tomorrow"}', "'tomorrow' is not a 'date'"),
        ('{"city": "Oslo", "town": "x"}', "has town, which is no parameter"),
        ('{"days": 3}', "lacks city"),
        ("{oops", "an example reads"),
        ("city=Oslo", "an example reads"),
    ],
)
def test_an_example_that_is_no_call_of_the_tool_is_one_finding(
    arguments: str, message: str
) -> None:
    takes = "city (required, string), days (integer 1-7), unit (c|f), day (date)"
    reads = "={{ $json.body.city + $json.body.days + $json.body.unit + $json.body.day }}"
    text = f"Tells it. Parameters: {takes}.\nExample: time in Oslo -> {arguments}"
    (finding,) = lint(workflow(text, node("respondToWebhook", responseBody=reads)))
    assert finding.level == "warning"
    assert message in finding.message


@pytest.mark.parametrize(
    ("days", "message"),
    [
        ("integer 1-7, default 9", "the default of days: 9 is greater than the maximum of 7"),
        ("integer, default soon", "the default of days: 'soon' is not of type 'integer'"),
        ("1|2, default 3", "the default of days: '3' is not one of ['1', '2']"),
        ("integer 7-1", "days has no value: it is at least 7 and at most 1"),
    ],
)
def test_a_default_outside_its_own_bounds_is_a_finding(days: str, message: str) -> None:
    reads = node("respondToWebhook", responseBody="={{ $json.body.city + $json.body.days }}")
    text = GOOD.replace("(required, string)", f"(required, string), days ({days})")
    (finding,) = lint(workflow(text, reads))
    assert (finding.level, finding.message) == ("warning", f"its notes: {message}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Parametres: city (required, string)", "`Parametres:` is read as `Parameters:`"),
        ("Parameters: city (required, string).\nTakes: forever", "followed by a time"),
        ("Parameters: city (required, string).\nSpeak: the city field", "read as `Speak: city`"),
        ("Parameters: ???", "nothing readable after"),
        ('---schema\n{"city": 3}\n---', "'city' must be an object"),
    ],
)
def test_each_mistake_in_notes_is_one_finding(line: str, message: str) -> None:
    example = GOOD[GOOD.index("\n") :]
    (finding,) = lint(workflow(f"Tells the time.\n{line}{example}", RESPOND))
    assert finding.level == "warning"
    assert message in finding.message


def test_tools_have_the_names_that_they_would_have_beside_each_other() -> None:
    older = {**workflow(GOOD, RESPOND), "createdAt": "2020"}
    newer = {**workflow(GOOD, RESPOND), "id": "w2", "createdAt": "2021"}
    found = check([{**newer, "name": "Wie spät?"}, {**newer, "id": "w3", "name": "clock"}, older])
    names = [tool.name for tool in found.tools]
    assert (names[0], names[2]) == ("Wie_spat", "clock")
    assert names[1].startswith("clock_")


KEYS = st.sampled_from(
    ["name", "type", "id", "node", "main", "Webhook", "parameters", "options", "path", "x"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(JSON, JSON, st.dictionaries(KEYS, JSON, max_size=4))
def test_whatever_stands_in_a_workflow_is_survived(nodes: Any, to: Any, hook: Any) -> None:
    made = workflow(GOOD, RESPOND, **hook)
    more = nodes if isinstance(nodes, list) else [nodes]
    check([{**made, "nodes": [*made["nodes"], *more], "connections": to}, {"nodes": nodes}])
    check([{**made, "connections": {"Webhook": to, RESPOND["name"]: to}}])


def test_a_slow_run_that_was_seen_counts_and_a_time_that_is_told_excuses_it() -> None:
    slow = lint(workflow(GOOD, RESPOND), slowest_s=CALL_GIVEN_UP_S + 11)
    assert levels(slow) == ["warning"]
    assert "a run of it took 31 s" in slow[0].message
    assert lint(workflow(GOOD + "\nTakes: 40 s", RESPOND), slowest_s=CALL_GIVEN_UP_S + 11) == ()


def test_a_file_may_hold_one_workflow_or_several() -> None:
    one = workflow()
    assert workflows_in(one) == [one]
    assert workflows_in([one, 3, one]) == [one, one]
    assert workflows_in({"data": [one]}) == [one]
    assert workflows_in({"workflow": one}) == [one]
    assert workflows_in({"other": 1}) == []
    assert workflows_in("text") == []
