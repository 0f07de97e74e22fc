"""The demo's n8n answers as the recorded one did, and for other cities as its workflow would."""

from __future__ import annotations

import json

import httpx2

from caal_node.cli.demo.servers import WORKFLOW, ReplayedN8n
from n8n import N8nTools
from tests.recorded_n8n.recordings import load_recordings


async def test_the_workflow_is_found_and_called() -> None:
    async with (
        ReplayedN8n() as replay,
        N8nTools(replay.base_url, api_key=replay.api_key) as n8n,
    ):
        found = await n8n.discover()
        assert [tool.name for tool in found.tools] == [WORKFLOW]
        assert found.skipped == ()
        result = await n8n.call(WORKFLOW, {"city": "Ålesund", "days": 5})
        assert result.value == {"city": "Ålesund", "days": 5, "forecast": "sunny", "high_c": 21}


async def test_it_tells_and_answers_what_was_recorded() -> None:
    recordings = load_recordings()
    exchange = recordings.exchanges["ok first"]
    async with ReplayedN8n() as replay, httpx2.AsyncClient() as client:
        listed = (await client.get(f"{replay.base_url}/api/v1/workflows")).json()
        assert listed["data"][0] in [workflow["rest"] for workflow in recordings.workflows]
        reply = await client.post(replay.base_url + exchange.path, content=exchange.body)
        assert (reply.status_code, reply.content) == (exchange.reply.status, exchange.reply.body)
        assert reply.headers["content-type"] == exchange.reply.content_type
        refused = await client.post(replay.base_url + exchange.path, content="{")
        assert (refused.status_code, json.loads(refused.content)["code"]) == (422, 0)
