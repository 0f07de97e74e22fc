"""One manager, servers of every protocol version from 2024-11-05 to 2026-07-28, as processes."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcp_bridge import (
    Accepted,
    Answer,
    BridgeEvent,
    CallProgressed,
    Catalogue,
    Question,
    ServerConfig,
    ServerManager,
    SessionPool,
    ToolsChanged,
)
from tests.stand_ins.mcp_events import PATIENCE_S, Events, events, lives

pytestmark = pytest.mark.long

OLD = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
NEW = "2026-07-28"
LIVELY = Path(__file__).parents[1] / "stand_ins" / "changing_mcp_server.py"


@pytest.fixture
async def seen() -> AsyncIterator[Events]:
    async with events() as found:
        yield found


def lively(seen: Events, era: str, *, name: str = "live", share: bool = False) -> ServerConfig:
    return ServerConfig(
        name=name,
        command=sys.executable,
        args=(str(LIVELY),) if era == NEW else (str(LIVELY), era),
        env={"EVENTS_PORT": str(seen.port)},
        connect_timeout_s=60.0,
        share=share,
    )


class Told:
    """Events of a manager, to wait for."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[BridgeEvent] = asyncio.Queue()

    def __call__(self, event: BridgeEvent) -> None:
        self._queue.put_nowait(event)

    async def next(self) -> BridgeEvent:
        async with asyncio.timeout(PATIENCE_S):
            return await self._queue.get()

    def all(self) -> list[BridgeEvent]:
        return [self._queue.get_nowait() for _ in range(self._queue.qsize())]


@pytest.mark.parametrize("era", [*OLD, NEW])
async def test_the_newest_version_that_both_know_is_spoken(seen: Events, era: str) -> None:
    async with ServerManager([lively(seen, era)]) as manager:
        assert manager.servers[0].protocol == era
        assert (await manager.call_tool("live__era")).value == era


@pytest.mark.parametrize("era", ["2024-11-05", NEW])
async def test_tools_that_change_are_listed_and_told_of(
    seen: Events, era: str, tmp_path: Path
) -> None:
    told, catalogue, config = Told(), Catalogue(tmp_path), lively(seen, era)
    async with ServerManager([config], on_event=told, catalogue=catalogue) as manager:
        before = [tool.name for tool in await manager.list_tools()]
        await manager.call_tool("live__grow")
        event = await told.next()
        assert event == ToolsChanged("live", ("live__more7",), (), (), {})
        assert [tool.name for tool in await manager.list_tools()] == [*before, "live__more7"]
        assert (await manager.call_tool("live__more7")).value == "called more7"
        assert [tool.tool for tool in await manager.discover("*more*")] == ["more7"]
    kept = await asyncio.to_thread(catalogue.read, config)
    assert [tool.name for tool in kept or ()][-1] == "more7"


@pytest.mark.parametrize("era", ["2024-11-05", NEW])
async def test_progress_becomes_events(seen: Events, era: str) -> None:
    told, others = Told(), Told()
    async with ServerManager([lively(seen, era)], on_event=others) as manager:
        await manager.call_tool("live__count", on_event=told)
        first, *_, last = told.all()
        assert first == CallProgressed("live__count", "live", 1.0, 3.0, "step 1")
        assert last == CallProgressed("live__count", "live", 3.0, 3.0, "step 3")
        await manager.call_tool("live__count")
        assert others.all()[0] == first, "a call without its own goes to the manager's"


@pytest.mark.parametrize("era", ["2025-06-18", NEW])
async def test_a_question_reaches_the_host_and_its_answer_the_server(
    seen: Events, era: str
) -> None:
    asked: list[Question] = []

    async def kitchen(question: Question) -> Answer:
        asked.append(question)
        return Accepted({"room": "kitchen"})

    async with ServerManager([lively(seen, era)]) as manager:
        assert (await manager.call_tool("live__ask")).value == "decline"
        assert (await manager.call_tool("live__ask", elicitor=kitchen)).value == "accept kitchen"
        (question,) = asked
        assert (question.server, question.tool) == ("live", "ask")
        assert [(field.name, field.kind, field.required) for field in question.fields] == [
            ("room", "text", True)
        ]
        assert question.message == "Which room?"


@pytest.mark.parametrize("era", ["2024-11-05", NEW])
async def test_a_cancelled_call_is_cancelled_at_the_server(seen: Events, era: str) -> None:
    async with ServerManager([lively(seen, era)]) as manager:
        call = asyncio.create_task(manager.call_tool("live__wait"))
        await seen.wait_for("wait started")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await seen.wait_for("wait cancelled")
        assert (await manager.call_tool("live__era")).value == era


async def test_rooms_share_a_server_where_its_configuration_says_so(seen: Events) -> None:
    config = lively(seen, "2025-11-25", share=True)
    told = Told()
    async with ServerManager([config]) as first:
        pid = await seen.pid()
        async with ServerManager([config], on_event=told) as second:
            assert [tool.name for tool in await second.list_tools()] == [
                tool.name for tool in await first.list_tools()
            ]
            assert second.servers[0].shared
            await first.call_tool("live__keep", {"text": "hello"})
            assert (await second.call_tool("live__kept")).value == "hello"
            await first.call_tool("live__grow")
            assert isinstance(await told.next(), ToolsChanged), "a room is told of all changes"
        assert lives(pid)
        assert (await first.call_tool("live__kept")).value == "hello"
        assert not seen.any("pid"), "one process served both"
    assert not lives(pid), "the last room ends it"


async def test_rooms_do_not_share_what_does_not_say_so_or_is_another(seen: Events) -> None:
    async def another_process(one: ServerConfig, other: ServerConfig, **options: SessionPool):
        async with ServerManager([one]) as first, ServerManager([other], **options) as second:
            pids = {await seen.pid(), await seen.pid()}
            await first.call_tool("live__keep", {"text": "a secret"})
            (status,) = second.servers
            assert (await second.call_tool(f"{status.name}__kept")).value == ""
            assert len(pids) == 2

    config = lively(seen, "2025-11-25")
    await another_process(config, config)
    shared = dataclasses.replace(config, share=True)
    await another_process(shared, dataclasses.replace(shared, env={**shared.env, "USER": "b"}))
    await another_process(shared, shared, pool=SessionPool())


async def test_a_room_that_leaves_harms_no_call_of_the_other(seen: Events) -> None:
    config = lively(seen, "2025-11-25", share=True)
    async with ServerManager([config]) as first:
        async with ServerManager([config]) as second:
            waiting = asyncio.create_task(first.call_tool("live__wait"))
            await seen.wait_for("wait started")
            await second.call_tool("live__era")
        assert not waiting.done()
        assert (await first.call_tool("live__era")).value == "2025-11-25"
        waiting.cancel()
        await seen.wait_for("wait cancelled")


async def test_a_reload_in_one_room_keeps_the_session_of_the_other(seen: Events) -> None:
    config = lively(seen, "2025-11-25", share=True)
    async with ServerManager([config]) as first, ServerManager([config]) as second:
        pid = await seen.pid()
        await first.reload([])
        assert await first.list_tools() == ()
        assert lives(pid)
        assert (await second.call_tool("live__era")).value == "2025-11-25"
        report = await first.reload([config])
        assert len(report.added) == 7
        assert not seen.any("pid")
