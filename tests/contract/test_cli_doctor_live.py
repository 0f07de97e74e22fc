"""Doctor against what really runs: LiveKit, an MCP server, a replayed n8n, a real Ollama."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tzlocal.unix
from pydantic import SecretStr

from caal_node.cli.checks import Finding
from caal_node.cli.checks.model import check_model
from caal_node.cli.checks.room_and_sound import check_livekit, livekit_away
from caal_node.cli.checks.tools import check_mcp, check_n8n, check_toolsets, n8n_finding
from caal_node.config.settings import Settings, load_settings
from caal_node.core.errors import ConfigError
from n8n import Discovery, check
from tests.recorded_n8n import RecordedN8n
from tests.stand_ins.livekit_server import LiveKit

pytestmark = pytest.mark.long

if TYPE_CHECKING:  # pytest imports it as a plugin
    from tests.fixtures_models import OllamaModels


def keys(livekit: LiveKit, **other: str) -> Settings:
    given = {"url": livekit.url, "key": livekit.key, "secret": livekit.secret} | other
    return Settings(
        livekit_url=given["url"],
        livekit_api_key=given["key"],
        livekit_api_secret=SecretStr(given["secret"]),
        control_token=SecretStr("0123456789abcdef"),
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.livekit
async def test_livekit_with_its_keys_is_in_order(livekit: LiveKit) -> None:
    room, control = await check_livekit(keys(livekit))
    assert (room.status, control.status) == ("ok", "ok")
    assert "open room" in room.found


@pytest.mark.livekit
async def test_livekit_with_other_keys_or_elsewhere_fails(livekit: LiveKit) -> None:
    [check] = await check_livekit(keys(livekit, secret="x" * 40))
    assert check.status == "fail"
    assert "LIVEKIT_API_SECRET" in check.fix
    [check] = await check_livekit(keys(livekit, url=f"ws://127.0.0.1:{free_port()}"))
    assert check.status == "fail"
    assert "LIVEKIT_URL" in check.fix


@pytest.mark.livekit
async def test_a_worker_is_told_whether_its_server_is_away_or_refuses_it(livekit: LiveKit) -> None:
    assert await livekit_away(keys(livekit)) is None
    away = await livekit_away(keys(livekit, url=f"ws://127.0.0.1:{free_port()}"))
    assert away is not None
    assert "check LIVEKIT_URL" in away
    with pytest.raises(ConfigError, match="refused the keys; check LIVEKIT_API_KEY"):
        await livekit_away(keys(livekit, secret="w" * 32))


@pytest.mark.livekit
async def test_a_server_that_is_no_livekit_fails(livekit: LiveKit) -> None:
    async with RecordedN8n() as other:
        [check] = await check_livekit(keys(livekit, url=other.base_url))
    assert check.status == "fail"


async def test_n8n_is_looked_at_with_either_key() -> None:
    async with RecordedN8n() as r:
        [by_key] = await check_n8n(Settings(n8n_url=r.base_url, n8n_api_key=SecretStr(r.api_key)))
        [by_token] = await check_n8n(
            Settings(n8n_url=r.base_url, n8n_mcp_token=SecretStr(r.mcp_token))
        )
    assert by_key.status != "fail"
    assert by_token.status != "fail"
    assert " tools" in by_key.found


async def test_credentials_that_cannot_be_read_or_fit_no_workflow_are_found(
    tmp_path: Path,
) -> None:
    async with RecordedN8n() as r:

        def settings(entry: str, value: str) -> Settings:
            file = tmp_path / "caal.toml"
            file.write_text(f'[n8n_auth.{entry}]\nheader = "X-Key"\nvalue = "{value}"\n')
            return load_settings({"N8N_URL": r.base_url, "N8N_API_KEY": r.api_key}, file)

        async def found(entry: str) -> list[Finding]:
            [unread] = await check_n8n(settings(entry, "${NO_SUCH_KEY}"))
            assert (unread.status, unread.found) == (
                "fail",
                f"n8n_auth, {entry}: the variable NO_SUCH_KEY is not set",
            )
            assert "write it into .env" in unread.fix
            return [*await check_n8n(settings(entry, "secret"))]

        assert len(await found("secure_lookup")) == 1
        [_, idle] = await found("secure_lokup")
    assert (idle.status, idle.found) == ("warn", "n8n_auth.secure_lokup fits no workflow")
    assert idle.fix.startswith("Did you mean secure_lookup?")


def test_a_fault_in_a_workflows_notes_is_told_with_its_workflow_and_the_next_command() -> None:
    hook = {"name": "Webhook", "type": "n8n-nodes-base.webhook", "webhookId": "w"}
    hook |= {"parameters": {"httpMethod": "POST", "path": "forecast"}}
    hook |= {"notes": 'Tells it.\n---schema\n{"city": "string",}\n---'}
    tools = check([{"name": "Forecast", "nodes": [hook]}]).tools
    found = n8n_finding(Settings(n8n_url="http://n8n:5678"), Discovery(tools * 2, (), "rest", 1))
    assert found.status == "warn"
    assert "Forecast: line 3: the ---schema block: it is not JSON" in found.found
    assert found.found.endswith("comma too many? and 1 more")
    assert found.fix == "See all of them: caal-node n8n check --instance"


async def test_a_service_that_is_away_is_not_answered_with_setting_it_up(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    table = f'[toolsets.home_assistant]\nurl = "{url}"\ntoken = "t"\n'
    (tmp_path / "caal.toml").write_text(table, encoding="utf-8")
    [away] = await check_toolsets(load_settings({}, tmp_path / "caal.toml"))
    assert (away.status, away.fix) == (
        "fail",
        "See whether it is on, and can be reached from here.",
    )
    (tmp_path / "caal.toml").write_text("[toolsets.home_assistant]\n", encoding="utf-8")
    [unset] = await check_toolsets(load_settings({}, tmp_path / "caal.toml"))
    assert (unset.status, unset.fix) == ("fail", "Run: caal-node tools add home_assistant")


async def test_a_time_zone_that_there_is_not_is_told_once_with_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Mars/Olympus")
    monkeypatch.setattr(tzlocal.unix, "_cache_tz", None)  # it is read once in a process
    (tmp_path / "caal.toml").write_text("[toolsets.timers]\n[toolsets.lists]\n")
    [wrong] = await check_toolsets(load_settings({}, tmp_path / "caal.toml"))
    assert wrong.status == "fail"
    assert wrong.found.startswith("TZ: Mars/Olympus is no time zone")
    (tmp_path / "caal.toml").write_text("")
    assert await check_toolsets(load_settings({}, tmp_path / "caal.toml")) == []


async def test_n8n_with_a_wrong_token_no_token_or_elsewhere_fails() -> None:
    async def found(**settings: str) -> Finding:
        secrets = {k: SecretStr(v) for k, v in settings.items() if k != "n8n_url"}
        [check] = await check_n8n(Settings(n8n_url=settings["n8n_url"], **secrets))  # type: ignore[arg-type]
        assert check.status == "fail"
        return check

    async with RecordedN8n() as r:
        refused = await found(n8n_url=r.base_url, n8n_api_key="wrong")
        assert "refused N8N_API_KEY" in refused.found
        assert "make a new one" in refused.fix
        assert "N8N_API_KEY" in (await found(n8n_url=r.base_url)).found
    nobody = await found(n8n_url=f"http://127.0.0.1:{free_port()}", n8n_api_key="k")
    assert "cannot be reached" in nobody.found
    assert "N8N_URL" in nobody.fix


async def test_mcp_servers_are_told_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "mcp_servers.json"
    servers = {
        "time": {
            "command": sys.executable,
            "args": ["-m", "mcp_server_time"],
            "connect_timeout": 60,
        },
        "broken": {"command": sys.executable, "args": ["-c", "raise SystemExit('no licence')"]},
        "off": {"command": "x", "enabled": False},
        "unset": {
            "command": "x",
            "auto_enable": "if_match",
            "enable_if": {"env_set": "CAAL_NO_SUCH_VARIABLE"},
        },
    }
    servers["broken"]["allow"] = ["eval"]
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    checks = {check.name: check for check in await check_mcp(Settings(mcp_servers=path))}
    assert checks["mcp time"].status == "ok"
    assert checks["mcp time"].found.startswith("2 tools over stdio (ready, connected in ")
    assert "MCP 20" in checks["mcp time"].found, "the version that is spoken"
    assert checks["mcp broken"].status == "fail"
    assert checks["mcp broken"].found.startswith("down, over stdio: exited with code 1: no licence")
    assert checks["mcp broken"].fix
    assert checks["mcp off"].found.startswith("off: ")
    assert "CAAL_NO_SUCH_VARIABLE is not set" in checks["mcp unset"].found


@pytest.mark.ollama
async def test_a_real_ollama_says_what_its_models_can(ollama: OllamaModels) -> None:
    server, able = await check_model(Settings(ollama_host=ollama.url, model=ollama.with_tools))
    assert (server.status, able.status) == ("ok", "ok")
    _, unable = await check_model(Settings(ollama_host=ollama.url, model=ollama.without_tools))
    assert unable.status == "warn"
    _, absent = await check_model(Settings(ollama_host=ollama.url, model="no-such-model"))
    assert absent.status == "fail"
    by_v1 = Settings(ollama_host=ollama.url, model=f"{ollama.with_tools}:latest", api="openai")
    assert [check.status for check in await check_model(by_v1)] == ["ok", "ok"]
