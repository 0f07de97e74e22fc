"""The record of a failed run: whose it is, and what of it may be told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from n8n.calls.call import MAX_CAUSE_CHARS, AnsweredCall, FailureCause, cause_of, slowest_runs
from n8n.core.http import ApiClient
from tests.unit.n8n.test_n8n_results import TOOL

DATE = "Sat, 21 Nov 2026 20:49:11 GMT"
SENT = AnsweredCall(b'{"city":"P"}', DATE, 0.5)


def record(message: str = "boom", body: Any = None, **more: Any) -> dict[str, Any]:
    request = {"headers": {}, "body": {"city": "P"} if body is None else body}
    runs = {"Webhook": [{"data": {"main": [[{"json": request}]]}}]}
    error = {"message": message, "stack": "Error\n at x.ts", "node": {"name": "Stop"}}
    return {
        "id": "1",
        "workflowId": "w1",
        "stoppedAt": "2026-11-21T20:49:11.177Z",
        "data": {"resultData": {"error": error, "runData": runs}},
        **more,
    }


@asynccontextmanager
async def api(status: int, told: Any):
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, content=json.dumps(told).encode())

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
        yield ApiClient(client, "http://n8n.test", "N8N_API_KEY", deadline=1e9)


async def cause(
    *records: Mapping[str, Any], sent: AnsweredCall = SENT, status: int = 200
) -> FailureCause | None:
    async with api(status, {"data": list(records)}) as asked:
        return await cause_of(asked, TOOL, sent, tries=1)


async def test_the_run_of_this_call_is_found_among_others() -> None:
    other = record("another's", body={"city": "Q"})
    assert await cause(other, record()) == FailureCause("boom", "Stop")
    assert await cause(other) is None


@pytest.mark.parametrize("when", ["2026-11-21T20:48:00.000Z", "2026-11-21T20:59:11.000Z"])
async def test_a_run_of_another_time_is_not_this_calls(when: str) -> None:
    assert await cause(record(stoppedAt=when)) is None


async def test_a_run_of_another_workflow_is_never_told() -> None:
    assert await cause(record(workflowId="w2")) is None


async def test_without_saved_data_the_time_tells_whose_run_it_was() -> None:
    bare = record()
    bare["data"]["resultData"]["runData"] = {}
    assert await cause(bare) == FailureCause("boom", "Stop")


async def test_a_key_that_may_not_read_runs_gives_no_cause() -> None:
    assert await cause(record(), status=403) is None
    assert await cause(record(), status=500) is None


async def test_no_address_and_no_stack_is_told() -> None:
    message = "GET https://u:p@crm.example/v1?key=s3cret failed\n at Object.<anonymous> (x.ts:3)"
    assert await cause(record(message)) == FailureCause("GET https://crm.example failed", "Stop")


async def test_a_long_cause_is_cut() -> None:
    told = await cause(record("x" * 5000))
    assert told is not None
    assert len(told.message) == MAX_CAUSE_CHARS


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(),
        lambda v: (
            st.lists(v)
            | st.dictionaries(
                st.sampled_from(
                    ["data", "resultData", "error", "message", "runData", "main", "json", "body"]
                ),
                v,
            )
        ),
    )
)
async def test_any_record_is_survived(told: Any) -> None:
    async with api(200, {"data": [{"workflowId": "w1", "data": told}]}) as asked:
        await cause_of(asked, TOOL, SENT, tries=1)


async def test_the_slowest_webhook_run_of_each_workflow_is_known() -> None:
    def run(workflow: str, seconds: int, mode: str = "webhook") -> dict[str, str]:
        ended = f"2026-11-21T20:49:{seconds:02}.000Z"
        began = "2026-11-21T20:49:00.000Z"
        return {"workflowId": workflow, "startedAt": began, "stoppedAt": ended, "mode": mode}

    async with api(200, {"data": [run("a", 3), run("a", 9), run("a", 50, "manual"), {}]}) as asked:
        assert await slowest_runs(asked) == {"a": 9.0}
