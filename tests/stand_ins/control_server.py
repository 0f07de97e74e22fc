"""The control API as `caal-node control` serves it, in the test's own loop, and raw callers."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from caal_node.config.settings import load_settings
from caal_node.control.app import make_app, make_server
from caal_node.control.room_agents import LiveKitRooms

TOKEN = "-".join(["a", "long", "random", "token"])
BEARER = f"Authorization: Bearer {TOKEN}\r\n"
READ_BYTES = 1 << 16
START_S = 0.01


@dataclass(frozen=True)
class Answer:
    """One answer's status and content."""

    status: int
    content: bytes

    @cached_property
    def body(self) -> dict[str, Any]:
        """What its JSON holds; nothing where it is none."""
        with contextlib.suppress(ValueError):
            return json.loads(self.content)
        return {}

    @property
    def detail(self) -> str:
        """What an error says, if it has the documented shape."""
        return str(self.body["detail"]) if self.body.get("status") == "error" else ""


@dataclass(frozen=True, slots=True)
class Caller:
    """One connection to the API, and what goes over it byte by byte."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Send what the server takes; it may hang up in the middle."""
        with contextlib.suppress(OSError):
            self.writer.write(data)
            await self.writer.drain()

    async def answer(self) -> Answer | None:
        """The next answer; None where the server has hung up."""
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = head.partition("content-length:")[2].split()
            body = await (self.reader.readexactly(int(length[0])) if length else self.reader.read())
        except (asyncio.IncompleteReadError, OSError):
            return None
        return Answer(int(head.split()[1]), body)

    async def hung_up(self) -> None:
        """Return when the server has closed the connection."""
        with contextlib.suppress(OSError):
            while await self.reader.read(READ_BYTES):
                pass

    def close(self) -> None:
        self.writer.transport.abort()


@dataclass(frozen=True, slots=True)
class ControlServer:
    port: int

    async def connect(self) -> Caller:
        return Caller(*await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24))

    async def ask(
        self, path: str, body: bytes = b"", *, method: str = "POST", header: str = BEARER
    ) -> Answer | None:
        """One request on a connection of its own."""
        caller = await self.connect()
        try:
            await caller.send(request(path, body, method=method, header=header))
            return await caller.answer()
        finally:
            caller.close()


def request(path: str, body: bytes = b"", *, method: str = "POST", header: str = BEARER) -> bytes:
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nHost: c\r\n{header}{length}\r\n".encode() + body


@asynccontextmanager
async def control_server(rooms: LiveKitRooms) -> AsyncGenerator[ControlServer]:
    settings = load_settings({"CAAL_CONTROL_TOKEN": TOKEN}, Path("no-such-caal.toml"))
    server = make_server(make_app(settings, rooms), "127.0.0.1", 0)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(START_S)
    try:
        yield ControlServer(server.servers[0].sockets[0].getsockname()[1])
    finally:
        server.should_exit = True
        await serving
