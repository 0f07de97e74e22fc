"""What n8n says of itself is never taken for an author's words. The bodies are n8n 2.41.1's."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from n8n.calls.results import is_builtin_reply, read_reply
from n8n.core.errors import N8nError
from n8n.core.http import HttpResponse
from tests.unit.n8n.test_n8n_results import JSON_TYPE, TOOL

SPEAKS = replace(TOOL, spoken_field="message", response_mode="responseNode")
CHALLENGE = {"www-authenticate": 'Basic realm="Webhook"'}


def failed(status: int, body: str, **headers: str) -> N8nError:
    with pytest.raises(N8nError) as caught:
        read_reply(SPEAKS, HttpResponse(status, headers, body.encode(), truncated=False))
    return caught.value


def said(message: str, **more: Any) -> str:
    return json.dumps({**more, "message": message})


@pytest.mark.parametrize(
    ("status", "body", "fix"),
    [
        (500, said("Error in workflow"), "look at its latest execution"),
        (500, said("No item to return was found", code=0), "always output data"),
        (500, said("No item was found to return", code=0, stacktrace="x"), "always output data"),
        (
            500,
            said("No Respond to Webhook node found in the workflow", code=0, stacktrace="x"),
            "add a Respond to Webhook node",
        ),
        (400, said('Node "Ask" uses invalid credential', code=0), "uses invalid credential"),
        (500, said("There was a problem executing the workflow", code=0), "latest execution"),
    ],
)
def test_n8ns_own_error_is_a_failed_run_that_nobody_hears_the_words_of(
    status: int, body: str, fix: str
) -> None:
    error = failed(status, body, **{"content-type": JSON_TYPE})
    assert (error.kind, error.spoken) == ("workflow_failed", None)
    assert fix in (error.fix or "")
    assert "stacktrace" not in str(error)


@pytest.mark.parametrize(
    "body",
    [said("I know no such town."), said("I know no such town.", code=404, town="Rome")],
)
def test_an_authors_refusal_is_heard_as_it_stands(body: str) -> None:
    error = failed(404, body, **{"content-type": JSON_TYPE})
    assert (error.kind, error.spoken) == ("rejected", "I know no such town.")


@pytest.mark.parametrize(
    "words",
    [
        "Workflow executed successfully but no data was returned",
        "Workflow executed successfully but the last node did not return any data",
    ],
)
def test_a_run_without_data_is_done_and_not_announced_by_n8n(words: str) -> None:
    body = said(words).encode()
    result = read_reply(
        SPEAKS, HttpResponse(200, {"content-type": JSON_TYPE}, body, truncated=False)
    )
    assert (result.kind, result.value["status"], result.spoken) == ("empty", "done", None)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "No token provided"),
        (403, "jwt malformed"),
        (403, "invalid signature"),
        (403, "Authorization data is wrong!"),
    ],
)
def test_a_webhook_that_wants_credentials_by_now_is_told_by_its_challenge(
    status: int, words: str
) -> None:
    error = failed(status, words, **CHALLENGE)
    assert error.kind == "auth"
    assert "reload the tools" in (error.fix or "")


def test_without_the_challenge_a_403_is_the_authors_own() -> None:
    assert failed(403, "Not for you").kind == "rejected"


def test_an_address_that_may_not_call_is_told_with_its_option() -> None:
    error = failed(403, "IP is not allowed to access the webhook!")
    assert error.kind == "auth"
    assert "Allowlist" in (error.fix or "")


def test_a_reply_with_a_code_of_the_authors_own_is_not_n8ns() -> None:
    assert is_builtin_reply({"code": 0, "message": "x", "stacktrace": "y"})
    assert not is_builtin_reply({"code": 404, "message": "x"})
    assert not is_builtin_reply({"code": 0, "message": "x", "town": "Rome"})
