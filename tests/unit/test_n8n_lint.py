"""What is said of a workflow that is no good voice tool yet."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest

from n8n import Finding, lint, workflows_in
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
    ("made", "level", "message", "mend"),
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
            "mend that line",
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
def test_each_fault_is_told_with_its_mend(
    made: dict[str, Any], level: str, message: str, mend: str
) -> None:
    finding = next(f for f in lint(made) if message in f.message)
    assert finding.level == level
    assert mend in finding.mend


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
