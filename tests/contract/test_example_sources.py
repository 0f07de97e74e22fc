"""Example utterances reach the agent from every place where an author may write them."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from livekit.agents import function_tool
from typer.testing import CliRunner

from caal_node.agent import CaalAgent
from caal_node.cli.app import app
from caal_node.config.settings import load_settings
from caal_node.core.tool_spec import Example
from tests.recorded_n8n.loopback import LoopbackRequest, LoopbackResponse, LoopbackServer


class Kitchen(CaalAgent):
    @function_tool
    async def set_timer(self, minutes: float) -> str:
        """Start a timer.

        Example: ten minutes for the pasta -> {"minutes": 10}
        """
        return f"{minutes}"


WORKFLOW = {
    "id": "w1",
    "name": "forecast",
    "active": True,
    "createdAt": "2026-01-01T00:00:00Z",
    "updatedAt": "2026",
    "versionId": "v",
    "activeVersionId": "v",
    "nodes": [
        {
            "id": "n1",
            "name": "Webhook",
            "type": "n8n-nodes-base.webhook",
            "webhookId": "h1",
            "notes": "Forecast. Parameters: city (required).\n"
            'Example: rain in Oslo -> {"city": "Oslo"}',
            "parameters": {"httpMethod": "POST", "path": "p1", "responseMode": "lastNode"},
        }
    ],
}


@asynccontextmanager
async def n8n_with_notes() -> AsyncGenerator[str]:
    async def answer(request: LoopbackRequest) -> LoopbackResponse:
        found = [WORKFLOW] if request.path.endswith("/workflows") else []
        return LoopbackResponse(200, json.dumps({"data": found, "nextCursor": None}).encode())

    server = LoopbackServer(answer)
    try:
        yield f"http://127.0.0.1:{await server.start(0)}"
    finally:
        await server.aclose()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything that is a file, written before there is an event loop."""
    monkeypatch.setenv("CAAL_STATE", str(tmp_path))
    example = {"say": "what time is it in Tokyo", "arguments": {"timezone": "Asia/Tokyo"}}
    server = {
        "command": sys.executable,
        "args": ["-m", "mcp_server_time"],
        "connect_timeout": 60,
        "examples": {"get_current_time": [example]},
    }
    (tmp_path / "servers.json").write_text(json.dumps({"time": server}))
    arguments = '{source_timezone = "UTC", time = "05:00", target_timezone = "Europe/Rome"}'
    said = f'say = "five here is what in Rome"\narguments = {arguments}\n'
    (tmp_path / "caal.toml").write_text(f"[[examples.time__convert_time]]\n{said}")
    return tmp_path


@pytest.mark.usefixtures("servers_may_start_slowly")
async def test_docstring_notes_server_file_and_settings_are_all_read(folder: Path) -> None:
    async with n8n_with_notes() as url:
        env = {
            "N8N_URL": url,
            "N8N_API_KEY": "key",
            "CAAL_MCP_SERVERS": str(folder / "servers.json"),
        }
        agent = Kitchen(settings=load_settings(env, folder / "caal.toml"))
        try:
            await agent.reload_tools()
            assert not agent.failed
            shown = agent.examples()
        finally:
            await agent.close_tools()
    assert shown.get("forecast") == (Example("rain in Oslo", {"city": "Oslo"}),)
    assert shown["set_timer"] == (Example("ten minutes for the pasta", {"minutes": 10}),)
    assert shown["time__get_current_time"] == (
        Example("what time is it in Tokyo", {"timezone": "Asia/Tokyo"}),
    )
    (converted,) = shown["time__convert_time"]
    assert converted.utterance == "five here is what in Rome"
    assert converted.arguments["target_timezone"] == "Europe/Rome"


def test_the_removed_option_says_where_examples_are_written() -> None:
    ran = CliRunner().invoke(app, ["tools", "--make-examples"])
    assert ran.exit_code == 2
    assert "--make-examples was removed" in ran.output
    assert "Example: words -> {arguments}" in ran.output
    assert "[examples] in caal.toml" in ran.output
