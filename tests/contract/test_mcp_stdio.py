"""ServerManager against real processes over stdio."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcp_bridge import (
    BadArguments,
    CallTimeout,
    Limits,
    ServerConfig,
    ServerError,
    ServerManager,
    ServerUnavailable,
    ToolCallResult,
    UnknownTool,
    parse_servers,
)
from tests.stand_ins.mcp_events import Events, events, lives, raw_server, sdk_server

pytestmark = pytest.mark.long


@pytest.fixture
async def seen() -> AsyncIterator[Events]:
    async with events() as found:
        yield found


linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a process's parent")


def supervisor_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def names(manager: ServerManager) -> list[str]:
    return [tool.name for tool in await manager.list_tools()]


async def test_the_published_time_server_lists_and_answers() -> None:
    time = ServerConfig(name="time", command=sys.executable, args=("-m", "mcp_server_time"))
    async with ServerManager([time], connect_timeout_s=60) as manager:
        assert await names(manager) == ["time__get_current_time", "time__convert_time"]
        result = await manager.call_tool("time__get_current_time", {"timezone": "Europe/Paris"})
        assert result.value["timezone"] == "Europe/Paris"
        wrong = await manager.call_tool("time__get_current_time", {"timezone": "Mars/Olympus"})
        assert wrong.is_error
        assert "Mars/Olympus" in wrong.value
        assert [tool.tool for tool in await manager.discover("*convert*")] == ["convert_time"]


async def test_every_page_is_read_and_results_are_values(seen: Events) -> None:
    async with ServerManager([sdk_server(seen)]) as manager:
        tools = {tool.tool: tool for tool in await manager.list_tools()}
        assert len(tools) == 12
        assert [tools[name].read_only for name in ("echo", "crash", "json")] == [True, False, None]

        assert (await manager.call_tool("sdk__echo", {"say": "hi"})) == ToolCallResult("hi")
        assert (await manager.call_tool("sdk__json", {"a": [1]})).value == {"a": [1]}
        assert (await manager.call_tool("sdk__structured", {"b": 2})).value == {"b": 2}
        assert await manager.call_tool("sdk__fails") == ToolCallResult(
            "no such thing: give its full name", is_error=True
        )
        picture = await manager.call_tool("sdk__picture")
        assert picture.value == "here it is\n[image image/png, 3.0 kB, not shown]"
        with pytest.raises(ServerError, match="does not fit its own output schema"):
            await manager.call_tool("sdk__lies")
        with pytest.raises(UnknownTool, match="sdk__echo"):
            await manager.call_tool("sdk__ecko")


async def test_giant_results_are_cut_and_say_so(seen: Events) -> None:
    limits = Limits(max_result_chars=1000)
    async with ServerManager([sdk_server(seen)], limits=limits) as manager:
        giant = await manager.call_tool("sdk__giant", {"chars": 5_000_000})
        assert giant.truncated
        assert giant.value == "x" * 1000 + "\n[cut here: 1000 of about 5000000 characters]"
        dense = await manager.call_tool("sdk__dense", {"rows": 50_000})
        assert dense.truncated
        assert not dense.is_error
        assert dense.value.startswith('{"rows":[{"id":0,"name":"n0","ok":true}')
        blocks = await manager.call_tool("sdk__blocks", {"count": 20_000})
        assert blocks.truncated
        assert blocks.value.startswith("row 0\nrow 1\n")
        small = await manager.call_tool("sdk__dense", {"rows": 2})
        assert len(small.value["rows"]) == 2


async def test_calls_run_side_by_side(seen: Events) -> None:
    async with ServerManager([sdk_server(seen)]) as manager:
        pair = await asyncio.gather(manager.call_tool("sdk__pair"), manager.call_tool("sdk__pair"))
        assert [result.value for result in pair] == ["both", "both"]


async def test_a_crash_fails_its_call_and_the_next_call_starts_the_server_again(
    seen: Events,
) -> None:
    async with ServerManager([sdk_server(seen)]) as manager:
        waiting = asyncio.create_task(manager.call_tool("sdk__wait"))
        await seen.wait_for("wait started")
        with pytest.raises(ServerUnavailable, match="exited with code 7"):
            await manager.call_tool("sdk__crash")
        with pytest.raises(ServerUnavailable, match="exited with code 7"):
            await waiting
        assert "the next call starts it again" in manager.failed["sdk"]
        assert (await manager.call_tool("sdk__echo", {"say": "back"})).value == "back"
        assert manager.failed == {}


async def test_cancelling_a_call_reaches_a_server_of_today(seen: Events) -> None:
    async with ServerManager([sdk_server(seen)]) as manager:
        call = asyncio.create_task(manager.call_tool("sdk__wait"))
        await seen.wait_for("wait started")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await seen.wait_for("wait cancelled")
        assert (await manager.call_tool("sdk__echo", {"say": "still here"})).value == "still here"


async def test_cancelling_a_call_reaches_an_old_server(seen: Events) -> None:
    async with ServerManager([raw_server(found=seen)]) as manager:
        call = asyncio.create_task(manager.call_tool("raw__wait"))
        await seen.wait_for("wait started")
        call.cancel()
        await seen.wait_for("cancelled")


async def test_a_deadline_ends_the_call_and_tells_the_server(seen: Events) -> None:
    async with ServerManager([raw_server(found=seen)]) as manager:
        with pytest.raises(CallTimeout, match=r"raw: gave no answer within 1 s"):
            await manager.call_tool("raw__wait", timeout_s=1.0)
        await seen.wait_for("cancelled")
    patient = dataclasses.replace(raw_server(found=seen), timeout_s=1.0)
    async with ServerManager([patient]) as manager:
        with pytest.raises(CallTimeout):
            await manager.call_tool("raw__wait")


async def test_a_dead_server_is_listed_as_failed_and_lives_after_a_reload(tmp_path: Path) -> None:
    needed = tmp_path / "ready"
    servers = [raw_server(f"needs={needed}", name="late"), raw_server(name="fine")]
    missing = ServerConfig(name="missing", command="no-such-program-anywhere")
    async with ServerManager([*servers, missing]) as manager:
        assert set(manager.failed) == {"late", "missing"}
        assert "exited with code 1: the file is not there" in manager.failed["late"]
        assert "'no-such-program-anywhere' was not found; install it" in manager.failed["missing"]
        assert {tool.server for tool in await manager.list_tools()} == {"fine"}

        needed.touch()
        report = await manager.reload()

        assert set(report.added) == {"late__echo", "late__wait", "late__giant", "late__hang_up"}
        assert (report.removed, report.changed) == ((), ())
        assert set(report.failed) == {"missing"}
        assert (await manager.call_tool("late__echo", {"a": 1})).value == {"token": None, "a": 1}


async def test_reload_takes_a_new_configuration_and_ends_what_left_it(seen: Events) -> None:
    old = raw_server(name="old", found=seen)
    kept = raw_server(name="kept")
    async with ServerManager([old, kept]) as manager:
        pid = await seen.pid()
        changed = dataclasses.replace(kept, env={"TOKEN": "new"})
        report = await manager.reload([changed])
        assert {name.split("__")[0] for name in report.removed} == {"old"}
        assert not lives(pid)
        assert (await manager.call_tool("kept__echo")).value == {"token": "new"}
        off = dataclasses.replace(changed, enabled=False)
        await manager.reload([off])
        assert await names(manager) == []
        assert [status.state for status in manager.servers] == ["off"]


async def test_names_that_would_meet_are_kept_apart() -> None:
    one, other = raw_server(name="a__raw"), raw_server(name="a")
    async with ServerManager([one, other]) as manager:
        tools = await manager.list_tools()
        assert len({tool.name for tool in tools}) == 8
        for server in ("a__raw", "a"):
            echo = next(tool for tool in tools if (tool.server, tool.tool) == (server, "echo"))
            assert (await manager.call_tool(echo.name, {"to": server})).value["to"] == server


async def test_a_server_that_never_answers_fails_at_its_deadline_beside_the_others() -> None:
    deaf = raw_server("deaf", name="deaf", ready_within_s=0.6)
    async with ServerManager([deaf, raw_server()]) as manager:
        assert set(manager.failed) == {"deaf"}
        # A busy machine may let the deadline of the whole come first.
        assert re.search(
            r"^was not ready within 0\.6 s; see that it starts, or raise connect_timeout$"
            r"|within 1\.2 s",
            manager.failed["deaf"],
        )
        assert (await manager.call_tool("raw__echo")).value == {"token": None}


async def test_no_process_of_the_group_outlives_the_manager(seen: Events) -> None:
    async with ServerManager([raw_server("family", "stubborn", found=seen)]):
        pids = [await seen.pid(), await seen.pid()]
        assert all(lives(pid) for pid in pids)
    assert not any(lives(pid) for pid in pids)


@linux
async def test_a_supervisor_that_is_stuck_leaves_nothing_either(
    seen: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_bridge.transports.process.EXIT_GRACE_S", 0.1)
    monkeypatch.setattr("mcp_bridge.transports.process._TERMINATE_S", 0.1)
    monkeypatch.setattr("mcp_bridge.transports.process._KILL_S", 0.1)
    async with ServerManager([raw_server("family", "stubborn", found=seen)]):
        pids = [await seen.pid(), await seen.pid()]
        os.kill(supervisor_of(pids[1]), signal.SIGSTOP)
    assert not any(lives(pid) for pid in pids)


async def test_leaving_by_an_error_or_a_cancel_leaves_no_process(seen: Events) -> None:
    async def use() -> None:
        async with ServerManager([raw_server("family", found=seen)]) as manager:
            await manager.call_tool("raw__wait")

    task = asyncio.create_task(use())
    pids = [await seen.pid(), await seen.pid()]
    await seen.wait_for("wait started")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(lives(pid) for pid in pids)


async def test_cancelling_the_start_leaves_no_process(seen: Events) -> None:
    async def use() -> None:
        async with ServerManager([raw_server("deaf", found=seen)]):
            raise AssertionError("it cannot be ready")

    task = asyncio.create_task(use())
    pid = await seen.pid()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not lives(pid)


async def test_a_noisy_server_is_understood() -> None:
    async with ServerManager([raw_server("noisy")]) as manager:
        assert (await manager.call_tool("raw__echo", {"a": 1})).value["a"] == 1


@pytest.mark.parametrize("flags", [(), ("id-last",)])
async def test_an_answer_over_the_line_cap_fails_at_once(flags: tuple[str, ...]) -> None:
    async with ServerManager([raw_server(*flags)]) as manager:
        with pytest.raises(ServerError, match="over 16 MiB; ask for less"):
            await manager.call_tool("raw__giant", {"chars": 17_000_000})
        assert (await manager.call_tool("raw__echo", {"a": 1})).value["a"] == 1


async def test_a_server_that_closes_its_output_is_given_up(seen: Events) -> None:
    async with ServerManager([raw_server(found=seen)]) as manager:
        pid = await seen.pid()
        with pytest.raises(ServerUnavailable, match=r"was ended by signal 9|closed its output"):
            await manager.call_tool("raw__hang_up")
        assert not lives(pid)


@linux
async def test_a_supervisor_that_stands_still_for_a_while_still_tells_how_the_server_ended(
    seen: Events,
) -> None:
    async with ServerManager([raw_server(found=seen)]) as manager:
        pid = await seen.pid()
        supervisor = supervisor_of(pid)
        os.kill(supervisor, signal.SIGSTOP)
        asyncio.get_running_loop().call_later(2, os.kill, supervisor, signal.SIGCONT)
        os.kill(pid, signal.SIGTERM)
        with pytest.raises(ServerUnavailable, match="was ended by signal 15"):
            await manager.call_tool("raw__wait")


async def test_a_list_that_never_ends_is_cut_and_noted(seen: Events) -> None:
    async with ServerManager([raw_server("circle")]) as manager:
        (status,) = manager.servers
        assert status.tools == 4
        assert any("circle" in note for note in status.notes)
    limits = Limits(max_tools=5, max_pages=2)
    async with ServerManager([sdk_server(seen)], limits=limits) as manager:
        assert len(await manager.list_tools()) == 5
        assert any("more than 5 tools" in note for note in manager.servers[0].notes)


async def test_arguments_that_cannot_be_sent_harm_no_other_call() -> None:
    async with ServerManager([raw_server()]) as manager:
        for bad in ({"x": float("nan")}, {"x": "\ud800"}, {"x": object()}, {"x": "y" * 2**21}):
            with pytest.raises(BadArguments):
                await manager.call_tool("raw__echo", bad)
        assert (await manager.call_tool("raw__echo", {"a": 1})).value["a"] == 1


async def test_secrets_stay_out_of_messages_and_logs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="mcp_bridge")
    config = raw_server(f"needs={tmp_path / 'never'}")
    config = dataclasses.replace(config, env={"TOKEN": "s3cret-value"})
    async with ServerManager([config]) as manager:
        assert "token was ***" in manager.failed["raw"]
        assert "s3cret-value" not in caplog.text + repr(config) + repr(manager.servers)


async def test_after_closing_nothing_is_called() -> None:
    async with ServerManager([raw_server()]) as manager:
        pass
    with pytest.raises(UnknownTool):
        await manager.call_tool("raw__echo")


def test_the_file_written_for_claude_desktop_reads_into_the_same_servers() -> None:
    entry = f'{{"command": "{sys.executable}", "args": ["-m", "mcp_server_time"]}}'
    ours = parse_servers(f'{{"time": {entry}}}')
    assert ours == parse_servers(f'{{"mcpServers": {{"time": {entry}}}}}')
    assert ours == parse_servers(f'{{"servers": [{{"name": "time", {entry[1:]}]}}')
