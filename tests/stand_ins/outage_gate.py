"""Stands before a server and takes it away: cut like a process that was killed, or only silent."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import Final, Self
from urllib.parse import urlsplit, urlunsplit

_CHUNK: Final = 64 * 1024
_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: closing sends RST, as the kernel does for a process that was killed."""


class Gate:
    """`url` leads through the gate to the server at the URL that it was made with."""

    def __init__(self, url: str) -> None:
        self._to: Final = urlsplit(url)
        self._listening: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""

    async def __aenter__(self) -> Self:
        await self._listen(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cut()

    async def cut(self) -> None:
        """Every connection is reset, and nobody listens any more."""
        if self._listening is not None:
            self._listening.close()
        for writer in tuple(self._writers):
            sock = writer.get_extra_info("socket")
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._open.set()

    def silence(self) -> None:
        """Connections stay and new ones are taken, but not a byte passes any more."""
        self._open.clear()

    async def restore(self) -> None:
        """The server is back, at the same address; what was silenced goes on."""
        self._open.set()
        if self._listening is None or not self._listening.is_serving():
            await self._listen(urlsplit(self.url).port or 0)

    async def _listen(self, port: int) -> None:
        self._listening = await asyncio.start_server(self._connect, "127.0.0.1", port)
        port = self._listening.sockets[0].getsockname()[1]
        self.url = urlunsplit(self._to._replace(netloc=f"127.0.0.1:{port}"))

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._writers.add(writer)
        try:
            await self._open.wait()
            inner, outer = await asyncio.open_connection(self._to.hostname, self._to.port)
            self._writers.add(outer)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._pass_on(reader, outer))
                    both.create_task(self._pass_on(inner, writer))
            finally:
                self._writers.discard(outer)
                outer.transport.abort()
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            await self._open.wait()
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
