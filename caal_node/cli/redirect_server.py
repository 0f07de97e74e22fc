"""The page on this machine that a browser is sent back to at the end of a sign-in.

Every program and every page in a browser here can reach it. So it takes one answer alone: that
which repeats the secret (`state`) of the page that was opened, asked for by its own address. All
else gets a short refusal, and whoever is slow, long or many is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import threading
import webbrowser
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

import typer

from mcp_bridge.transports.oauth import MAX_URL_CHARS

REQUEST_S: Final = 5.0
"""Seconds for a browser to send its request. Some connect ahead of time and say nothing."""
MAX_CONNECTIONS: Final = 16
"""At once. One more closes the oldest, which had its time."""
_MAX_REQUEST_BYTES: Final = MAX_URL_CHARS + 16 * 1024
"""The address and the browser's own headers."""
_PATH: Final = "/back"
_DONE: Final = "<!doctype html><title>caal-node</title><p>That is all. You can close this page."
_NOT_OURS: Final = "<!doctype html><title>caal-node</title><p>This page belongs to no sign-in here."


class RedirectServer:
    """Serves that page on a port of its own. It is used for one sign-in at a time."""

    def __init__(self) -> None:
        self._arrived: asyncio.Future[str] | None = None
        self._state = ""
        """What the answer has to repeat."""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._host = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.address = f"http://{self._host}{_PATH}"
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], None] = {}
        """In the order in which they came."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._accept, sock=self._socket, limit=_MAX_REQUEST_BYTES
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def open_page(self, server: str, page: str) -> str:
        """Open `page` in the browser, and return the address that the browser is sent back to."""
        self._arrived = asyncio.get_running_loop().create_future()
        self._state = parse_qs(urlsplit(page).query).get("state", [""])[-1]
        typer.echo(f"Sign in to {server} on this page, which opens by itself:\n\n  {page}\n")
        # A pool's thread would be joined, and some browsers are programs that run until they close.
        threading.Thread(target=_open_browser, args=(page,), name="browser", daemon=True).start()
        return await self._arrived

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            next(iter(self._connections)).cancel()
        connection = asyncio.create_task(self._serve(reader, writer), name="caal-redirect")
        self._connections[connection] = None
        connection.add_done_callback(lambda done: self._connections.pop(done, None))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_S):
                head = await reader.readuntil(b"\r\n\r\n")
                status, page = self._answer(head.decode("latin-1"))
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(page)}"
                    f"\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n{page}".encode()
                )
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def _answer(self, head: str) -> tuple[str, str]:
        """Take a request, and return the status and the page that answer it."""
        first, *headers = head.split("\r\n")
        hosts = [h.partition(":")[2].strip() for h in headers if h.lower().startswith("host:")]
        method, _, rest = first.partition(" ")
        target = rest.rpartition(" ")[0]
        if hosts != [self._host] or method != "GET" or urlsplit(target).path != _PATH:
            return "404 Not Found", _NOT_OURS
        state = parse_qs(urlsplit(target).query).get("state", [""])[0]
        if not self._state or not secrets.compare_digest(state.encode(), self._state.encode()):
            return "400 Bad Request", _NOT_OURS
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(f"http://{self._host}{target}")
        return "200 OK", _DONE


def _open_browser(page: str) -> None:
    with contextlib.suppress(webbrowser.Error, OSError):  # the page is on the screen as well
        webbrowser.open(page)
