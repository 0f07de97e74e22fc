"""`caal-node login SERVER`: a person signs in to an MCP server, once for all rooms to come."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import secrets
import socket
import tempfile
import threading
import webbrowser
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

import typer

import mcp_bridge
from caal_node.cli.output import standard_input, typed_lines
from caal_node.config.mcp_file import load_mcp_servers
from caal_node.config.settings import Settings
from caal_node.core import paths
from caal_node.core.counted import counted
from caal_node.core.errors import ConfigError
from mcp_bridge.core.files import make_private_folder
from mcp_bridge.transports.oauth import MAX_URL_CHARS

# The page on this machine that a browser is sent back to at the end of a sign-in.
#
# Every program and every page in a browser here can reach it. So it takes one answer alone: that
# which repeats the secret (`state`) of the page that was opened, asked for by its own address. All
# else gets a short refusal, and whoever is slow, long or many is closed.

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


SIGN_IN_S: Final = 600.0
"""A person has this long for passwords, second factors and second thoughts."""


async def login(settings: Settings, name: str, *, browser: bool = True) -> None:
    """Sign in to the server `name` and keep what it gives, in place of an earlier sign-in.

    Args:
        browser: opens the page. Where it is False, for a machine without a browser, the page is
            only printed, and the person types in the address that it ends at.

    Raises:
        ConfigError: there is no such server, it wants no sign-in, or it failed.
    """
    config = await asyncio.to_thread(_find_server, settings, name)
    config = dataclasses.replace(config, enabled=True, connect_timeout_s=SIGN_IN_S)
    sign_ins = mcp_bridge.SignIns(await asyncio.to_thread(_sign_in_folder))
    asked = False
    async with AsyncExitStack() as stack:
        redirect = await stack.enter_async_context(RedirectServer())

        async def sign_in(server: str, page: str) -> str:
            nonlocal asked
            asked = True
            return await (redirect.open_page if browser else _ask_for_address)(server, page)

        oauth = mcp_bridge.OAuth(
            sign_in=sign_in,
            redirect_uri=redirect.address,
            stores=sign_ins.anew,
            client_name="caal-node",
        )
        manager = mcp_bridge.ServerManager([config], oauth=oauth, ready_s=2 * SIGN_IN_S)
        await stack.enter_async_context(manager)
        if why := manager.failed.get(name):
            raise ConfigError(f"{name}: {why}")
        count = counted(len(await manager.list_tools()), "tool")
    if not asked:
        raise ConfigError(f"{name} lets anybody in; there is nothing to sign in to")
    if not await sign_ins(config).known():
        raise ConfigError(f"the sign-in to {name} could not be kept; the log says why")
    typer.echo(f"signed in to {name}: {count}. Live rooms have them after /reload-tools.")


async def logout(settings: Settings, name: str) -> None:
    """Forget the sign-in to the server `name`. The server itself does not learn of it.

    Raises:
        ConfigError: there is no such server, or nobody has signed in to it.
    """
    config = await asyncio.to_thread(_find_server, settings, name)
    sign_ins = mcp_bridge.SignIns(paths.sign_ins())
    try:
        forgotten = await asyncio.to_thread(sign_ins.forget, config)
    except OSError as error:
        raise _unwritable(error) from None
    if not forgotten:
        raise ConfigError(f"nobody has signed in to {name}")
    typer.echo(f"the sign-in to {name} is forgotten here; its tokens end when it says")


def _sign_in_folder() -> Path:
    """Make the folder of the sign-ins and try to write in it, before a person is bothered.

    Raises:
        ConfigError: it cannot be written.
    """
    folder = paths.sign_ins()
    try:
        make_private_folder(folder)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise _unwritable(error) from None


def _unwritable(error: OSError) -> ConfigError:
    return ConfigError(f"{paths.sign_ins()} cannot be written ({error.strerror}); fix its mode")


def _find_server(settings: Settings, name: str) -> mcp_bridge.ServerConfig:
    """Return the server of that name.

    Raises:
        ConfigError: there is none, or one cannot sign in to it.
    """
    try:
        configs = load_mcp_servers(settings.mcp_servers)
    except mcp_bridge.ConfigError as error:
        raise ConfigError(str(error)) from error
    remote = {config.name: config for config in configs if mcp_bridge.takes_sign_in(config)}
    if name in remote:
        return remote[name]
    if fault := next((config.fault for config in configs if config.name == name), ""):
        raise ConfigError(fault)
    if any(config.name == name for config in configs):
        raise ConfigError(f"{name} needs no sign-in: it is started here, or has a token of its own")
    known = ", ".join(remote) or "there are none"
    raise ConfigError(f"{settings.mcp_servers} has no server {name!r}; one can sign in to: {known}")


async def _ask_for_address(server: str, page: str) -> str:
    typer.echo(f"Sign in to {server} on this page:\n\n  {page}\n")
    typer.echo("It ends at an address that begins with http://127.0.0.1 and shows nothing.")
    typer.echo("That address: ", nl=False)
    async with aclosing(typed_lines(standard_input(), max_chars=MAX_URL_CHARS)) as lines:
        async for line in lines:
            return line.strip()
    raise mcp_bridge.ServerUnavailable(server, "no address was typed in")
