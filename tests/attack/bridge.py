"""Clients of `mcp-bridge serve` that want its other clients to have nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode

from mcp_bridge.serve import Bridge, ServeLimits, ServeOptions
from tests.attack.harness import Ending, Probe, attack
from tests.stand_ins.bridge_process import client, echo, raw_command

FLOOD: Final = r"""
import socket, sys
peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
peer.sendall(
    b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mcp\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
peer.recv(1000)
try:
    while True:
        peer.sendall(bytes.fromhex(sys.argv[2]) * 500)
except OSError:
    print("cut off")
"""
"""Opens a WebSocket and sends a frame for ever."""
DEAF: Final = (sys.executable, "-S", "-E", "-c", "import time; time.sleep(60)")


@asynccontextmanager
async def bridge(*command: str, **limits: Any) -> AsyncGenerator[Bridge]:
    options = ServeOptions(command or raw_command(), port=0, limits=ServeLimits(**limits))
    async with Bridge(options) as running:
        async with client(running.url) as warm:
            await echo(warm, "warm") if not command else None
        yield running


async def served(running: Bridge) -> str:
    async with client(running.url) as socket:
        return await echo(socket, "served all the same")


@attack("bridge", "200 connections of the client's own address that say nothing", deadline_s=3)
async def half_open(probe: Probe) -> Ending:
    async with bridge() as running:
        idle: list[asyncio.StreamWriter] = []

        async def work() -> str:
            for _ in range(200):
                _, writer = await asyncio.open_connection("127.0.0.1", running.port)
                idle.append(writer)
            return await served(running)

        try:
            heard = await probe.watch(work)
        except (OSError, EOFError, ConnectionClosed) as error:
            heard = type(error).__name__
        for writer in idle:
            writer.close()
    return Ending(kept=heard == "served all the same", heard=heard)


@attack("bridge", "a header that comes byte by byte", deadline_s=3)
async def slow_header(probe: Probe) -> Ending:
    async with bridge(open_timeout_s=1.0) as running:

        async def work() -> str:
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            writer.write(b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
            reading = asyncio.create_task(reader.read())
            while not reading.done():
                writer.write(b"x")
                await asyncio.sleep(0.05)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await reading
            return await served(running)

        heard = await probe.watch(work)
    return Ending(kept=heard == "served all the same", heard=heard)


async def closing_words(socket: ClientConnection) -> str:
    try:
        while True:
            await socket.recv()
    except ConnectionClosed as closed:
        return closed.rcvd.reason if closed.rcvd else "cut off"


@attack("bridge", "a flood for a process that reads nothing", deadline_s=4)
async def deaf_process(probe: Probe) -> Ending:
    message = '{"jsonrpc":"2.0","method":"notifications/x","params":"' + "x" * 100_000 + '"}'
    async with bridge(*DEAF, stall_s=1.0) as running, client(running.url) as socket:

        async def flood() -> None:
            with contextlib.suppress(ConnectionClosed):
                while True:
                    await socket.send(message)

        async def work() -> str:
            flooding = asyncio.create_task(flood())
            heard = await closing_words(socket)
            await flooding
            return heard

        heard = await probe.watch(work)
    return Ending(kept="does not read its input" in heard, heard=heard)


@attack("bridge", "pings for ever, whose answers are not read", deadline_s=10)
async def pings(probe: Probe) -> Ending:
    """From a process of its own, as framing them takes longer than answering."""
    ping = Frame(Opcode.PING, os.urandom(100)).serialize(mask=True)
    async with bridge() as running:

        async def work() -> str:
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-S", "-E", "-c", FLOOD, str(running.port), ping.hex()),
                stdout=asyncio.subprocess.PIPE,
            )
            said, _ = await child.communicate()
            return f"{said.decode().strip()}; {await served(running)}"

        heard = await probe.watch(work)
    return Ending(kept=heard == "cut off; served all the same", heard=heard)
