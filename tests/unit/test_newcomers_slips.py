"""What somebody new types wrongly is answered in one line with the place and the fix."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

import mcp_bridge
from caal_node.cli.app import app
from caal_node.cli.checks.tools import check_mcp
from caal_node.config.settings import load_settings
from caal_node.control.app import serve
from caal_node.core.errors import ConfigError, ToolUnavailable
from caal_node.tools.sources.configured import mcp_tier
from caal_node.toolsets.home_assistant.link import lost
from mcp_bridge.serve.cli import app as serve_app
from tests.conversation import NOWHERE

CONTROL = {
    "LIVEKIT_URL": "ws://127.0.0.1:7880",
    "LIVEKIT_API_KEY": "devkey",
    "LIVEKIT_API_SECRET": "secret",
    "CAAL_CONTROL_TOKEN": "0123456789abcdef",
}


def test_control_at_a_port_or_an_address_that_cannot_be_had_says_so_in_one_line() -> None:
    settings = load_settings(CONTROL, NOWHERE)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ConfigError, match=rf"127.0.0.1, port {port} \(address already in use\)"
        ):
            serve(settings, port=port)
    with pytest.raises(ConfigError, match=r"a number from 0 to 65535\); choose .* --port"):
        serve(settings, port=99_999)
    with pytest.raises(ConfigError, match=r"cannot listen at 192\.0\.2\.1, port 8889"):
        serve(settings, host="192.0.2.1")


def test_control_without_a_token_says_how_to_make_one() -> None:
    settings = load_settings({**CONTROL, "CAAL_CONTROL_TOKEN": ""}, NOWHERE)
    with pytest.raises(ConfigError, match=r"CAAL_CONTROL_TOKEN: not set\. .*openssl rand -hex 32"):
        serve(settings)


@pytest.mark.parametrize(
    ("word", "fix"),
    [
        ("get_time", "one tool: caal-node tools --explain get_time"),
        ("remov", "Did you mean remove?"),
    ],
)
def test_a_tools_name_in_place_of_a_command_of_tools_is_answered_with_the_command(
    word: str, fix: str
) -> None:
    ended = CliRunner().invoke(app, ["tools", word])
    assert ended.exit_code == 2
    said = " ".join(ended.output.replace("│", " ").split())
    assert f"No such command '{word}'." in said
    assert fix in said


async def test_a_file_of_servers_that_was_named_and_is_not_there_is_said(tmp_path: Path) -> None:
    named = tmp_path / "servers.json"
    settings = load_settings({"CAAL_MCP_SERVERS": str(named)}, NOWHERE)
    said = f"{named}: there is no such file"
    [finding] = await check_mcp(settings)
    assert (finding.status, finding.found) == ("fail", said)
    assert finding.fix == "write it, or fix CAAL_MCP_SERVERS"
    tier = mcp_tier(settings, catalogue=None)
    try:
        listing = await tier.discover()
        assert listing.failed["servers.json"].startswith(said)
        named.write_text("{}", encoding="utf-8")
        named.chmod(0o600)
        assert not (await tier.discover()).failed
    finally:
        await tier.aclose()


async def test_the_file_that_nobody_named_need_not_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    [finding] = await check_mcp(load_settings({}, NOWHERE))
    assert finding.status == "ok"


@pytest.mark.parametrize("name", ["mcpservers", "MCPServers", "mcpServer"])
def test_the_key_of_all_servers_in_another_spelling_is_corrected(tmp_path: Path, name: str) -> None:
    file = tmp_path / "mcp_servers.json"
    file.write_text(json.dumps({name: {"time": {"command": "uvx"}}}), encoding="utf-8")
    file.chmod(0o600)
    [server] = mcp_bridge.load_servers(file)
    assert f'rename "{name}" to "mcpServers"' in (server.fault or "")


def test_a_command_that_is_not_there_is_said_before_a_client_connects(tmp_path: Path) -> None:
    for command, options in (("no-such-server", []), ("./server", ["--cwd", str(tmp_path)])):
        ended = CliRunner().invoke(serve_app, ["serve", *options, "--", command])
        assert ended.exit_code == 1
        assert str(ended.exception).startswith(f"the command {command!r} was not found")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ConnectionRefusedError(111, "refused"), "nothing listens at its address"),
        (socket.gaierror(-2, "unknown"), "its host's name is not known here"),
    ],
)
def test_a_home_assistant_that_is_away_is_said_without_the_names_of_exceptions(
    error: OSError, why: str
) -> None:
    failure = lost(error)
    assert isinstance(failure, ToolUnavailable)
    assert str(failure) == f"Home Assistant cannot be reached: {why}"
