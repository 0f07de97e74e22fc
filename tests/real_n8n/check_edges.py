"""What the unit tests hold of n8n's own words, seen on a real n8n.

Run by `make test-n8n` alone.
"""

from __future__ import annotations

import os

import pytest

from n8n import N8nError, N8nTools


def opened() -> N8nTools:
    return N8nTools(os.environ["N8N_TEST_URL"], api_key=os.environ["N8N_TEST_API_KEY"])


@pytest.mark.parametrize(
    ("name", "kind", "message", "fix"),
    [
        ("edge_fails", "workflow_failed", "The database is down", "fix its node Stop"),
        ("edge_mute", "workflow_failed", "no node that answers", "add a Respond to Webhook node"),
        ("edge_no_item", "workflow_failed", "ended without a result", "always output data"),
        ("edge_stream_fails", "workflow_failed", "The database is down", "fix its node Stop"),
        ("edge_bots", "auth", "refused this assistant", "Ignore Bots"),
        ("edge_list", "auth", "this assistant's machine", "Allowlist"),
    ],
)
async def test_n8ns_own_words_are_never_heard(name: str, kind: str, message: str, fix: str) -> None:
    async with opened() as tools:
        await tools.discover()
        with pytest.raises(N8nError) as caught:
            await tools.call(name, {})
    assert (caught.value.kind, caught.value.spoken) == (kind, None)
    assert message in str(caught.value)
    assert fix in (caught.value.fix or "")


async def test_of_several_methods_the_one_that_leads_somewhere_is_used() -> None:
    async with opened() as tools:
        found = {tool.name: tool.method for tool in (await tools.discover()).tools}
        assert found["edge_several"] == "GET"
        assert (await tools.call("edge_several", {"a": "1"})).value == {"query": {"a": "1"}}


async def test_a_workflow_that_would_turn_us_away_is_found_by_the_check() -> None:
    async with opened() as tools:
        await tools.discover()
        errors = {f.workflow for f in await tools.lint() if f.level == "error"}
    assert {"edge_bots", "edge_mute"} <= errors
