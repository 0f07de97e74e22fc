"""A package runner may have to download a server: that is waited for, and whoever asks is told."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import mcp_bridge
from caal_node.cli import tools
from caal_node.cli.checks import tools as checks
from caal_node.config.settings import Settings
from caal_node.core.errors import ToolStarting
from caal_node.core.prompt_files import sentence
from caal_node.tools.sources import mcp as mcp_source
from caal_node.tools.sources.mcp import McpToolSource
from mcp_bridge import (
    Catalogue,
    Limits,
    ServerConfig,
    ServerManager,
    ServerStarting,
    ServerUnavailable,
)
from mcp_bridge.security.programs import package_runner

pytestmark = pytest.mark.long

RUNNER = """#!{python}
import pathlib, runpy, sys, time
while not pathlib.Path("{here}").exists():
    time.sleep(0.02)
sys.argv = ["mcp-server-time"]
runpy.run_module("mcp_server_time", run_name="__main__")
"""
"""Downloads, which takes until a file is there, and then runs the server."""
WORDS = "is being started for the first time; npx may still be downloading it"
CONFIG = ServerConfig("clock", command="npx", args=("-y", "some-clock"))
LIMITS = Limits(connect_timeout_s=0.5, first_start_s=60)
NOW = {"timezone": "Asia/Tokyo"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that ends the download."""
    folder, here = tmp_path / "bin", tmp_path / "here"
    folder.mkdir()
    text = RUNNER.replace("{python}", sys.executable).replace("{here}", str(here))
    (folder / "npx").write_text(text, encoding="utf-8")
    (folder / "npx").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return here


def downloaded(here: Path, is_here: bool = True) -> None:
    here.touch() if is_here else here.unlink()


async def until(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not true():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


async def test_a_download_is_waited_for_and_told_of(
    here: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ServerManager([CONFIG], limits=LIMITS, ready_s=0.1) as manager:
        await until(lambda: WORDS in manager.failed["clock"])
        (status,) = manager.servers
        assert (status.state, status.error) == ("starting", None)
        assert WORDS in status.notes[0]
        assert f"clock: {WORDS}" in caplog.text
        downloaded(here)
        async with asyncio.timeout(30):
            while not await manager.list_tools():  # noqa: ASYNC110 - they come a moment after the connection
                await asyncio.sleep(0.02)
        assert (manager.servers[0].state, manager.failed) == ("ready", {})
        result = await manager.call_tool("clock__get_current_time", NOW)
        assert "Asia/Tokyo" in str(result.value)


async def test_who_calls_meanwhile_is_told_at_once_and_the_download_goes_on(
    here: Path, tmp_path: Path
) -> None:
    catalogue = Catalogue(tmp_path / "catalogue")
    downloaded(here)
    async with ServerManager(
        [CONFIG], limits=LIMITS, catalogue=catalogue, connect_timeout_s=30
    ) as manager:
        assert await manager.list_tools()
    downloaded(here, False)
    async with ServerManager([CONFIG], limits=LIMITS, catalogue=catalogue) as manager:
        assert manager.servers[0].state == "idle"
        with pytest.raises(ServerStarting, match="try again in a minute"):
            await manager.call_tool("clock__get_current_time", NOW)
        began = time.monotonic()
        for _ in range(LIMITS.failures + 1):  # it is no failure that a breaker counts
            with pytest.raises(ServerStarting):
                await manager.call_tool("clock__get_current_time", NOW)
        assert time.monotonic() - began < LIMITS.connect_timeout_s
        downloaded(here)
        await until(lambda: not manager.failed)
        result = await manager.call_tool("clock__get_current_time", NOW)
        assert "Asia/Tokyo" in str(result.value)


async def test_a_deadline_of_the_entry_s_own_counts_for_the_first_start_too(here: Path) -> None:
    config = ServerConfig("clock", command="npx", args=("-y", "x"), connect_timeout_s=3)
    async with ServerManager([config], limits=LIMITS) as manager:
        assert "was not ready within 3 s" in manager.failed["clock"]


async def test_a_download_that_never_ends_is_given_up_and_said(here: Path) -> None:
    limits = Limits(connect_timeout_s=3, first_start_s=3.5, retries=0)
    async with ServerManager([CONFIG], limits=limits) as manager:
        assert "was not ready within 3.5 s" in manager.failed["clock"]
        assert manager.servers[0].state == "down"


async def test_doctor_warns_of_it_and_does_not_fail(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAAL_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(checks, "FIRST_START_S", 11.0)
    file = tmp_path / "mcp_servers.json"
    file.write_text(json.dumps({"clock": {"command": "npx", "args": ["-y", "some-clock"]}}))
    (finding,) = await checks.check_mcp(Settings(mcp_servers=file))
    assert (finding.name, finding.status) == ("mcp clock", "warn")
    assert WORDS in finding.found


async def test_the_model_and_the_person_are_told(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = partial(ServerManager, connect_timeout_s=LIMITS.connect_timeout_s)
    monkeypatch.setattr(mcp_bridge, "ServerManager", impatient)
    file, catalogue = tmp_path / "mcp_servers.json", tmp_path / "catalogue"
    file.write_text(json.dumps({"clock": {"command": "npx", "args": ["-y", "some-clock"]}}))

    def source() -> McpToolSource:
        return McpToolSource(file, call_timeout_s=5, tool_tokens=0, catalogue=catalogue)

    downloaded(here)
    first = source()
    await first.discover()
    await until(lambda: first.servers[0].state == "ready")
    await first.aclose()
    downloaded(here, False)
    again = source()
    try:
        listing = await again.discover()
        spec = next(spec for spec in listing.specs if "current" in spec.name)
        with pytest.raises(ToolStarting, match=WORDS) as caught:
            await again.call(spec, NOW)
        assert "still setting that service up" in sentence(caught.value.spoken)
    finally:
        await again.aclose()


async def test_the_list_of_tools_waits_for_it_and_says_so(
    here: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CAAL_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("CAAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(mcp_source, "READY_S", 0.1)
    file = tmp_path / "mcp_servers.json"
    file.write_text(json.dumps({"clock": {"command": "npx", "args": ["-y", "some-clock"]}}))
    settings = Settings(mcp_servers=file, base_url="http://127.0.0.1:9")
    listing = asyncio.create_task(tools.list_tools(settings, None, as_json=True))
    words = ""

    def told() -> bool:
        nonlocal words
        words += capsys.readouterr().err
        return listing.done() or "clock: still starting; a first start may have to down" in words

    await until(told)
    assert not listing.done()
    downloaded(here)
    await asyncio.wait_for(listing, 60)
    found = json.loads(capsys.readouterr().out)
    assert "clock__get_current_time" in [tool["name"] for tool in found["tools"]]
    assert (found["servers"][0]["state"], found["failed"]) == ("ready", {})


@pytest.mark.parametrize(
    ("command", "runner"),
    [
        ("npx -y x", "npx"),
        ("/usr/bin/npx.cmd x", "npx"),
        ("uvx x", "uvx"),
        ("docker run -i --rm x", "docker"),
        ("cmd /c npx -y x", "npx"),
        ("python -m x", ""),
        ("github-mcp-server stdio", ""),
    ],
)
def test_what_may_have_to_download_is_known(command: str, runner: str) -> None:
    first, *args = command.split()
    assert package_runner(first, args) == runner


def test_a_server_that_starts_is_unavailable_to_who_knows_no_better() -> None:
    assert issubclass(ServerStarting, ServerUnavailable)
