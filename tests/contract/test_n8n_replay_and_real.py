"""One contract for the replay and for a real n8n: what passes here shows that they are alike.

Against the replay by default, and against N8N_TEST_URL where that is set, as `make test-n8n` does.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import httpx2
import jwt
import pytest

from n8n import (
    BasicAuth,
    Discovery,
    HeaderAuth,
    JwtAuth,
    JwtSecretAuth,
    N8nError,
    N8nTools,
    Progress,
    WebhookAuth,
)
from tests.recorded_n8n import WRONG_CREDENTIALS, RecordedN8n
from tests.recorded_n8n.recordings import RecordedExchange, load_recordings
from tests.recorded_n8n.webhooks import RIGHT_CREDENTIALS

RECORDINGS = load_recordings()
REAL = os.environ.get("N8N_TEST_URL")
RIGHT_HEADERS = dict(RIGHT_CREDENTIALS)
STACK = re.compile(r'"stacktrace":"(?:[^"\\]|\\.)*"')
FORGED = jwt.encode({"sub": "agent"}, "a secret that nobody has, of enough bytes", "HS256")
HOSTS = re.compile(r"http://[\w.]+:\d+")
WHEN = re.compile(r'"timestamp":\d+')


@dataclass(frozen=True, slots=True)
class Instance:
    """An n8n with the recorded workflows, whichever it is."""

    url: str
    api_key: str
    mcp_token: str
    headers: Mapping[str, tuple[str, str]]
    """Right credentials of its webhooks, by kind."""
    auth: Mapping[str, WebhookAuth]

    def tools(self, *, by: str = "rest") -> N8nTools:
        return N8nTools(
            self.url,
            mcp_token=self.mcp_token if by == "mcp" else None,
            api_key=self.api_key if by == "rest" else None,
            webhook_auth=self.auth,
        )


@asynccontextmanager
async def instance() -> AsyncGenerator[Instance]:
    header, basic = HeaderAuth(*RIGHT_CREDENTIALS["header auth"]), BasicAuth("recorded", "recorded")
    if REAL is None:
        token: WebhookAuth = JwtAuth("recorded.token.signature")
        async with RecordedN8n() as r:
            auth = {"secure_lookup": header, "basic_lookup": basic, "jwt_lookup": token}
            yield Instance(r.base_url, r.api_key, r.mcp_token, r.webhook_headers, auth)
        return
    secret = os.environ["N8N_TEST_JWT_SECRET"]
    signed = jwt.encode({"sub": "agent"}, secret, "HS256")
    yield Instance(
        REAL,
        os.environ["N8N_TEST_API_KEY"],
        os.environ["N8N_TEST_MCP_TOKEN"],
        {**RIGHT_HEADERS, "jwt": ("authorization", f"Bearer {signed}")},
        {
            "secure_lookup": header,
            "basic_lookup": basic,
            "jwt_lookup": JwtSecretAuth(secret),
        },
    )


_looks: dict[tuple[str, str], Discovery] = {}


async def look(n8n: Instance, by: str) -> Discovery:
    """One discovery of each instance by each API: n8n takes 100 requests in 5 minutes by MCP."""
    if (n8n.url, by) not in _looks:
        async with n8n.tools(by=by) as tools:
            _looks[n8n.url, by] = await tools.discover()
    return _looks[n8n.url, by]


def plain(body: bytes, base_url: str) -> Any:
    """A reply without what differs from one instance to the next: addresses, times and stack
    traces."""
    text = STACK.sub('"stacktrace":""', body.decode("utf-8", "replace"))
    text = WHEN.sub("", HOSTS.sub("http://n8n", text.replace(base_url, "http://n8n")))
    try:
        told: Any = json.loads(text)
    except ValueError:
        return text
    if isinstance(told, dict):
        cast("dict[str, Any]", told).pop("headers", None)  # what a client sends of itself
    return cast("Any", told)


@pytest.mark.parametrize("label", RECORDINGS.exchanges)
async def test_a_webhook_answers_as_it_was_recorded(label: str) -> None:
    exchange: RecordedExchange = RECORDINGS.exchanges[label]
    async with instance() as n8n, httpx2.AsyncClient(timeout=30) as client:
        headers = {"content-type": "application/json"} if exchange.body is not None else {}
        if exchange.credential is not None:
            kind = label.rsplit(" ", 1)[0]
            name, right = n8n.headers[kind]
            headers[name] = right if exchange.credential == "right" else WRONG_CREDENTIALS[kind]
        reply = await client.request(
            exchange.method,
            n8n.url + exchange.path,
            content=exchange.body.encode() if exchange.body is not None else None,
            headers=headers,
        )
    assert reply.status_code == exchange.reply.status
    assert reply.headers.get("content-type") == exchange.reply.content_type
    assert reply.headers.get("www-authenticate") == exchange.reply.www_authenticate
    assert plain(reply.content, n8n.url) == plain(exchange.reply.body, RECORDINGS.base_url)


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "said"),
    [
        ("POST", "basic_lookup", {"authorization": "Bearer x"}, 401, "Authorization is required!"),
        ("POST", "basic_lookup", {"authorization": "Basic x"}, 401, "Authorization is required!"),
        ("POST", "jwt_lookup", {"authorization": "x"}, 401, "No token provided"),
        ("POST", "jwt_lookup", {"authorization": "Bearer x"}, 403, "jwt malformed"),
        ("POST", "jwt_lookup", {"authorization": f"Bearer {FORGED}"}, 403, "invalid signature"),
        ("OPTIONS", "get_weather", {}, 204, ""),
        ("HEAD", "get_weather", {}, 404, ""),
        ("POST", "/get_weather", JSON, 404, "is not registered."),
    ],
)  # fmt: skip
async def test_a_webhook_refuses_alike(
    method: str, path: str, headers: dict[str, str], status: int, said: str
) -> None:
    async with instance() as n8n, httpx2.AsyncClient(timeout=30) as client:
        reply = await client.request(method, f"{n8n.url}/webhook/{path}", headers=headers)
    assert (reply.status_code, said in reply.text) == (status, True)
    told = {'Basic realm="Webhook"'} if path.endswith("lookup") else {None}
    assert {reply.headers.get("www-authenticate")} == told


@pytest.mark.parametrize(
    ("content", "kind", "body"),
    [
        ("", "application/json", {}),
        ("null", "application/json", {}),
        ('{"city": "Z\u00fcrich", "n": [1.0]}', "application/json", {"city": "Zürich", "n": [1]}),
        ("a=1&b=2&b=3", "application/x-www-form-urlencoded", {"a": "1", "b": ["2", "3"]}),
        ("hello", "text/plain", "hello"),
    ],
)
async def test_a_webhook_reads_a_body_alike(content: str, kind: str, body: Any) -> None:
    async with instance() as n8n, httpx2.AsyncClient(timeout=30) as client:
        url, headers = f"{n8n.url}/webhook/echo?x=1&x=2", {"content-type": kind}
        told = (await client.post(url, content=content.encode(), headers=headers)).json()
    assert (told["body"], told["query"]) == (body, {"x": ["1", "2"]})


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("workflows?limit=x", 400, "request/query/limit Param `limit` must be a valid integer"),
        ("workflows?cursor=x", 400, "An invalid cursor was provided"),
        (
            "workflows?active=x",
            400,
            "request/query/active Invalid enum value. Expected 'true' | 'false', received 'x'",
        ),
        ("workflows/nowhere", 404, "Not Found"),
        ("nowhere", 404, "not found"),
    ],
)
async def test_the_public_api_refuses_alike(path: str, status: int, said: str) -> None:
    async with instance() as n8n, httpx2.AsyncClient(timeout=30) as client:
        key = {"x-n8n-api-key": n8n.api_key}
        reply = await client.get(f"{n8n.url}/api/v1/{path}", headers=key)
    assert (reply.status_code, reply.json()) == (status, {"message": said})


async def test_an_address_that_n8n_does_not_know_shows_its_editor() -> None:
    async with instance() as n8n, httpx2.AsyncClient(timeout=30) as client:
        page = await client.get(f"{n8n.url}/nowhere/api/v1/workflows")
        assert (page.status_code, page.headers["content-type"]) == (
            200,
            "text/html; charset=utf-8",
        )
        async with N8nTools(f"{n8n.url}/nowhere", api_key=n8n.api_key) as tools:
            with pytest.raises(N8nError, match=r"does not answer like n8n.*check N8N_URL"):
                await tools.discover()


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("search_workflows", {"limit": 0}, "limit: Number must be greater than 0"),
        ("search_workflows", {"sortBy": "x"}, "Expected 'updatedAt:desc' | 'updatedAt:asc' | "),
        ("get_workflow_details", {}, "get_workflow_details: workflowId: Required"),
        ("get_workflow_details", {"workflowId": "x"}, "Workflow not found or you don't have"),
        ("nowhere", {}, "Tool nowhere not found"),
    ],
)
async def test_the_mcp_server_refuses_alike(
    tool: str, arguments: dict[str, Any], said: str
) -> None:
    reply = await asked_by_mcp({"name": tool, "arguments": arguments})
    assert (reply.status_code, reply.headers["content-type"]) == (200, "text/event-stream")
    assert said in reply.text
    assert ("isError" in reply.text) == (tool != "nowhere")


async def test_the_mcp_server_counts_all_workflows_and_not_only_those_it_lists() -> None:
    reply = await asked_by_mcp({"name": "search_workflows", "arguments": {"limit": 1}})
    told = json.loads(reply.text.partition("data: ")[2])["result"]
    assert "isError" not in told
    assert len(told["structuredContent"]["data"]) == 1
    assert told["structuredContent"]["count"] > 20


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"authorization": ""}, 401),
        ({"accept": "application/json"}, 406),
        ({"mcp-protocol-version": "1999-01-01"}, 400),
    ],
)
async def test_the_mcp_server_takes_no_other_headers(changed: dict[str, str], status: int) -> None:
    call = {"name": "search_workflows", "arguments": {"limit": 1}}
    assert (await asked_by_mcp(call, **changed)).status_code == status


async def asked_by_mcp(params: dict[str, Any], **changed: str) -> httpx2.Response:
    async with instance() as n8n, httpx2.AsyncClient(timeout=30) as client:
        headers = {
            "authorization": f"Bearer {n8n.mcp_token}",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2025-06-18",
        }
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        url = f"{n8n.url}/mcp-server/http"
        return await client.post(url, json=call, headers={**headers, **changed})


EXPECTED: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "get_weather": ("POST", "get_weather", "responseNode", {"city": "prose", "days": "prose"}),
    "list_events": ("POST", "list_events", "lastNode", {"day": "prose"}),
    "Convert_Units": (
        "POST",
        "units/convert",
        "lastNode",
        {"value": "param", "from": "param", "to": "param"},
    ),
    "typed_tool": (
        "POST",
        "typed_tool",
        "responseNode",
        {"city": "trigger", "days": "trigger", "opts": "trigger"},
    ),
    "fire_and_forget": ("POST", "fire_and_forget", "onReceived", {}),
    "multi_trigger_multi_a": ("POST", "multi_a", "responseNode", {}),
    "multi_trigger_multi_b": ("POST", "multi_b", "responseNode", {}),
    "echo": ("POST", "echo", "responseNode", {}),
}


@pytest.mark.parametrize("by", ["rest", "mcp"])
async def test_discovery_finds_the_recorded_workflows(by: str) -> None:
    async with instance() as n8n:
        found = await look(n8n, by)
    named = {tool.name: tool for tool in found.tools}
    told = {
        name: (named[name].method, named[name].path, named[name].response_mode) for name in EXPECTED
    }
    assert told == {name: expected[:3] for name, expected in EXPECTED.items()}
    for name, (*_, origins) in EXPECTED.items():
        assert dict(named[name].origins) == origins, name
    assert found.source == by
    assert named["echo"].description == "Echo the raw request.", "published, not the draft"
    reasons = {skipped.title: skipped.reason for skipped in found.skipped}
    assert reasons["hidden_one"] == "not_available_in_mcp"
    assert reasons["open_ticket_form"] == "no_webhook"
    auths = {
        name: named[name].auth_kind for name in ("secure_lookup", "basic_lookup", "jwt_lookup")
    }
    assert list(auths.values()) == ["header", "basic", "jwt"]


async def test_both_apis_make_the_same_tools() -> None:
    async with instance() as n8n:
        rest = {(t.workflow_id, t.node_id): t for t in (await look(n8n, "rest")).tools}
        mcp = {(t.workflow_id, t.node_id): t for t in (await look(n8n, "mcp")).tools}
    assert mcp.keys() <= rest.keys()
    for key, tool in mcp.items():
        assert (tool.path, tool.input_schema, tool.description) == (
            rest[key].path,
            rest[key].input_schema,
            rest[key].description,
        )


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "value"),
    [
        ("get_weather", {"city": "Oslo", "days": 2}, "object",
         {"city": "Oslo", "days": 2, "forecast": "sunny", "high_c": 21}),
        ("all_items", {}, "array", [{"a": 1}, {"a": 2}]),
        ("text_answer", {}, "text", "It is sunny in Paris."),
        ("binary_out", {}, "binary", {"status": "file", "type": "image/png", "bytes": 8}),
        ("get_order", {"orderId": "55", "x": 1}, "object", {"id": "55", "q": {"x": "1"}}),
        ("secure_lookup", {"id": 7}, "object", {"id": 7, "secret": "42"}),
        ("basic_lookup", {}, "object", {"ok": "basic"}),
    ],
)  # fmt: skip
async def test_a_call_gives_the_workflows_value(
    name: str, arguments: dict[str, Any], kind: str, value: Any
) -> None:
    async with instance() as n8n, n8n.tools() as tools:
        await tools.discover()
        result = await tools.call(name, arguments)
    assert (result.kind, result.value) == (kind, value)


async def test_a_streamed_answer_tells_its_steps_and_speaks_its_last() -> None:
    told: list[Progress] = []
    async with instance() as n8n, n8n.tools() as tools:
        await tools.discover()
        result = await tools.call("stream_steps", {}, on_progress=told.append)
    assert (result.value, result.spoken) == ("It is done.", "It is done.")
    assert [progress.step for progress in told if progress.step] == ["Looking at the calendar."]


async def test_a_signed_token_opens_a_webhook_with_jwt_auth() -> None:
    async with instance() as n8n, n8n.tools() as tools:
        await tools.discover()
        assert (await tools.call("jwt_lookup", {})).value["ok"] == "jwt"


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
    async with instance() as n8n, n8n.tools() as tools:
        await tools.discover()
        result = await tools.call(name, {})
    assert (result.kind, result.value["status"]) == (kind, status)


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("fails_respond_node", "workflow_failed", "Upstream CRM said no"),
        ("fails_last_node", "workflow_failed", "Upstream CRM said no"),
        ("zero_items", "workflow_failed", "ended without a result."),
        ("timeout_2s", "workflow_timeout", "took too long and was stopped by n8n."),
        ("fails_handled", "rejected", '"error":"unknown city"'),
    ],
)
async def test_each_failure_has_its_kind_and_its_cause(name: str, kind: str, message: str) -> None:
    async with instance() as n8n, n8n.tools() as tools:
        await tools.discover()
        with pytest.raises(N8nError) as caught:
            await tools.call(name, {"city": "zzz", "run": name})
    assert caught.value.kind == kind
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert " at " not in str(caught.value)


@pytest.mark.parametrize("name", ["secure_lookup", "basic_lookup", "jwt_lookup"])
async def test_without_credentials_a_webhook_refuses(name: str) -> None:
    async with instance() as n8n, N8nTools(n8n.url, api_key=n8n.api_key) as tools:
        await tools.discover()
        with pytest.raises(N8nError) as caught:
            await tools.call(name, {})
    assert caught.value.kind == "auth"


@pytest.mark.parametrize(
    ("credentials", "credential"),
    [({"api_key": "wrong"}, "N8N_API_KEY"), ({"mcp_token": "wrong"}, "N8N_MCP_TOKEN")],
)
async def test_a_wrong_key_is_told_with_its_fix(
    credentials: dict[str, Any], credential: str
) -> None:
    async with instance() as n8n, N8nTools(n8n.url, **credentials) as tools:
        with pytest.raises(N8nError, match=f"n8n refused {credential}") as caught:
            await tools.discover()
    assert caught.value.kind == "unauthorized"


async def test_a_workflow_that_is_not_there_is_not_registered() -> None:
    async with instance() as n8n, httpx2.AsyncClient() as client:
        reply = await client.post(f"{n8n.url}/webhook/nobody-is-here", json={})
    assert reply.status_code == 404
    assert "is not registered" in reply.text
