"""What stand-in servers tell a test, and how tests reach them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server import Server
from mcp.server.sse import SseServerTransport
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_bridge import ServerConfig
from tests.stand_ins.mcp_stand_in import StandIn

ROOT = Path(__file__).parents[2]
RAW = Path(__file__).with_name("raw_mcp_server.py")
PATIENCE_S = 20.0
"""For an event that must come; a test that runs into it has failed."""


class Events:
    """Lines from any number of servers, in the order they came."""

    def __init__(self) -> None:
        self.port = 0
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._seen: list[str] = []

    def tell(self, line: str) -> None:
        self._lines.put_nowait(line)

    async def wait_for(self, wanted: str) -> str:
        """The next line that begins so; what comes before it is kept for later."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for line in self._seen:
                    if line.startswith(wanted):
                        self._seen.remove(line)
                        return line
                self._seen.append(await self._lines.get())

    def count(self, line: str) -> int:
        """How many such lines came and were not waited for."""
        while not self._lines.empty():
            self._seen.append(self._lines.get_nowait())
        return self._seen.count(line)

    def any(self, beginning: str) -> bool:
        """Whether a line that begins so came and was not waited for."""
        self.count("")
        return any(line.startswith(beginning) for line in self._seen)

    async def pid(self) -> int:
        return int((await self.wait_for("pid ")).split()[1])


@asynccontextmanager
async def events() -> AsyncGenerator[Events]:
    found = Events()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                found.tell(line.decode().strip())
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    async with server:
        yield found


def sdk_server(found: Events, name: str = "sdk") -> ServerConfig:
    env = {"PYTHONPATH": str(ROOT), "EVENTS_PORT": str(found.port)}
    return ServerConfig(
        name=name,
        command=sys.executable,
        args=("-m", "tests.stand_ins.mcp_stand_in"),
        env=env,
        allow=frozenset({"env"}),
        connect_timeout_s=60.0,  # the SDK takes a second to import, and far more on a busy machine
    )


def raw_server(
    *flags: str, name: str = "raw", found: Events | None = None, ready_within_s: float = 60.0
) -> ServerConfig:
    """Ready in some 50 ms; a machine that stands still for a while must not fail a test."""
    env = {"EVENTS_PORT": str(found.port)} if found else {}
    args = ("-S", "-E", str(RAW), *flags)
    return ServerConfig(
        name=name,
        command=sys.executable,
        args=args,
        env=env,
        connect_timeout_s=ready_within_s,
    )


class HttpStandIn:
    """A stand-in over HTTP in this process; can be stopped and started on the same port."""

    def __init__(self, found: Events, *, json_response: bool = False, sse: bool = False):
        self.stand_in = StandIn(found.tell)
        self._json_response = json_response
        self._sse = sse
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/{'sse' if sse else 'mcp'}"
        self._server: uvicorn.Server | None = None
        self._task: asyncio.Task[None] | None = None
        self.seen_headers: list[dict[str, str]] = []
        self.refuse_with: int | None = None

    async def start(self) -> None:
        if self._socket.fileno() == -1:
            port = int(self.url.split(":")[2].split("/")[0])
            self._socket = socket.create_server(("127.0.0.1", port))
        server = self.stand_in.server()
        app = (
            sse_app(server)
            if self._sse
            else server.streamable_http_app(json_response=self._json_response)
        )
        config = uvicorn.Config(self._watched(app), log_level="error", timeout_graceful_shutdown=0)
        uvicorn_server = self._server = uvicorn.Server(config)
        self._task = asyncio.create_task(uvicorn_server.serve(sockets=[self._socket]))
        async with asyncio.timeout(PATIENCE_S):
            while not uvicorn_server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.01)

    async def stop(self) -> None:
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            self._server.force_exit = True
            await self._task
            self._server = None
        self.close_socket()

    def close_socket(self) -> None:
        """Until `start`, nothing listens on the port."""
        self._socket.close()

    def _watched(self, app: ASGIApp) -> ASGIApp:
        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                self.seen_headers.append(
                    {name.decode(): value.decode() for name, value in scope["headers"]}
                )
                if self.refuse_with is not None:
                    start = {"type": "http.response.start", "status": self.refuse_with}
                    await send({**start, "headers": []})
                    await send({"type": "http.response.body", "body": b""})
                    return
            await app(scope, receive, send)

        return watched


@asynccontextmanager
async def http_process(found: Events, port: int) -> AsyncGenerator[asyncio.subprocess.Process]:
    """The stand-in over HTTP in a process of its own, which a test may kill."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.stand_ins.mcp_stand_in", str(port)),
        env={**os.environ, "PYTHONPATH": str(ROOT), "EVENTS_PORT": str(found.port)},
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def sse_app(server: Server[Any]) -> ASGIApp:
    transport = SseServerTransport("/messages/")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "uvicorn does without a lifespan"
        if scope["path"] == "/sse":
            async with transport.connect_sse(scope, receive, send) as (read, write):
                await server.run(read, write, server.create_initialization_options())
        else:
            await transport.handle_post_message(scope, receive, send)

    return app


def lives(pid: int) -> bool:
    """Whether a process runs. One that is dead and only waits to be reaped does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in ("Z", "X")
