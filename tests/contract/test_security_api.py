"""Nobody says what is started but the owner of the file: not the API, and not the model."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
import typer
from pydantic import BaseModel

from caal_node.cli.tools import accept_changed_tools
from caal_node.config.settings import load_settings
from caal_node.control import messages, rpc
from caal_node.control.app import make_app
from caal_node.core import paths
from caal_node.core.errors import ConfigError
from caal_node.tools.sources.mcp import McpToolSource
from mcp_bridge import Pins, ServerConfig
from mcp_bridge.core.tools import ToolDefinition
from tests.stand_ins.fake_rooms import FakeRooms

TOKEN = "-".join(["a", "long", "random", "token"])
STARTS = {
    "command": "sh",
    "args": ["-c", "touch x"],
    "env": {"A": "b"},
    "cwd": "/",
    "url": "http://x",
    "headers": {"A": "b"},
    "token": "t",
    "mcp_servers": {},
    "mcpServers": {},
    "servers": [],
    "allow": ["eval"],
}
"""What decides in a file of servers what is started or reached."""


def bodies() -> dict[str, dict[str, Any]]:
    app = make_app(load_settings({"CAAL_CONTROL_TOKEN": TOKEN}), FakeRooms({"a": ["agent"]}))
    return {
        f"{verb} {path}": told["requestBody"]["content"]["application/json"]["schema"]
        for path, verbs in app.openapi()["paths"].items()
        for verb, told in verbs.items()
        if "requestBody" in told
    }


def test_no_body_of_the_api_has_such_a_field_or_takes_unknown_ones() -> None:
    found = bodies()
    assert len(found) >= 4
    for where, schema in found.items():
        assert schema["additionalProperties"] is False, where
        assert not schema["properties"].keys() & STARTS.keys(), where


@pytest.mark.parametrize("field", STARTS)
@pytest.mark.parametrize("path", ["/reload-tools", "/model", "/api/tools", "/api/tools/search"])
async def test_a_body_with_such_a_field_is_refused_before_a_room_hears_of_it(
    path: str, field: str
) -> None:
    rooms = FakeRooms({"kitchen": ["agent"]})
    app = make_app(load_settings({"CAAL_CONTROL_TOKEN": TOKEN}), rooms)
    least = {
        "/model": {"model": "m"},
        "/api/tools": {"name": "t"},
        "/api/tools/search": {"query": "q"},
    }.get(path, {})
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app), base_url="http://control"
    ) as http:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        response = await http.post(path, json={**least, field: STARTS[field]}, headers=headers)
    assert response.status_code == 422
    assert f"no field '{field}'" in response.text
    assert rooms.asked == []


def test_what_goes_from_process_to_process_has_no_such_field() -> None:
    kinds = [kind for module in (messages, rpc) for kind in vars(module).values()]
    asked = [k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)]
    assert len(asked) > 10
    for kind in asked:
        assert not kind.model_fields.keys() & STARTS.keys(), kind


async def test_what_a_model_writes_reaches_a_server_as_arguments_and_nothing_else(
    tmp_path: Path,
) -> None:
    hostile = Path(__file__).parents[1] / "stand_ins" / "hostile_mcp_server.py"
    (tmp_path / "tools.json").write_text('[{"name": "run", "inputSchema": {"type": "object"}}]')
    entry = {
        "command": sys.executable,
        "args": ["-I", "-S", str(hostile), str(tmp_path / "tools.json")],
    }
    file = tmp_path / "mcp_servers.json"
    file.write_text(json.dumps({"bad": entry}))
    tier = McpToolSource(file, call_timeout_s=20, ready_s=20)
    try:
        (spec,) = (await tier.discover()).specs
        proof = tmp_path / "proof"
        wanted = {"command": "touch", "args": [str(proof)], "env": {"BASH_ENV": "x"}}
        answer = await tier.call(spec, wanted)
        assert answer["arguments"] == wanted
        assert "BASH_ENV" not in answer["env"]
        assert not proof.exists()
        assert (await tier.discover()).failed == {}
        assert not proof.exists()
    finally:
        await tier.aclose()


def learn(*words: str) -> None:
    """Have the tool `read` of a server described in these words, one time after the other."""
    config = ServerConfig(name="files", command="x")
    for said in words:
        pins = Pins(paths.tool_pins())
        pins.read([config])
        pins.vet(config, [ToolDefinition("read", said, {})])
        pins.write()


async def test_what_is_accepted_in_a_terminal_is_read_and_agreed_to_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await asyncio.to_thread(learn, "Reads.", "Reads and sends.")
    waits = await asyncio.to_thread(Pins(paths.tool_pins()).waiting)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)

    def declined(question: str) -> bool:
        assert "it says: Reads and sends." in capsys.readouterr().out
        return False

    monkeypatch.setattr(typer, "confirm", declined)
    await accept_changed_tools("files")
    assert "Nothing was accepted." in capsys.readouterr().out
    assert await asyncio.to_thread(Pins(paths.tool_pins()).waiting) == waits

    shown = await asyncio.to_thread(Pins(paths.tool_pins()).changes, "files")
    await asyncio.to_thread(learn, "Reads, sends and deletes.")
    with pytest.raises(ValueError, match="has changed meanwhile; look again"):
        await asyncio.to_thread(Pins(paths.tool_pins()).accept, "files", shown)
    assert await asyncio.to_thread(Pins(paths.tool_pins()).waiting) == waits


async def test_accepting_prints_both_wordings_and_names_what_waits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    await asyncio.to_thread(learn, "Reads.", "Reads [bold]and sends.")
    with pytest.raises(ConfigError, match=r"no tool of 'mail' waits .* what waits: files__read"):
        await accept_changed_tools("mail")
    await accept_changed_tools("files")
    said = capsys.readouterr().out
    assert "Accepted it." in said
    assert "it said: Reads." in said
    assert "it says: Reads [bold]and sends." in said
    with pytest.raises(ConfigError, match="no tool waits"):
        await accept_changed_tools("files")
