"""Servers that the catalogue knows are connected when they are needed, and not before."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from caal_node.tools.source import ToolListing
from caal_node.tools.sources.mcp import McpToolSource
from mcp_bridge import Catalogue, ServerManager, ServerUnavailable, UnknownTool
from mcp_bridge.core.tools import ToolDefinition
from tests.stand_ins.mcp_events import Events, events, sdk_server

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("servers_may_start_slowly")]


@pytest.fixture
async def seen() -> AsyncIterator[Events]:
    async with events() as found:
        yield found


async def test_a_known_server_is_listed_and_searched_without_being_started(
    seen: Events, tmp_path: Path
) -> None:
    catalogue = Catalogue(tmp_path)
    async with ServerManager([sdk_server(seen)], catalogue=catalogue) as manager:
        first = await manager.list_tools()
        assert manager.servers[0].state == "ready"
    await seen.pid()
    async with ServerManager([sdk_server(seen)], catalogue=catalogue) as manager:
        assert await manager.list_tools() == first
        assert [tool.tool for tool in await manager.discover("echo")] == ["echo"]
        (status,) = manager.servers
        assert (status.state, status.tools, status.connect_ms) == ("idle", 12, None)
        assert manager.failed == {}
        assert not seen.any("pid")
        assert (await manager.call_tool("sdk__echo", {"say": "hi"})).value == "hi"
        await seen.pid()
        assert manager.servers[0].state == "ready"


async def test_calls_at_once_start_a_known_server_once(seen: Events, tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path)
    async with ServerManager([sdk_server(seen)], catalogue=catalogue):
        await seen.pid()
    async with ServerManager([sdk_server(seen)], catalogue=catalogue) as manager:
        manager.wake(["sdk", "sdk", "nobody"])
        pair = await asyncio.gather(manager.call_tool("sdk__pair"), manager.call_tool("sdk__pair"))
        assert [result.value for result in pair] == ["both", "both"]
        await seen.pid()
        assert not seen.any("pid")


async def test_what_a_server_offers_today_counts_before_anything_is_called(
    seen: Events, tmp_path: Path
) -> None:
    catalogue, config = Catalogue(tmp_path), sdk_server(seen)
    old = (ToolDefinition("gone", "Was there.", {}), ToolDefinition("echo", "Other words.", {}))
    await asyncio.to_thread(catalogue.write, config, old)
    async with ServerManager([config], catalogue=catalogue) as manager:
        assert [tool.tool for tool in await manager.list_tools()] == ["gone", "echo"]
        with pytest.raises(UnknownTool):
            await manager.call_tool("sdk__gone")
        assert len(await manager.list_tools()) == 12
        assert [tool.tool for tool in await manager.discover("picture")] == ["picture"]
    assert len(await asyncio.to_thread(catalogue.read, config) or ()) == 12


async def test_a_known_server_that_is_dead_says_so_and_is_tried_again(
    seen: Events, tmp_path: Path
) -> None:
    catalogue = Catalogue(tmp_path)
    args = ("-c", "import sys; sys.exit(3)")
    config = dataclasses.replace(sdk_server(seen), args=args, allow=frozenset({"eval", "env"}))
    await asyncio.to_thread(catalogue.write, config, (ToolDefinition("echo", "", {}),))
    async with ServerManager([config], catalogue=catalogue) as manager:
        for _ in range(2):
            with pytest.raises(ServerUnavailable, match="exited with code 3"):
                await manager.call_tool("sdk__echo")
            assert "exited with code 3" in manager.failed["sdk"]
            assert len(await manager.list_tools()) == 1, "it may come back"


async def test_closing_ends_a_start_that_is_under_way(seen: Events, tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path)
    args = ("-c", "import time; time.sleep(60)")
    config = dataclasses.replace(sdk_server(seen), args=args, allow=frozenset({"eval", "env"}))
    await asyncio.to_thread(catalogue.write, config, (ToolDefinition("echo", "", {}),))
    async with ServerManager([config], catalogue=catalogue) as manager:
        manager.wake(["sdk"])
        await asyncio.sleep(0)
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("mcp")]


def config_file(tmp_path: Path, *tools: str) -> Path:
    args = ["-m", "tests.stand_ins.fifty_tools", *tools]
    env = {"PYTHONPATH": str(Path(__file__).parents[2])}
    server = {"command": sys.executable, "args": args, "env": env, "connect_timeout": 60}
    server["allow"] = ["env"]
    path = tmp_path / "mcp_servers.json"
    path.write_text(json.dumps({"house": server}))
    return path


async def test_many_tools_are_listed_without_being_started_and_started_when_told_of(
    tmp_path: Path,
) -> None:
    path, cache = config_file(tmp_path), tmp_path / "cache"
    first = McpToolSource(path, call_timeout_s=30, ready_s=60, catalogue=cache)
    try:
        listed = (await first.discover()).specs
        assert (len(listed), first.servers[0].state) == (50, "ready")
    finally:
        await first.aclose()
    tier = McpToolSource(path, call_timeout_s=30, ready_s=60, catalogue=cache)
    try:
        assert (await tier.discover()).specs == listed
        assert tier.servers[0].state == "idle"
        forecast = next(spec for spec in listed if spec.name == "house__get_forecast")
        tier.wake([forecast])
        async with asyncio.timeout(60):
            while tier.servers[0].state != "ready":  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.01)
        assert (await tier.call(forecast, {"place": "Paris"}))["status"] == "ok"
        assert (await tier.discover()).specs == listed, "a reload keeps their order"
    finally:
        await tier.aclose()


async def test_few_tools_are_listed_as_they_are_today(tmp_path: Path) -> None:
    path = config_file(tmp_path, "get_forecast", "play_music")
    for _ in range(2):  # the second time they are known
        tier = McpToolSource(path, call_timeout_s=30, ready_s=60, catalogue=tmp_path / "cache")
        changes: list[ToolListing] = []
        tier.watch_changes(changes.append)
        try:
            listing = await tier.discover()
            assert {s.name for s in listing.specs} == {"house__get_forecast", "house__play_music"}
            assert (tier.servers[0].state, changes) == ("ready", [])
        finally:
            await tier.aclose()
