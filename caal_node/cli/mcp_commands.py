"""`caal-node mcp`: servers copied from other programs, what they ask for, and the remote bridge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

mcp_app = typer.Typer(
    help="Copy MCP servers from other programs, answer what they ask for, or serve one to others.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
_PASS_ON: Final[dict[str, Any]] = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,  # from the server's command on, all is the server's
    "help_option_names": [],
}


@mcp_app.callback()
def mcp() -> None:
    """Copy MCP servers from other programs, answer what they ask for, or serve one to others."""


@mcp_app.command("import")
def import_servers(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROGRAM|FILE]...", help="Where to look; default: everywhere."),
    ] = None,
    server: Annotated[
        list[str] | None, typer.Option("--server", "-s", help="Copy this server; may be repeated.")
    ] = None,
    copy_all: Annotated[bool, typer.Option("--all", help="Copy every server.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be copied.")
    ] = False,
    to: Annotated[
        Path | None, typer.Option(help="The file to copy to; default: CAAL_MCP_SERVERS.")
    ] = None,
) -> None:
    """Find the servers of VS Code, Claude, Cursor, Zed, Goose and others, and copy what is chosen.

    Nothing is overwritten: a server whose name is taken is left out.
    """
    from caal_node.cli import mcp_import as work
    from caal_node.config.settings import load_settings

    target = to or load_settings().mcp_servers
    work.import_servers(target, sources or [], server or [], copy_all=copy_all, dry_run=dry_run)


@mcp_app.command()
def inputs(
    file: Annotated[
        Path | None, typer.Argument(help="A file of servers; default: CAAL_MCP_SERVERS.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Ask also for what was answered before.")
    ] = False,
) -> None:
    """Ask for the values that servers want (${input:ID}), and keep them for their user alone."""
    from caal_node.cli import mcp_import as work
    from caal_node.config.settings import load_settings

    work.answer_inputs(file or load_settings().mcp_servers, again=again)


@mcp_app.command(context_settings=_PASS_ON)
def serve(context: typer.Context) -> None:
    """Serve a stdio MCP server over WebSocket, as `mcp-bridge serve` does."""
    _bridge("serve", context)


@mcp_app.command(context_settings=_PASS_ON)
def unit(context: typer.Context) -> None:
    """Print a hardened systemd unit for it, as `mcp-bridge unit` does."""
    _bridge("unit", context)


def _bridge(command: str, context: typer.Context) -> None:
    """Run a command of `mcp-bridge`, whose own name other distributions have as well."""
    from mcp_bridge.serve.cli import main

    main([command, *context.args], program=("caal-node", "mcp"))
