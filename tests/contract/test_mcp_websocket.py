"""ServerManager over WebSocket: through the bridge, and against servers that are worse."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import ipaddress
import json
import re
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from mcp_bridge import (
    CallTimeout,
    ConfigError,
    Limits,
    ServerConfig,
    ServerError,
    ServerManager,
    ServerUnavailable,
    parse_servers,
)
from mcp_bridge.serve import Bridge, ServeOptions, TlsFiles
from mcp_bridge.serve.options import Token
from tests.stand_ins.bridge_process import TOKEN, bridge_process, raw_command
from tests.stand_ins.mcp_events import Events, events, lives

pytestmark = pytest.mark.long


@pytest.fixture
async def seen() -> AsyncIterator[Events]:
    async with events() as found:
        yield found


def far(url: str, token: str = TOKEN, **more: object) -> list[ServerConfig]:
    return parse_servers(json.dumps({"far": {"url": url, "token": token, **more}}))


@asynccontextmanager
async def bridge(
    *flags: str, seen: Events | None = None, port: int = 0, tls: TlsFiles | None = None
) -> AsyncGenerator[Bridge]:
    env = {"EVENTS_PORT": str(seen.port)} if seen else {}
    options = ServeOptions(raw_command(*flags), port=port, token=Token(TOKEN), tls=tls, env=env)
    async with Bridge(options) as running:
        yield running


async def failure(configs: list[ServerConfig], connect_timeout_s: float = 60) -> str:
    async with ServerManager(configs, connect_timeout_s=connect_timeout_s) as manager:
        return manager.failed["far"]


async def test_a_published_server_answers_from_behind_the_bridge() -> None:
    command = (sys.executable, "-m", "mcp_server_time")
    async with bridge_process(command=command, environ={"MCP_BRIDGE_TOKEN": TOKEN}) as running:
        servers = far(running.url)
        assert servers[0].transport == "websocket"
        async with ServerManager(servers, connect_timeout_s=60) as manager:
            assert [tool.name for tool in await manager.list_tools()] == [
                "far__get_current_time",
                "far__convert_time",
            ]
            result = await manager.call_tool("far__get_current_time", {"timezone": "Asia/Tokyo"})
            assert result.value["timezone"] == "Asia/Tokyo"
            wrong = await manager.call_tool("far__get_current_time", {"timezone": "Mars/Olympus"})
            assert wrong.is_error
        running.signal(signal.SIGTERM)
        assert await running.ended() == 0


async def test_giant_answers_are_cut_and_one_over_the_cap_harms_no_other() -> None:
    limits = Limits(max_result_chars=1000)
    async with bridge() as running, ServerManager(far(running.url), limits=limits) as manager:
        giant = await manager.call_tool("far__giant", {"chars": 5_000_000})
        assert giant.value == "x" * 1000 + "\n[cut here: 1000 of about 5000000 characters]"
        with pytest.raises(ServerError, match="over 16 MiB; ask for less"):
            await manager.call_tool("far__giant", {"chars": 17_000_000})
        assert (await manager.call_tool("far__echo", {"a": 1})).value["a"] == 1


async def test_cancelling_and_deadlines_reach_the_process(seen: Events) -> None:
    async with (
        bridge(seen=seen) as running,
        ServerManager(far(running.url), connect_timeout_s=60) as manager,
    ):
        call = asyncio.create_task(manager.call_tool("far__wait"))
        await seen.wait_for("wait started")
        call.cancel()
        await seen.wait_for("cancelled")
        with pytest.raises(CallTimeout):
            await manager.call_tool("far__wait", timeout_s=2.0)
        await seen.wait_for("cancelled")


async def test_leaving_ends_the_process(seen: Events) -> None:
    async with bridge("stubborn", seen=seen) as running:
        async with ServerManager(far(running.url), connect_timeout_s=60):
            pid = await seen.pid()
            assert lives(pid)
        await running.drain(60)
        assert not lives(pid)


async def test_a_bridge_that_stops_fails_its_calls_and_the_next_call_finds_the_new_one(
    seen: Events,
) -> None:
    async with (
        bridge(seen=seen) as running,
        ServerManager(far(running.url), connect_timeout_s=60) as manager,
    ):
        call = asyncio.create_task(manager.call_tool("far__wait"))
        await seen.wait_for("wait started")
        await running.drain(0)
        said = r"\(1001: the bridge is shutting down\); the next call connects again"
        with pytest.raises(ServerUnavailable, match=said):
            await call
        assert "far" in manager.failed
        async with bridge(port=running.port):
            assert (await manager.call_tool("far__echo", {"a": 1})).value["a"] == 1


async def test_a_far_process_that_dies_is_told_with_its_last_words(
    seen: Events, tmp_path: Path
) -> None:
    async with bridge(f"needs={tmp_path / 'never'}") as running:
        told = await failure(far(running.url))
    assert told.startswith(
        "closed the connection (1011: the server exited with code 1: the file is"
    )
    assert told.endswith("look into its bridge's log")


async def test_a_far_process_that_never_answers_fails_at_the_deadline(seen: Events) -> None:
    async with bridge("deaf", seen=seen) as running:
        told = await failure(far(running.url), 2)
        # A busy machine may let the deadline of the whole come first.
        assert re.search(r"was not ready within 2 s|within 4 s", told)
        pid = await seen.pid()
        await running.drain(60)
        assert not lives(pid)


async def test_who_cannot_connect_is_told_why_and_how_to_fix_it() -> None:
    async with bridge() as running:
        assert await failure(far(running.url, f"{TOKEN}-no-longer")) == (
            "refused the connection (HTTP 401); set or fix its token"
        )
        assert "(HTTP 404); fix the path" in await failure(far(f"{running.url}/else"))
        rebound = far(running.url, headers={"Origin": "https://page.example.com"})
        assert "(HTTP 403)" in await failure(rebound)
        url = running.url
    assert await failure(far(url)) == f"nothing answers at {url[:-4]}; start it, or fix the url"

    async def wrong(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        writer.close()

    async with await asyncio.start_server(wrong, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        told = await failure(far(f"ws://127.0.0.1:{port}"))
    assert told.startswith(f"is no WebSocket server at ws://127.0.0.1:{port}")


async def test_the_token_follows_no_redirect() -> None:
    reached: list[Headers] = []

    def caught(connection: ServerConnection, request: Request) -> Response | None:
        reached.append(request.headers)
        return None

    async def nothing(connection: ServerConnection) -> None:
        await connection.wait_closed()

    async with serve(nothing, "127.0.0.1", 0, process_request=caught) as trap:
        where = f"ws://127.0.0.1:{trap.sockets[0].getsockname()[1]}/"

        def redirect(connection: ServerConnection, request: Request) -> Response | None:
            return Response(302, "Found", Headers({"Location": where, "Content-Length": "0"}))

        async with serve(nothing, "127.0.0.1", 0, process_request=redirect) as first:
            url = f"ws://127.0.0.1:{first.sockets[0].getsockname()[1]}"
            assert "HTTP 302" in await failure(far(url))
    assert reached == []


Answer = Callable[[ServerConnection, dict[str, object]], Awaitable[None]]


@asynccontextmanager
async def home_made(answer: Answer) -> AsyncGenerator[str]:
    """A WebSocket server that shakes hands as MCP does, and leaves the rest to `answer`."""

    async def handle(connection: ServerConnection) -> None:
        async for text in connection:
            request = json.loads(text)
            told: dict[str, object] = {}
            if request["method"] == "initialize":
                info = {"name": "home-made", "version": "1"}
                about = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
                told = {"result": {**about, "serverInfo": info}}
            elif request["method"] == "tools/list":
                told = {"result": {"tools": [{"name": "try", "inputSchema": {"type": "object"}}]}}
            elif request["method"] == "tools/call":
                await answer(connection, request)
            elif "id" in request:
                told = {"error": {"code": -32601, "message": "unknown"}}
            if told:
                await connection.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], **told}))

    async with serve(
        handle, "127.0.0.1", 0, subprotocols=[Subprotocol("mcp")], compression=None
    ) as running:
        yield f"ws://127.0.0.1:{running.sockets[0].getsockname()[1]}"


async def test_nonsense_between_messages_is_passed_over() -> None:
    async def answer(connection: ServerConnection, request: dict[str, object]) -> None:
        for text in ("no json", "[1, 2]", '{"jsonrpc": "2.0"}', "x" * 200_000):
            await connection.send(text)
        result = {"content": [{"type": "text", "text": "here"}]}
        await connection.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}))

    async with home_made(answer) as url, ServerManager(far(url), connect_timeout_s=60) as manager:
        assert (await manager.call_tool("far__try")).value == "here"


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ("x" * 17_000_000, "sent a message over 16 MiB"),
        (None, "the connection broke"),
        ((4000, f"go away, {TOKEN}"), r"closed the connection \(4000: go away, \*\*\*\)"),
    ],
)
async def test_a_server_that_breaks_the_connection_is_told_in_words(
    sent: str | bytes | tuple[int, str] | None, said: str
) -> None:
    async def answer(connection: ServerConnection, request: dict[str, object]) -> None:
        match sent:
            case None:
                connection.transport.abort()
            case (code, reason):
                await connection.close(code, reason)
            case _:
                await connection.send(sent)

    async with home_made(answer) as url, ServerManager(far(url), connect_timeout_s=60) as manager:
        with pytest.raises(ServerUnavailable, match=said):
            await manager.call_tool("far__try")


def certificate(folder: Path, name: str) -> TlsFiles:
    """Signed by itself, for 127.0.0.1."""
    x509 = pytest.importorskip("cryptography.x509", reason="no package cryptography")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(here, critical=False)
        .sign(key, hashes.SHA256())
    )
    files = TlsFiles(folder / f"{name}.pem", folder / f"{name}.key")
    files.cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    assert files.key is not None
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


async def test_a_call_goes_over_tls_and_only_to_a_certificate_that_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = certificate(tmp_path, "ours")
    async with bridge(tls=files) as running:
        assert running.url.startswith("wss://")
        assert "has no certificate to be trusted" in await failure(far(running.url))
        monkeypatch.setenv("SSL_CERT_FILE", str(files.cert))
        async with ServerManager(far(running.url), connect_timeout_s=60) as manager:
            assert (await manager.call_tool("far__echo", {"a": 1})).value["a"] == 1
        plain = await failure(far(running.url.replace("wss", "ws")))
        assert plain.startswith(("is no WebSocket server", "nothing answers"))


def test_certificates_that_do_not_fit_are_told(tmp_path: Path) -> None:
    ours, theirs = certificate(tmp_path, "ours"), certificate(tmp_path, "theirs")
    for files, said in (
        (TlsFiles(ours.cert, theirs.key), "key values mismatch; give a PEM certificate"),
        (TlsFiles(ours.cert), "give a PEM certificate"),
        (TlsFiles(tmp_path / "none.pem"), "No such file or directory; fix their paths"),
    ):
        with pytest.raises(ConfigError, match=said):
            Bridge(ServeOptions(raw_command(), tls=files))


async def test_a_token_does_not_leave_the_machine_unencrypted() -> None:
    entry = {"url": "ws://tools.example.com", "token": TOKEN}
    (refused,) = parse_servers(json.dumps({"far": entry}))
    assert "ws:// goes over the network unencrypted; use wss://" in refused.fault
    (vouched,) = parse_servers(json.dumps({"far": {**entry, "allow": ["http"]}}))
    told = await failure([dataclasses.replace(vouched, allow=frozenset())])
    assert "goes over the network unencrypted" in told


def test_the_address_says_that_it_is_a_websocket() -> None:
    def transport(**entry: str) -> str:
        return parse_servers(json.dumps({"a": entry}))[0].transport

    assert transport(url="ws://localhost:1") == "websocket"
    assert transport(url="WSS://example.com/x") == "websocket"
    assert transport(url="wss://example.com", type="websocket") == "websocket"
    assert transport(url="http://localhost") == "http"
    for wrong in (
        {"url": "ws://localhost", "transport": "http"},
        {"url": "https://x.com", "type": "ws"},
    ):
        (config,) = parse_servers(json.dumps({"a": wrong}))
        assert "does not go with that url; remove it" in config.fault
