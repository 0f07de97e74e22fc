"""Servers that take long to be ready hold nobody up, and their tools come when they are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from caal_node.context.tool_data import ToolDataCache
from caal_node.tools.pipeline import Pipeline
from caal_node.tools.remote_toolset import RemoteToolset
from caal_node.tools.sources import mcp as mcp_source
from caal_node.tools.sources.mcp import McpToolSource
from mcp_bridge import BridgeEvent, Catalogue, ServerConfig, ServerManager, ToolsChanged
from mcp_bridge.core.errors import UnknownTool
from tests.stand_ins.mcp_events import PATIENCE_S, HttpStandIn, events

AT_ONCE_S = 0.05
LATE = "is not ready yet; its tools come as soon as it is"


@asynccontextmanager
async def stand_ins(count: int) -> AsyncGenerator[list[HttpStandIn]]:
    """They can be connected to; nothing answers until one is started."""
    async with events() as seen:
        servers = [HttpStandIn(seen) for _ in range(count)]
        try:
            yield servers
        finally:
            for server in servers:
                await server.stop()


def config(server: HttpStandIn, name: str) -> ServerConfig:
    return ServerConfig(name, transport="http", url=server.url, connect_timeout_s=60)


class Told:
    def __init__(self) -> None:
        self.changes: asyncio.Queue[ToolsChanged] = asyncio.Queue()

    def __call__(self, event: BridgeEvent) -> None:
        if isinstance(event, ToolsChanged):
            self.changes.put_nowait(event)

    async def next(self) -> ToolsChanged:
        async with asyncio.timeout(PATIENCE_S):
            return await self.changes.get()


async def changed(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110 - a table announces nothing
            await asyncio.sleep(0.01)


async def test_a_late_server_is_not_waited_for_and_its_tools_come_when_it_is_ready() -> None:
    told = Told()
    async with stand_ins(2) as (good, late):
        await good.start()
        async with ServerManager([config(good, "good")], on_event=told) as manager:
            before = await manager.list_tools()
            report = await manager.reload(
                [config(good, "good"), config(late, "late")], ready_s=AT_ONCE_S
            )
            assert report.failed == {"late": LATE}
            assert await manager.list_tools() == before
            await late.start()
            change = await told.next()
            assert (change.server, change.failed) == ("late", {})
            assert set(change.added) == {t.name for t in await manager.list_tools()} - {
                t.name for t in before
            }
            assert (await manager.call_tool("late__echo", {"say": "hi"})).value == "hi"


async def test_a_late_server_that_turns_out_to_be_down_is_told_of(tmp_path: Path) -> None:
    told = Told()
    async with stand_ins(1) as (late,):
        known = Catalogue(tmp_path)
        async with ServerManager(
            [config(late, "late")], ready_s=AT_ONCE_S, on_event=told, catalogue=known
        ) as manager:
            assert manager.failed == {"late": LATE}
            late.refuse_with = 404
            await late.start()
            change = await told.next()
            assert "HTTP 404" in change.failed["late"]
        # What a server has never said is not remembered as nothing.
        assert await asyncio.to_thread(known.read, config(late, "late")) is None


async def test_closing_ends_the_wait_for_a_late_server() -> None:
    async with stand_ins(1) as (late,):
        async with ServerManager([config(late, "late")], ready_s=AT_ONCE_S):
            pass
        assert not [t for t in asyncio.all_tasks() if t.get_name().startswith("mcp")]


async def test_a_call_of_a_server_that_is_going_is_refused_in_words() -> None:
    async with stand_ins(2) as (good, late):
        await good.start()
        async with ServerManager([config(good, "good")]) as manager:
            reload = asyncio.create_task(manager.reload([config(late, "late")]))
            await changed(lambda: "good" not in {status.name for status in manager.servers})
            with pytest.raises(UnknownTool):
                await manager.call_tool("good__echo", {"say": "hi"})
            assert not reload.done()
            await late.start()
            await reload


async def test_a_room_keeps_its_tools_and_is_given_those_of_a_late_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_source, "READY_S", AT_ONCE_S)
    path = tmp_path / "mcp_servers.json"

    def configured(**servers: HttpStandIn) -> None:
        path.write_text(json.dumps({name: {"url": s.url} for name, s in servers.items()}))
        path.chmod(0o600)

    async with stand_ins(2) as (good, late):
        await good.start()
        remote = RemoteToolset(
            {"mcp": McpToolSource(path, call_timeout_s=20)},
            Pipeline(ToolDataCache()),
        )
        configured(good=good)
        await remote.setup()
        try:
            await changed(lambda: "good__echo" in remote.table)
            configured(good=good, late=late)
            await remote.reload()
            assert "good__echo" in remote.table
            assert remote.failed == {"late": LATE}
            await late.start()
            await changed(lambda: "late__echo" in remote.table)
            assert remote.failed == {}
            assert next(iter(remote.table)).exposed.startswith("good__"), "new ones come last"
        finally:
            await remote.aclose()
