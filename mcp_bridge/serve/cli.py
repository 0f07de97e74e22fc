"""The command line: `mcp-bridge serve -- COMMAND...` and `mcp-bridge unit`."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from mcp_bridge.core.errors import BridgeError, ConfigError
from mcp_bridge.core.sanitize import drop_message_excerpts
from mcp_bridge.serve.bridge import Bridge
from mcp_bridge.serve.options import (
    DEFAULT_PORT,
    TOKEN_VARIABLE,
    ServeLimits,
    ServeOptions,
    TlsFiles,
    find_token,
)

logger = logging.getLogger("mcp_bridge.serve")

NAME: Final = "mcp-bridge"
PIPE_COLUMNS: Final = 4_096
"""No line of help is as long, so a pipe gets whole ones."""
_HELP: Final = {"help_option_names": ["-h", "--help"]}
_ON_TERMINAL: Final = all(
    stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr)
)
"""Elsewhere help and wrong usage are printed without boxes."""

app = typer.Typer(
    context_settings=_HELP if _ON_TERMINAL else {**_HELP, "terminal_width": PIPE_COLUMNS},
    rich_markup_mode="rich" if _ON_TERMINAL else None,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # locals hold the token
)
_DEFAULTS: Final = ServeLimits()
_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_UNIT_FILE: Final = Path(__file__).with_name("mcp-bridge.service")
_INSTALLED: Final = "/usr/bin/mcp-bridge"
"""The path of the program in the unit's file."""


def main(arguments: Sequence[str] | None = None, program: Sequence[str] = (NAME,)) -> None:
    """Runs the command line. A known error is one line on stderr and exit code 1.

    Args:
        arguments: What stands behind the program; None takes them from the process.
        program: The words that are typed before them, where this is a part of another one.
    """
    drop_message_excerpts()
    try:
        app(arguments, prog_name=" ".join(program))
    except BridgeError as error:
        screen = Console(stderr=True, highlight=False, soft_wrap=True)  # it obeys NO_COLOR
        screen.print(Text(f"{program[0]}: {error}", style="red"))
        sys.exit(1)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{NAME} {version('caal-node')}")
        raise typer.Exit


@app.callback()
def begin(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="The version, and nothing else.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """MCP servers from one machine to another."""


@app.command(context_settings={"allow_interspersed_args": False})
def serve(
    command: Annotated[list[str], typer.Argument(help="The stdio server and its arguments.")],
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = DEFAULT_PORT,
    token_file: Annotated[
        Path | None, typer.Option(help=f"Holds the clients' token; else {TOKEN_VARIABLE}.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="PEM, the whole chain.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM, where it is apart.")] = None,
    allow_origin: Annotated[
        list[str], typer.Option(help="A web page that may connect; may be repeated.")
    ] = [],  # noqa: B006 - typer takes the default as it stands and changes nothing
    allow_host: Annotated[
        list[str], typer.Option(help="A name that clients reach this by; may be repeated.")
    ] = [],  # noqa: B006
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Others may reach this without token or TLS.")
    ] = False,
    env: Annotated[
        list[str], typer.Option(help="NAME or NAME=VALUE for the server; may be repeated.")
    ] = [],  # noqa: B006
    cwd: Annotated[str | None, typer.Option(help="The folder to start the server in.")] = None,
    max_connections: Annotated[int, typer.Option(min=1)] = _DEFAULTS.max_connections,
    max_per_client: Annotated[int, typer.Option(min=1)] = _DEFAULTS.max_per_client,
    max_message_bytes: Annotated[
        int, typer.Option(min=1024, help="Of one message from a client.")
    ] = _DEFAULTS.max_message_bytes,
    max_line_bytes: Annotated[
        int, typer.Option(min=1024, help="Of one message from the server.")
    ] = _DEFAULTS.max_line_bytes,
    open_timeout: Annotated[float, typer.Option(min=0.1)] = _DEFAULTS.open_timeout_s,
    ping_interval: Annotated[float, typer.Option(min=0.1)] = _DEFAULTS.ping_interval_s,
    ping_timeout: Annotated[float, typer.Option(min=0.1)] = _DEFAULTS.ping_timeout_s,
    idle_timeout: Annotated[float, typer.Option(min=0, help="0: never.")] = _DEFAULTS.idle_s,
    drain: Annotated[
        float, typer.Option(min=0, help="Seconds for calls under way at SIGTERM.")
    ] = _DEFAULTS.drain_s,
) -> None:
    """Serve a stdio MCP server over WebSocket; each connection gets a process of its own."""
    if tls_key is not None and tls_cert is None:
        raise ConfigError("--tls-key goes with --tls-cert; give both")
    options = ServeOptions(
        command=tuple(command),
        host=host,
        port=port,
        token=find_token(token_file, os.environ),
        tls=TlsFiles(tls_cert, tls_key) if tls_cert else None,
        allow_origins=frozenset(allow_origin),
        allow_hosts=frozenset(allow_host),
        insecure=insecure,
        env=_variables(env, os.environ),
        cwd=cwd,
        limits=ServeLimits(
            max_connections=max_connections,
            max_per_client=max_per_client,
            max_message_bytes=max_message_bytes,
            max_line_bytes=max_line_bytes,
            open_timeout_s=open_timeout,
            ping_interval_s=ping_interval,
            ping_timeout_s=ping_timeout,
            idle_s=idle_timeout,
            drain_s=drain,
        ),
    )
    logging.basicConfig(
        level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    asyncio.run(_serve(options))


def _require_program(name: str, cwd: str | None) -> None:
    """Raises: ConfigError; else each client would be the first to hear that nothing can start."""
    path = Path(cwd or ".", name) if os.sep in name else name
    if shutil.which(path) is None:
        raise ConfigError(f"the command {name!r} was not found; install it, or fix its path")


@app.command()
def unit(context: typer.Context) -> None:
    """Print a hardened systemd unit."""
    name, *words = (context.find_root().info_name or NAME).split()
    # What runs now is ours; what has its name on PATH may be another distribution's.
    own = Path(sys.argv[0]).absolute()
    found = own if own.stem == name else shutil.which(name) or own
    typer.echo(systemd_unit(str(found), words), nl=False)


def systemd_unit(program: str, words: Sequence[str] = ()) -> str:
    """Gives the systemd unit.

    Args:
        program: The absolute path of `mcp-bridge`, as systemd wants it, or of what has it as a
            part, under `words`.
    """
    quoted = f'"{program}"' if " " in program else program
    text = _UNIT_FILE.read_text(encoding="utf-8")
    text = text.replace(f"#   {NAME} unit", f"#   {' '.join((Path(program).name, *words))} unit")
    return text.replace(f"ExecStart={_INSTALLED}", f"ExecStart={' '.join((quoted, *words))}")


async def _serve(options: ServeOptions) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with Bridge(options) as bridge:
        _require_program(options.command[0], options.cwd)

        def stop() -> None:
            if told.is_set():
                bridge.hurry()
            told.set()

        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, stop)
        for lack in () if options.is_local else options.missing():
            logger.warning("other machines may reach this without %s", lack)
        if options.is_local and options.token is None:
            logger.warning("every user of this machine may connect; --token-file keeps others out")
        logger.info("listening at %s", bridge.url)
        await told.wait()
        logger.info("stopping: calls under way have %g s", options.limits.drain_s)
        await bridge.drain()


def _variables(written: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in written:
        name, given, value = item.partition("=")
        if not given and name not in environ:
            raise ConfigError(f"--env {name}: it is not set here; set it, or write {name}=VALUE")
        found[name] = value if given else environ[name]
    return found
