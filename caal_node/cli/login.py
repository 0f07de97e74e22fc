"""`caal-node login SERVER`: a person signs in to an MCP server, once for all rooms to come."""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Final

import typer

import mcp_bridge
from caal_node.cli.redirect_server import RedirectServer
from caal_node.cli.typed_lines import standard_input, typed_lines
from caal_node.config.mcp_file import load_mcp_servers
from caal_node.config.settings import Settings
from caal_node.core import paths
from caal_node.core.errors import ConfigError
from mcp_bridge.core.files import make_private_folder
from mcp_bridge.transports.oauth import MAX_URL_CHARS

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
        count = len(await manager.list_tools())
    if not asked:
        raise ConfigError(f"{name} lets anybody in; there is nothing to sign in to")
    if not await sign_ins(config).known():
        raise ConfigError(f"the sign-in to {name} could not be kept; the log says why")
    typer.echo(f"signed in to {name}: {count} tools. Live rooms have them after /reload-tools.")


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
    return ConfigError(f"{paths.sign_ins()} cannot be written ({error.strerror}); mend its mode")


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
        raise ConfigError(f"{name} wants no sign-in: it is started here, or has a token of its own")
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
