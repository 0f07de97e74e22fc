"""ServerManager against real servers over HTTP on loopback."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from mcp_bridge import (
    CallTimeout,
    Limits,
    ServerConfig,
    ServerError,
    ServerManager,
    ServerUnavailable,
    parse_servers,
)
from tests.stand_ins.mcp_events import Events, HttpStandIn, events, http_process

pytestmark = pytest.mark.long


@asynccontextmanager
async def serving(**options: bool) -> AsyncGenerator[tuple[HttpStandIn, Events]]:
    seen = Events()
    stand_in = HttpStandIn(seen, **options)
    await stand_in.start()
    try:
        yield stand_in, seen
    finally:
        await stand_in.stop()


def web(stand_in: HttpStandIn) -> ServerConfig:
    return ServerConfig(name="web", transport="http", url=stand_in.url, connect_timeout_s=60.0)


@pytest.mark.parametrize("json_response", [False, True])
async def test_tools_are_listed_and_called_over_streamable_http(json_response: bool) -> None:
    async with (
        serving(json_response=json_response) as (stand_in, _),
        ServerManager([web(stand_in)], limits=Limits(max_result_chars=1000)) as manager,
    ):
        assert len(await manager.list_tools()) == 12
        assert (await manager.call_tool("web__json", {"a": 1})).value == {"a": 1}
        assert (await manager.call_tool("web__fails")).is_error
        giant = await manager.call_tool("web__giant", {"chars": 5_000_000})
        assert giant.truncated
        assert giant.value.endswith("[cut here: 1000 of about 5000000 characters]")
        dense = await manager.call_tool("web__dense", {"rows": 50_000})
        assert dense.value.startswith('{"rows":[{"id":0')
        with pytest.raises(ServerError, match="over 16 MiB"):
            await manager.call_tool("web__giant", {"chars": 17_000_000})
        assert (await manager.call_tool("web__echo", {"say": "hi"})).value == "hi"


async def test_cancelling_and_deadlines_reach_the_server() -> None:
    async with serving() as (stand_in, seen), ServerManager([web(stand_in)]) as manager:
        call = asyncio.create_task(manager.call_tool("web__wait"))
        await seen.wait_for("wait started")
        call.cancel()
        await seen.wait_for("wait cancelled")
        with pytest.raises(CallTimeout):
            await manager.call_tool("web__wait", timeout_s=2.0)
        await seen.wait_for("wait cancelled")
        assert (await manager.call_tool("web__echo", {"say": "hi"})).value == "hi"


async def test_calls_run_side_by_side() -> None:
    async with serving() as (stand_in, _), ServerManager([web(stand_in)]) as manager:
        pair = await asyncio.gather(manager.call_tool("web__pair"), manager.call_tool("web__pair"))
        assert [result.value for result in pair] == ["both", "both"]


async def test_a_server_that_starts_late_is_there_after_a_reload() -> None:
    seen = Events()
    stand_in = HttpStandIn(seen)
    stand_in.close_socket()
    async with ServerManager([web(stand_in)]) as manager:
        assert manager.failed["web"].startswith("nothing answers at http://127.0.0.1:")
        assert await manager.list_tools() == ()
        await stand_in.start()
        try:
            await manager.reload()
            assert manager.failed == {}
            assert (await manager.call_tool("web__echo", {"say": "hi"})).value == "hi"
        finally:
            await stand_in.stop()


async def test_a_restart_between_two_calls_goes_unnoticed() -> None:
    async with serving() as (stand_in, _), ServerManager([web(stand_in)]) as manager:
        await manager.call_tool("web__echo")
        await stand_in.stop()
        await stand_in.start()
        assert (await manager.call_tool("web__echo", {"say": "again"})).value == "again"


async def test_a_server_that_is_gone_fails_the_call_and_is_found_again() -> None:
    async with serving() as (stand_in, _), ServerManager([web(stand_in)]) as manager:
        await stand_in.stop()
        with pytest.raises(ServerUnavailable, match="nothing answers at"):
            await manager.call_tool("web__echo")
        assert "nothing answers" in manager.failed["web"]
        await stand_in.start()
        assert (await manager.call_tool("web__echo", {"say": "back"})).value == "back"
        assert manager.failed == {}


async def test_a_server_that_dies_during_a_call_fails_that_call_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    config = ServerConfig(name="web", transport="http", url=f"http://127.0.0.1:{port}/mcp")
    async with events() as seen, ServerManager([config]) as manager:
        assert "nothing answers" in manager.failed["web"]
        async with http_process(seen, port) as process:
            await seen.wait_for("serving")
            await manager.reload()
            call = asyncio.create_task(manager.call_tool("web__wait"))
            await seen.wait_for("wait started")
            process.kill()
            with pytest.raises(ServerUnavailable):
                await call
        async with http_process(seen, port):
            await seen.wait_for("serving")
            assert (await manager.call_tool("web__echo", {"say": "back"})).value == "back"
        assert seen.count("wait started") == 0, "a call that may have run must not run twice"


async def test_the_token_is_sent_and_a_refusal_says_how_to_fix_it() -> None:
    async with serving() as (stand_in, _):
        text = f'{{"servers": [{{"name": "web", "url": "{stand_in.url}", "token": "${{T}}"}}]}}'
        async with ServerManager(parse_servers(text, environ={"T": "open-sesame"})):
            assert all(h["authorization"] == "Bearer open-sesame" for h in stand_in.seen_headers)
        for status, fix in ((401, "token"), (404, "path of the url"), (503, "its log")):
            stand_in.refuse_with = status
            async with ServerManager(parse_servers(text, environ={"T": "x"})) as manager:
                assert f"HTTP {status}" in manager.failed["web"]
                assert fix in manager.failed["web"]


async def test_a_server_that_accepts_and_says_nothing_fails_at_its_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        config = ServerConfig(
            name="mute",
            transport="http",
            url=f"http://127.0.0.1:{mute.getsockname()[1]}/mcp",
            connect_timeout_s=0.3,
        )
        async with ServerManager([config]) as manager:
            # A busy machine may let the deadline of the whole come first.
            assert re.search(r"was not ready within 0\.3 s|within 0\.6 s", manager.failed["mute"])


async def test_sse_servers_of_the_older_kind_work() -> None:
    seen = Events()
    stand_in = HttpStandIn(seen, sse=True)
    await stand_in.start()
    config = ServerConfig(name="old", transport="sse", url=stand_in.url)
    try:
        async with ServerManager([config]) as manager:
            assert (await manager.call_tool("old__echo", {"say": "hi"})).value == "hi"
            assert (await manager.call_tool("old__giant", {"chars": 4_000_000})).truncated
    finally:
        await stand_in.stop()
