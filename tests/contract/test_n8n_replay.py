"""The replay gives what was recorded: status, content type and body, byte for byte."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.recorded_n8n import WRONG_CREDENTIALS, RecordedN8n
from tests.recorded_n8n.expressions import EXPRESSIONS
from tests.recorded_n8n.recordings import RecordedExchange, load_recordings
from tests.stand_ins.raw_http import RawReply, ask

RECORDINGS = load_recordings()


async def replay(recorded: RecordedN8n, exchange: RecordedExchange) -> RawReply:
    headers = list(exchange.headers or [("host", "127.0.0.1:5678")])
    body = (exchange.body or "").encode()
    if exchange.headers is None and exchange.body is not None:
        headers += [("content-type", "application/json"), ("content-length", str(len(body)))]
    if exchange.credential is not None:
        kind = exchange.label.rsplit(" ", 1)[0]
        name, value = recorded.webhook_headers[kind]
        headers.append((name, value if exchange.credential == "right" else WRONG_CREDENTIALS[kind]))
    port = urlsplit(recorded.base_url).port
    assert port is not None
    return await ask(port, exchange.method, exchange.path, headers, body)


@pytest.mark.parametrize("label", RECORDINGS.exchanges)
async def test_a_recorded_request_gets_its_recorded_reply(label: str) -> None:
    exchange = RECORDINGS.exchanges[label]
    async with RecordedN8n() as recorded:
        got = await replay(recorded, exchange)
        body = got.body.replace(recorded.base_url.encode(), RECORDINGS.base_url.encode())
    assert got.status == exchange.reply.status
    assert got.headers.get("content-type") == exchange.reply.content_type
    assert got.headers.get("www-authenticate") == exchange.reply.www_authenticate
    assert body == exchange.reply.body


def test_every_computed_reply_is_the_expression_of_a_recorded_node() -> None:
    sources = [
        text
        for workflow in RECORDINGS.workflows
        if workflow["rest"] is not None
        for node in workflow["rest"]["activeVersion"]["nodes"]
        for text in node["parameters"].values()
        if isinstance(text, str)
    ]
    for path, expression in EXPRESSIONS.items():
        assert any(expression.source in text for text in sources), path


async def test_another_city_gets_what_the_recorded_workflow_would_answer() -> None:
    async with RecordedN8n() as recorded, httpx2.AsyncClient() as client:
        url = f"{recorded.base_url}/webhook/get_weather"
        oslo = await client.post(url, json={"city": "Ålesund", "days": 5})
        assert oslo.text == '{"city":"Ålesund","days":5,"forecast":"sunny","high_c":21}'


async def test_a_webhook_that_was_not_recorded_says_so() -> None:
    async with RecordedN8n() as recorded, httpx2.AsyncClient() as client:
        reply = await client.post(f"{recorded.base_url}/webhook/very_slow", json={})
        assert (reply.status_code, reply.text) == (501, "This webhook was not recorded.")


async def test_an_inactive_workflow_answers_like_an_unknown_one() -> None:
    async with RecordedN8n(active=["echo"]) as recorded, httpx2.AsyncClient() as client:
        url = f"{recorded.base_url}/webhook/get_weather"
        off = await client.post(url, json={"city": "Paris"})
        assert off.status_code == 404
        assert '"POST get_weather\\" is not registered' in off.text
        recorded.activate("get_weather")
        assert (await client.post(url, json={"city": "Paris"})).status_code == 200


async def test_the_public_api_gives_the_recorded_workflows_page_by_page() -> None:
    told = [w["rest"] for w in RECORDINGS.workflows if w["rest"] is not None]
    async with RecordedN8n() as recorded, httpx2.AsyncClient() as client:
        client.headers["x-n8n-api-key"] = recorded.api_key
        url = f"{recorded.base_url}/api/v1/workflows"
        whole = await client.get(url, params={"limit": "250"})
        assert (
            whole.content
            == json.dumps(
                {"data": told, "nextCursor": None}, ensure_ascii=False, separators=(",", ":")
            ).encode()
        )
        listed, cursor = [], ""
        while cursor is not None:
            query = {"limit": "7", **({"cursor": cursor} if cursor else {})}
            page = (await client.get(url, params=query)).json()
            listed += page["data"]
            cursor = page["nextCursor"]
        assert listed == told


@pytest.mark.parametrize("protocol", ["2025-06-18", "2026-07-28"])
async def test_the_mcp_server_gives_the_recorded_details(protocol: str) -> None:
    workflow = next(
        w["mcp"] for w in RECORDINGS.workflows if w["mcp"]["preview"]["name"] == "get_weather"
    )
    call = {
        "jsonrpc": "2.0",
        "id": 9,
        "method": "tools/call",
        "params": {
            "name": "get_workflow_details",
            "arguments": {"workflowId": workflow["preview"]["id"]},
        },
    }
    async with RecordedN8n() as recorded, httpx2.AsyncClient() as client:
        headers = {
            "authorization": f"Bearer {recorded.mcp_token}",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": protocol,
        }
        url = f"{recorded.base_url}/mcp-server/http"
        reply = await client.post(url, json=call, headers=headers)
    text = reply.text
    if protocol < "2026":
        assert reply.headers["content-type"] == "text/event-stream"
        text = text.removeprefix("event: message\ndata: ")
    message = json.loads(text)
    assert message["id"] == 9
    assert message["result"]["structuredContent"] == workflow["details"]
    assert json.loads(message["result"]["content"][0]["text"]) == workflow["details"]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/api/v1/workflows", {}, 401),
        ("/api/v1/workflows", {"x-n8n-api-key": "no"}, 401),
        ("/api/v1/nowhere", {}, 404),
        ("/webhook/nowhere", {}, 404),
    ],
)
async def test_refusals_have_their_status(path: str, headers: dict[str, str], status: int) -> None:
    async with RecordedN8n() as recorded, httpx2.AsyncClient() as client:
        assert (await client.get(recorded.base_url + path, headers=headers)).status_code == status


def test_a_name_that_was_not_recorded_is_refused() -> None:
    with pytest.raises(KeyError, match="launch_rocket"):
        RecordedN8n(active=["launch_rocket"])


async def test_closing_ends_a_request_that_is_held() -> None:
    async with httpx2.AsyncClient() as client, RecordedN8n() as recorded:
        with recorded.hold("echo") as held:
            url = f"{recorded.base_url}/webhook/echo"
            asked = asyncio.create_task(client.post(url, json={}))
            await held.reached.wait()
            await recorded.aclose()
            with pytest.raises(httpx2.TransportError):
                await asked
