"""`caal-node n8n check|try`: for those who build workflows to be spoken to."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Check workflows, and try one as the agent would.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)


@app.callback()
def quiet() -> None:
    """Check workflows, and try one as the agent would."""
    # What is wrong is said in the output.
    logging.basicConfig(level=logging.ERROR)


@app.command()
def check(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE...", help="Workflows that n8n exported.")
    ] = None,
    instance: Annotated[
        bool, typer.Option("--instance", help="Every active workflow at N8N_URL.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout, nothing else.")] = False,
) -> None:
    """Say what keeps workflows from being good voice tools, and how to mend it.

    Exit code 1 where a workflow cannot be called, or will be called wrongly.
    """
    from caal_node.cli.n8n_check import check_files, check_instance
    from caal_node.config.settings import load_settings

    if instance == bool(files):
        raise typer.BadParameter("name files, or write --instance")
    if instance:
        sound = asyncio.run(check_instance(load_settings(), as_json=as_json))
    else:
        sound = check_files(files or [], as_json=as_json)
    raise typer.Exit(0 if sound else 1)


@app.command(name="try")
def try_(
    name: Annotated[str, typer.Argument(help="The tool, as `caal-node tools` lists it.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE...", help="The call's arguments.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout, nothing else.")] = False,
) -> None:
    """Run a workflow as the agent would; show what the model and the person get.

    It is a real run. Exit code 1 where it failed.
    """
    from caal_node.cli.n8n_try import try_workflow
    from caal_node.config.settings import load_settings

    worked = asyncio.run(try_workflow(load_settings(), name, arguments or [], as_json=as_json))
    raise typer.Exit(0 if worked else 1)
