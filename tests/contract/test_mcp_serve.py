"""The bridge with real sockets and real processes: who gets in, what is refused, what is left."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from mcp_bridge import ConfigError
from mcp_bridge.serve import Bridge, ServeLimits, ServeOptions
from mcp_bridge.serve.options import Token
from tests.stand_ins.bridge_process import (
    BEARER,
    TOKEN,
    BridgeProcess,
    ask,
    bridge_process,
    client,
    descendants,
    echo,
    light_command,
    raw_command,
    tell,
)
from tests.stand_ins.mcp_events import PATIENCE_S, Events, events, lives

pytestmark = pytest.mark.long

SLOW = Path(__file__).parents[1] / "stand_ins" / "bridge_slow_server.py"


@pytest.fixture
async def seen() -> AsyncIterator[Events]:
    async with events() as found:
        yield found


@asynccontextmanager
async def bridge(
    *flags: str,
    seen: Events | None = None,
    command: tuple[str, ...] = (),
    limits: ServeLimits = ServeLimits(),  # noqa: B008 - frozen
    **options: Any,
) -> AsyncGenerator[Bridge]:
    env = {"EVENTS_PORT": str(seen.port)} if seen else {}
    asked = ServeOptions(command or raw_command(*flags), port=0, env=env, limits=limits, **options)
    others = set(descendants(os.getpid()))  # servers that other tests use
    async with asyncio.timeout(60), Bridge(asked) as running:
        yield running
    assert set(descendants(os.getpid())) - others == set()


async def closing(socket: ClientConnection) -> tuple[int, str]:
    """Code and reason that the bridge closes with; messages before it are passed over."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                await socket.recv()
    except ConnectionClosed:
        return socket.close_code or 0, socket.close_reason or ""


async def refusal(opening: Any) -> int:
    with pytest.raises(InvalidStatus) as refused:
        async with opening:
            pass
    return refused.value.response.status_code


def cut(socket: ClientConnection) -> None:
    """Ends the connection as a machine does that loses its power."""
    socket.transport.abort()


def slow(what: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-E", str(SLOW), what)


async def test_messages_go_to_the_process_and_back() -> None:
    async with bridge() as running, client(running.url) as one, client(running.url) as other:
        assert one.subprotocol == "mcp"
        assert await echo(one, "line\nbreak, Grüße, \u2028") == "line\nbreak, Grüße, \u2028"
        assert await echo(other, "b") == "b"
        spread = '{"jsonrpc": "2.0",\r\n "id": 7,\n "method": "tools/list"}'
        await one.send(spread)
        assert json.loads(await one.recv())["id"] == 7


async def test_each_connection_has_a_process_of_its_own(seen: Events) -> None:
    async with bridge(seen=seen) as running:
        async with client(running.url), client(running.url):
            pids = [await seen.pid(), await seen.pid()]
            assert len(set(pids)) == 2
            assert all(lives(pid) for pid in pids)
        await running.drain()
        assert not any(lives(pid) for pid in pids)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer Grüße"},
        {"Authorization": TOKEN},
        {"Authorization": f"Basic {TOKEN}"},
    ],
)
async def test_without_the_right_token_there_is_no_process(
    seen: Events, headers: dict[str, str]
) -> None:
    async with bridge(seen=seen, token=Token(TOKEN)) as running:
        others = set(descendants(os.getpid()))
        assert await refusal(client(running.url, headers)) == 401
        assert set(descendants(os.getpid())) - others == set()
        async with client(running.url, BEARER) as let_in:
            assert await echo(let_in, "in") == "in"
        await seen.pid()
    assert not seen.any("pid"), "the refused one had a process"


async def test_a_token_in_the_address_does_not_count() -> None:
    async with bridge(token=Token(TOKEN)) as running:
        assert await refusal(client(f"{running.url}?token={TOKEN}")) == 401


async def test_a_name_that_was_pointed_at_this_machine_is_refused(seen: Events) -> None:
    async with bridge(seen=seen, allow_hosts=frozenset({"tools.example.com"})) as running:

        async def named(host: str) -> int:
            opening = client(f"ws://{host}:{running.port}/mcp", host="127.0.0.1", port=running.port)
            try:
                async with opening as let_in:
                    assert await echo(let_in, "x") == "x"
            except InvalidStatus as refused:
                return refused.response.status_code
            return 101

        assert await named("rebound.example.com") == 421
        assert await named("127.0.0.2") == 421, "an address of ours, but not this one"
        assert await named("127.0.0.1.example.com") == 421
        assert not seen.any("pid")
        assert await named("localhost") == 101
        assert await named("Tools.Example.com") == 101


async def test_a_web_page_is_refused_unless_its_origin_is_allowed(seen: Events) -> None:
    allowed = frozenset({"https://app.example.com"})
    async with bridge(seen=seen, allow_origins=allowed) as running:
        for origin in ("https://evil.example.com", "null", "http://app.example.com"):
            assert await refusal(client(running.url, origin=origin)) == 403
        assert not seen.any("pid")
        async with client(running.url, origin="https://app.example.com") as let_in:
            assert await echo(let_in, "x") == "x"


async def test_paths_and_subprotocols_are_checked() -> None:
    async with bridge() as running:
        base = running.url.removesuffix("/mcp")
        assert await refusal(client(f"{base}/admin")) == 404
        assert await refusal(client(running.url, subprotocols=None)) == 400
        async with client(base) as let_in:
            assert await echo(let_in, "x") == "x"


async def test_health_is_told_to_anyone_and_holds_no_secret() -> None:
    async with bridge(token=Token(TOKEN)) as running, httpx2.AsyncClient() as http:
        url = running.url.replace("ws://", "http://").replace("/mcp", "/health")
        async with client(running.url, BEARER) as let_in:
            await echo(let_in, "x")
            answer = await http.get(url)
        assert answer.status_code == 200
        assert answer.json() == {"status": "ok", "connections": 1, "max_connections": 32}
        assert (await http.head(url)).status_code == 200
        assert (await http.post(url)).status_code == 405
        rebound = {"Host": "rebound.example.com"}
        assert (await http.get(url, headers=rebound)).status_code == 421
        told = await http.get(url.replace("/health", "/mcp"))
        assert told.status_code == 401
        assert told.headers["www-authenticate"] == "Bearer"


async def test_what_is_no_message_ends_the_connection_in_words() -> None:
    async with bridge(limits=ServeLimits(max_message_bytes=100_000)) as running:
        for sent, code, said in (
            (b"\x00\x01", 1003, "send text frames, no binary ones"),
            ("no json", 1007, "send a JSON-RPC object in each frame"),
            ("[1, 2]", 1007, "send a JSON-RPC object in each frame"),
            ('{"a": ' * 70_000, 1009, ""),
            ('{"a": "' + "x" * 70_000, 1007, "send a JSON-RPC object in each frame"),
            ('{"id": "' + "x" * 999 + '", "method": "m"}', 1007, "send a JSON-RPC object"),
        ):
            async with client(running.url) as socket:
                await socket.send(sent)
                told = await closing(socket)
                assert (told[0], told[1][: len(said)]) == (code, said)


async def test_a_process_that_dies_ends_its_connection_with_its_last_words(
    seen: Events, tmp_path: Path
) -> None:
    async with bridge(f"needs={tmp_path / 'never'}") as running, client(running.url) as socket:
        code, reason = await closing(socket)
        assert code == 1011
        assert reason.startswith("the server exited with code 1: the file is not there")
        assert len(reason.encode()) <= 123
    async with bridge(seen=seen) as running, client(running.url) as socket:
        pid = await seen.pid()
        await tell(socket, "tools/call", 1, name="wait")
        await seen.wait_for("wait started")
        os.kill(pid, signal.SIGKILL)
        assert await closing(socket) == (
            1011,
            "the server was ended by signal 9 without a word on stderr",
        )
    async with bridge() as running, client(running.url) as socket:
        await tell(socket, "tools/call", 1, name="hang_up")
        assert (await closing(socket))[0] == 1011


async def test_secrets_of_the_process_stay_out_of_its_last_words(tmp_path: Path) -> None:
    env = {"TOKEN": "s3cret-value"}
    asked = ServeOptions(raw_command(f"needs={tmp_path / 'never'}"), port=0, env=env)
    async with Bridge(asked) as running, client(running.url) as socket:
        assert (await closing(socket))[1].endswith("token was ***")


async def test_a_command_that_is_not_there_is_told() -> None:
    async with bridge(command=("no-such-program-anywhere",)) as running:
        async with client(running.url) as socket:
            code, reason = await closing(socket)
        assert code == 1011
        assert "'no-such-program-anywhere' was not found; install it" in reason


async def test_what_is_no_message_of_the_process_is_left_out() -> None:
    async with bridge("noisy") as running, client(running.url) as socket:
        await tell(socket, "tools/call", 5, name="echo", arguments={"said": "x"})
        assert json.loads(await socket.recv())["id"] == 5


@pytest.mark.parametrize("flags", [(), ("id-last",)])
async def test_an_answer_over_the_cap_becomes_an_error_in_its_place(flags: tuple[str, ...]) -> None:
    limits = ServeLimits(max_line_bytes=2**20)
    async with bridge(*flags, limits=limits) as running, client(running.url) as socket:
        giant = await ask(socket, "tools/call", 3, name="giant", arguments={"chars": 2_000_000})
        assert giant["error"]["message"] == "the answer is over 1 MiB; ask for less"
        fits = await ask(socket, "tools/call", 4, name="giant", arguments={"chars": 900_000})
        assert len(fits["result"]["content"][0]["text"]) == 900_000


@pytest.mark.parametrize("flags", [("deaf",), ("deaf", "stubborn", "family")])
async def test_a_client_that_is_cut_off_in_mid_call_leaves_nothing(
    seen: Events, flags: tuple[str, ...]
) -> None:
    async with bridge(*flags, seen=seen) as running:
        socket = await client(running.url)
        pids = [await seen.pid() for _ in range(1 + ("family" in flags))]
        await tell(socket, "tools/call", 1, name="wait")
        cut(socket)
        await running.drain(60)  # which waits for the connection's own end
        assert not any(lives(pid) for pid in pids)


async def test_a_client_that_answers_no_ping_is_given_up(seen: Events) -> None:
    # Time enough for a process of a busy machine to tell its pid before it is ended.
    limits = ServeLimits(ping_interval_s=0.1, ping_timeout_s=3)
    async with bridge(seen=seen, limits=limits) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(
            b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
            b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: mcp\r\n\r\n"
        )
        pid = await seen.pid()
        await reader.read()  # to the end: the pings, and then the cut
        writer.close()
        await running.drain(60)
        assert not lives(pid)


async def test_a_client_that_reads_nothing_blocks_its_process_and_is_cut_off(seen: Events) -> None:
    limits = ServeLimits(stall_s=3)
    async with bridge(seen=seen, command=slow("flood"), limits=limits) as running:
        socket = await client(running.url, max_queue=1)
        pid = await seen.pid()
        blocked_after = int((await seen.wait_for("blocked after")).split()[2])
        # What two pipes and two sockets on loopback hold; nothing of it grows with time.
        assert blocked_after < 24 * 2**20
        async with asyncio.timeout(60):
            while lives(pid):  # noqa: ASYNC110 - a drain would end it for another reason
                await asyncio.sleep(0.05)
        await running.drain(60)
        assert not lives(pid)
        cut(socket)


async def test_a_process_that_reads_nothing_blocks_its_client_and_is_ended(seen: Events) -> None:
    limits = ServeLimits(stall_s=1, max_message_bytes=2**20)
    message = json.dumps({"jsonrpc": "2.0", "method": "x", "params": {"x": "x" * 500_000}})
    async with bridge(seen=seen, command=slow("deaf"), limits=limits) as running:
        async with client(running.url) as socket:
            pid = await seen.pid()
            with suppress(ConnectionClosed):
                for _ in range(400):  # 200 MB, should anybody take them
                    await socket.send(message)
            assert (await closing(socket))[1] == "the server does not read its input"
        await running.drain(60)
        assert not lives(pid)


async def test_more_connections_than_allowed_are_refused_in_words() -> None:
    limits = ServeLimits(max_connections=2)
    async with bridge(limits=limits) as running, client(running.url) as one:
        async with client(running.url) as other:
            assert await echo(one, "a") + await echo(other, "b") == "ab"
            async with client(running.url) as third:
                told = await closing(third)
        assert told == (1013, "all 2 connections are in use; try again later")
    limits = ServeLimits(max_per_client=1)
    async with bridge(limits=limits) as running, client(running.url) as one:
        await echo(one, "a")
        async with client(running.url) as second:
            assert (await closing(second))[0] == 1013


async def test_more_calls_than_allowed_end_the_connection() -> None:
    limits = ServeLimits(max_calls=3)
    async with bridge("deaf", limits=limits) as running, client(running.url) as socket:
        for call in range(3):
            await tell(socket, "tools/call", call)
        await tell(socket, "notifications/cancelled", None, requestId=1)
        await tell(socket, "tools/call", 3)
        await tell(socket, "tools/call", 4)
        assert await closing(socket) == (1008, "more than 3 calls without an answer")


async def test_strangers_that_send_nothing_do_not_pile_up() -> None:
    limits = ServeLimits(max_connections=1, open_timeout_s=3)
    async with bridge(limits=limits) as running:
        silent = [await asyncio.open_connection("127.0.0.1", running.port) for _ in range(66)]
        async with asyncio.timeout(PATIENCE_S):
            assert all([not await reader.read() for reader, _ in silent])
        for _, writer in silent:
            writer.close()
        async with client(running.url) as socket:
            assert await echo(socket, "still here") == "still here"


async def test_a_connection_that_nobody_uses_is_closed() -> None:
    async with bridge(limits=ServeLimits(idle_s=0.3)) as running, client(running.url) as socket:
        assert await closing(socket) == (1001, "no message for 0.3 s")


async def test_a_drain_lets_calls_end_and_takes_nobody_new(seen: Events) -> None:
    async with bridge(seen=seen) as running:
        idle, busy = await client(running.url), await client(running.url)
        await seen.pid()
        await tell(busy, "tools/call", 9, name="wait")
        await seen.wait_for("wait started")
        draining = asyncio.create_task(running.drain(60))
        assert await closing(idle) == (1001, "the bridge is shutting down")
        with pytest.raises(ConnectionRefusedError):
            await client(running.url)
        assert not draining.done()
        await tell(busy, "notifications/cancelled", None, requestId=9)
        assert await closing(busy) == (1001, "the bridge is shutting down")
        await draining


async def test_a_drain_has_an_end(seen: Events) -> None:
    async with bridge(seen=seen) as running, client(running.url) as socket:
        await tell(socket, "tools/call", 9, name="wait")
        await seen.wait_for("wait started")
        draining = asyncio.create_task(running.drain(0.2))
        assert await closing(socket) == (1001, "the bridge is shutting down")
        await draining


async def test_a_taken_port_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"cannot listen at 127\.0\.0\.1:{port} \(.*in use"):
            async with Bridge(ServeOptions(raw_command(), port=port)):
                pass


async def test_cancelling_the_bridge_leaves_nothing(seen: Events) -> None:
    async def use(ready: asyncio.Event) -> None:
        async with bridge(seen=seen) as running, client(running.url) as socket:
            await tell(socket, "tools/call", 1, name="wait")
            await seen.wait_for("wait started")
            ready.set()
            await asyncio.Event().wait()

    ready = asyncio.Event()
    task = asyncio.create_task(use(ready))
    await ready.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not lives(await seen.pid())


async def nothing_left(running: BridgeProcess, before: int) -> None:
    """Its last connection is told of a moment before the last descriptors are closed."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            while running.children() or running.descriptors() != before:  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # nothing tells of it
    assert running.children() == []
    assert running.descriptors() == before


async def test_two_hundred_connections_in_turn_leave_no_process_and_no_descriptor() -> None:
    async with bridge_process(command=light_command()) as running:
        before = running.descriptors()
        for turn in range(200):
            async with client(running.url) as one:
                assert (await ask(one, "echo", turn=turn))["result"] == {"turn": turn}
            await running.said("the client left")
        await nothing_left(running, before)


async def test_fifty_connections_at_once_leave_no_process_and_no_descriptor() -> None:
    allow = ("--max-connections=50", "--max-per-client=50")
    async with bridge_process(*allow, command=light_command()) as running:
        before = running.descriptors()
        sockets = await asyncio.gather(*(client(running.url) for _ in range(50)))
        said = await asyncio.gather(*(ask(one, "x", n=n) for n, one in enumerate(sockets)))
        assert [each["result"]["n"] for each in said] == list(range(50))
        assert len(running.children()) >= 50
        assert running.descriptors() >= before + 4 * 50
        for each in sockets[:25]:
            cut(each)
        await asyncio.gather(*(each.close() for each in sockets[25:]))
        for _ in sockets:
            await running.said("the client left")
        await nothing_left(running, before)


async def test_sigterm_drains_and_a_second_one_hurries(seen: Events) -> None:
    async with bridge_process("--drain=60", seen=seen) as running, client(running.url) as socket:
        await tell(socket, "tools/call", 9, name="wait")
        await seen.wait_for("wait started")
        pid = await seen.pid()
        running.signal(signal.SIGTERM)
        await running.said("stopping: calls under way have 60 s")
        running.signal(signal.SIGINT)
        assert await closing(socket) == (1001, "the bridge is shutting down")
        assert await running.ended() == 0
        assert not lives(pid)


async def gone(pid: int) -> None:
    """Returns when that process, which is nobody's child here, has ended."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(watched, ended.set)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await ended.wait()
    finally:
        asyncio.get_running_loop().remove_reader(watched)
        os.close(watched)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of another's process")
async def test_a_bridge_that_is_killed_leaves_no_process(seen: Events) -> None:
    command = raw_command("stubborn", "family")
    async with bridge_process(seen=seen, command=command) as running, client(running.url):
        pids = [await seen.pid(), await seen.pid()]
        running.signal(signal.SIGKILL)
        for pid in pids:
            await gone(pid)


async def test_the_log_holds_no_token_and_no_message() -> None:
    environ = {"MCP_BRIDGE_TOKEN": TOKEN}
    async with bridge_process(environ=environ) as running:
        async with client(running.url, BEARER) as socket:
            await echo(socket, "private words")
        running.signal(signal.SIGTERM)
        assert await running.ended() == 0
        assert not [line for line in running.log if TOKEN in line or "private" in line]
