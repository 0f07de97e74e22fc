"""Calls on the wire: each kind of reply of the recorded n8n, and each way a call can end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from n8n import BasicAuth, HeaderAuth, JwtAuth, N8nError, N8nTools, Progress, WorkflowTool
from n8n.calls.call import MAX_REPLY_BYTES, call_webhook
from n8n.core.http import open_client
from tests.recorded_n8n import RecordedN8n
from tests.recorded_n8n.loopback import LoopbackRequest, LoopbackResponse, LoopbackServer


@asynccontextmanager
async def opened(**more: Any) -> AsyncGenerator[tuple[RecordedN8n, N8nTools]]:
    async with RecordedN8n() as recorded, by_rest(recorded, **more) as n:
        await n.discover()
        recorded.requests.clear()
        yield recorded, n


def by_rest(recorded: RecordedN8n, **more: Any) -> N8nTools:
    return N8nTools(recorded.base_url, api_key=recorded.api_key, **more)


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "value"),
    [
        (
            "get_weather",
            {"city": "Paris", "days": 3},
            "object",
            {"city": "Paris", "days": 3, "forecast": "sunny", "high_c": 21},
        ),
        (
            "list_events",
            {"day": "friday"},
            "array",
            [{"id": i, "title": f"event {i}", "day": "friday"} for i in (1, 2, 3)],
        ),
        ("get_order", {"orderId": "55", "x": 1}, "object", {"id": "55", "q": {"x": "1"}}),
        ("get_order", {"orderId": "a b&c"}, "object", {"id": "a b&c", "q": {}}),
        (
            "Convert_Units",
            {"value": 10, "from": "km", "to": "mi"},
            "object",
            {"value": 10, "from": "km", "to": "mi", "result": 6.21371},
        ),
        ("slow_report", {"topic": "x"}, "object", {"report": "done", "topic": "x"}),
        ("all_items", {}, "array", [{"a": 1}, {"a": 2}]),
        ("text_answer", {}, "text", "It is sunny in Paris."),
        ("binary_out", {}, "binary", {"status": "file", "type": "image/png", "bytes": 8}),
    ],
)
async def test_a_reply_becomes_a_value(
    name: str, arguments: dict[str, Any], kind: str, value: Any
) -> None:
    async with opened() as (_, n):
        result = await n.call(name, arguments)
    assert (result.kind, result.value, result.spoken) == (kind, value, None)


@pytest.mark.parametrize(
    ("name", "kind", "status"),
    [
        ("fire_and_forget", "started", "started"),
        ("no_data", "empty", "done"),
        ("never_responds", "empty", "unknown"),
    ],
)
async def test_a_reply_without_a_result_says_what_is_known(
    name: str, kind: str, status: str
) -> None:
    async with opened() as (_, n):
        result = await n.call(name, {})
    assert (result.kind, result.value["status"]) == (kind, status)


@pytest.mark.parametrize(
    ("name", "kind", "status", "message"),
    [
        ("zero_items", "workflow_failed", 500, "ended without a result."),
        ("timeout_2s", "workflow_timeout", 500, "took too long and was stopped by n8n."),
        (
            "fails_handled",
            "rejected",
            422,
            'refused the call (422): {"error":"unknown city","city":"zzz"}',
        ),
        ("secure_lookup", "auth", 403, "refused this assistant's credentials."),
        ("basic_lookup", "auth", 401, "refused this assistant's credentials."),
        ("jwt_lookup", "auth", 401, "refused this assistant's credentials."),
    ],
)
async def test_a_failure_is_one_line_for_the_model(
    name: str, kind: str, status: int, message: str
) -> None:
    async with opened() as (recorded, n):
        with pytest.raises(N8nError) as caught:
            await n.call(name, {"city": "zzz"})
        assert len(recorded.requests) == 1
    error = caught.value
    assert (error.kind, error.status, str(error)) == (kind, status, f"{name} {message}")


@pytest.mark.parametrize("name", ["fails_respond_node", "fails_last_node"])
async def test_the_real_cause_of_a_failure_comes_from_the_record_of_its_run(name: str) -> None:
    async with opened() as (recorded, n):
        with pytest.raises(N8nError) as caught:
            await n.call(name, {"x": 1})
        webhook, record = recorded.requests
    assert (webhook.path, record.path) == (f"/webhook/{name}", "/api/v1/executions")
    assert str(caught.value) == f"{name} failed while it was running: Upstream CRM said no"
    assert caught.value.fix == "fix its node Stop: look at its latest execution in n8n"
    assert "x-n8n-api-key" not in webhook.headers


async def test_without_a_key_a_failure_is_all_that_is_known() -> None:
    async with RecordedN8n() as recorded, N8nTools(recorded.base_url, recorded.mcp_token) as n:
        await n.discover()
        recorded.requests.clear()
        with pytest.raises(N8nError, match=r"fails_last_node failed while it was running\.$"):
            await n.call("fails_last_node", {})
        assert len(recorded.requests) == 1


async def test_another_persons_failure_is_not_told_as_this_ones() -> None:
    async with opened() as (recorded, n):
        with pytest.raises(N8nError):
            await n.call("fails_last_node", {"who": "Ann"})
        with pytest.raises(N8nError):
            await n.call("fails_last_node", {"who": "Bob"})
        runs = recorded.executions.page({"includeData": "true"})["data"]
    bodies = [r["data"]["resultData"]["runData"]["Webhook"][0]["data"]["main"][0][0] for r in runs]
    assert [b["json"]["body"] for b in bodies] == [{"who": "Bob"}, {"who": "Ann"}]


async def test_a_slow_call_tells_its_progress_until_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("n8n.client.PROGRESS_S", 0.01)
    told: list[Progress] = []
    enough = asyncio.Event()

    def note(progress: Progress) -> None:
        told.append(progress)
        if len(told) == 3:
            enough.set()

    async with opened() as (recorded, n):
        with recorded.hold("slow_report"):
            task = asyncio.create_task(n.call("slow_report", {"topic": "x"}, on_progress=note))
            await enough.wait()
        assert (await task).kind == "object"
        seen = len(told)
        await n.call("get_weather", {"city": "Oslo"})
    assert len(told) == seen
    assert [p.deadline_s for p in told[:3]] == [20.0] * 3
    assert 0 < told[0].elapsed_s < told[1].elapsed_s


async def test_a_workflow_that_was_switched_off_is_not_registered() -> None:
    async with opened() as (recorded, n):
        recorded.deactivate("get_weather")
        with pytest.raises(N8nError) as caught:
            await n.call("get_weather", {"city": "Paris"})
    assert (caught.value.kind, caught.value.status) == ("not_registered", 404)
    assert caught.value.fix is not None
    assert "reload" in caught.value.fix


async def test_a_webhook_whose_method_changed_is_told_apart() -> None:
    async with opened() as (recorded, n):
        tool = next(t for t in n.tools if t.name == "get_weather")
        changed = replace(tool, method="GET")
        async with await open_client(recorded.base_url) as client:
            call = call_webhook(client, recorded.base_url, changed, {}, headers={}, timeout_s=5)
            with pytest.raises(N8nError) as caught:
                await call
    assert (caught.value.kind, caught.value.status) == ("wrong_method", 404)


async def test_each_webhook_gets_its_own_credentials_and_no_other() -> None:
    async with RecordedN8n() as recorded:
        name, value = recorded.webhook_headers["header auth"]
        auth = {
            "secure_lookup": HeaderAuth(name, value),
            "basic_lookup": BasicAuth("recorded", "recorded"),
            "jwt_lookup": JwtAuth("recorded.token.signature"),
        }
        n = N8nTools(
            recorded.base_url,
            mcp_token=recorded.mcp_token,
            api_key=recorded.api_key,
            webhook_auth=auth,
        )
        async with n:
            await n.discover()
            recorded.requests.clear()
            assert (await n.call("secure_lookup", {"id": 1})).value == {"id": 1, "secret": "42"}
            assert (await n.call("basic_lookup", {})).value == {"ok": "basic"}
            assert (await n.call("jwt_lookup", {})).value["ok"] == "jwt"
            await n.call("echo", {})
        *_, plain = recorded.requests
        everything = " ".join(v for seen in recorded.requests for v in seen.headers.values())
    assert not {"authorization", name} & plain.headers.keys()
    assert recorded.api_key not in everything
    assert recorded.mcp_token not in everything
    assert all("x-n8n-api-key" not in seen.headers for seen in recorded.requests)


async def test_a_call_past_its_deadline_is_not_sent_again() -> None:
    async with opened(call_timeout_s=1) as (recorded, n):
        with recorded.hold("slow_report"), pytest.raises(N8nError) as caught:
            await n.call("slow_report", {"topic": "x"})
        assert len(recorded.requests) == 1
        assert (await n.call("get_weather", {"city": "Oslo"}, timeout_s=20)).kind == "object"
    assert caught.value.kind == "timeout"
    assert "slow_report did not answer within 1 s. It may still be running" in str(caught.value)


async def test_a_cancelled_call_ends_at_once_and_the_next_one_works() -> None:
    async with opened() as (recorded, n):
        with recorded.hold("slow_report") as held:
            task = asyncio.create_task(n.call("slow_report", {}))
            await held.reached.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert len(recorded.requests) == 1
        assert (await n.call("list_events", {})).kind == "array"


async def test_a_slow_call_does_not_hold_up_another() -> None:
    async with opened() as (recorded, n):
        with recorded.hold("slow_report") as held:
            slow = asyncio.create_task(n.call("slow_report", {"topic": "x"}))
            await held.reached.wait()
            assert (await n.call("get_weather", {"city": "Oslo"})).kind == "object"
            assert not slow.done()
        assert (await slow).value["topic"] == "x"


async def test_a_host_that_went_away_is_unreachable() -> None:
    async with RecordedN8n() as recorded:
        n = N8nTools(recorded.base_url, api_key=recorded.api_key)
        await n.discover()
    with pytest.raises(N8nError, match="get_weather cannot be reached") as caught:
        await n.call("get_weather", {"city": "Paris"})
    assert caught.value.kind == "unreachable"
    await n.aclose()


async def test_a_connection_that_breaks_is_told_as_maybe_done() -> None:
    async with opened() as (recorded, n):
        with recorded.hold("echo") as held:
            task = asyncio.create_task(n.call("echo", {}))
            await held.reached.wait()
            await recorded.aclose()
            with pytest.raises(N8nError, match="It may have done its work") as caught:
                await task
    assert caught.value.kind == "unreachable"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (json.dumps([{"n": i, "pad": "x" * 90} for i in range(50_000)]).encode(), "array"),
        (json.dumps({"text": "y" * 5_000_000}).encode(), "text"),
        (b"z" * 5_000_000, "text"),
    ],
)
async def test_an_endless_reply_is_cut(body: bytes, kind: str) -> None:
    json_type = (("content-type", "application/json"),)

    async def answer(_: LoopbackRequest) -> LoopbackResponse:
        return LoopbackResponse(200, body, json_type)

    server = LoopbackServer(answer)
    try:
        url = f"http://127.0.0.1:{await server.start(0)}"
        async with await open_client(url) as client:
            result = await call_webhook(client, url, _tool(), {}, headers={}, timeout_s=10)
    finally:
        await server.aclose()
    assert (result.kind, result.truncated) == (kind, True)
    if kind == "text":
        assert result.value == body[:MAX_REPLY_BYTES].decode()
    else:
        assert result.value[-1]["n"] == len(result.value) - 1
        assert len(result.value) > 500


def _tool() -> WorkflowTool:
    return WorkflowTool(
        name="big",
        workflow_id="w",
        node_id="n",
        version_id=None,
        title="big",
        description="",
        full_description="",
        input_schema={"type": "object"},
        examples=(),
        method="POST",
        path="big",
        response_mode="lastNode",
        auth_kind="none",
    )
