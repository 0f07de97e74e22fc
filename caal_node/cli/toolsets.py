"""`caal-node tools add`: asks for a toolset's options, tries them, and writes `caal.toml`.

The file is changed and not written anew, so that comments stay. What is a secret goes to `.env`,
and the file names its variable.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import typer
from dotenv import set_key
from rich.markup import escape
from rich.table import Table

from caal_node.cli.output import console, print_table
from caal_node.cli.toolset_file import (
    refuse_unwritable,
    replace_text,
    with_toolset,
    without_toolset,
)
from caal_node.cli.toolset_questions import (
    VARIABLE,
    asked_options,
    is_secret,
    missing_option,
    typed_value,
)
from caal_node.config.env_file import ENV_FILE
from caal_node.config.file import read_text
from caal_node.config.settings import Settings, load_settings
from caal_node.config.toolset_tables import ToolsetTable
from caal_node.core.errors import CaalError, ConfigError
from caal_node.toolsets.base import LOCAL_ZONE, ConfiguredToolset, ToolsetServices
from caal_node.toolsets.registry import (
    checked,
    installed,
    load,
    made_of,
    refuse_doubles,
    tool_names,
)

FILE: Final = Path("caal.toml")
CHECK_S: Final = 30.0
"""Seconds in which what the options name has to answer."""
OWNER_ONLY: Final = 0o600
"""The mode of `.env`, which holds keys."""
STOPPED: Final = 130
"""The exit code of a command that Ctrl-C ended."""


def list_toolsets(settings: Settings, *, as_json: bool) -> None:
    """Print every toolset that is installed, and which are on."""
    rows = [_row(name, settings.toolsets) for name in installed()]
    if as_json:
        print(json.dumps({"toolsets": rows}, ensure_ascii=False))
        return
    table = Table("toolset", "", "what a person can ask for")
    for row in rows:
        table.add_row(*map(escape, (row["name"], "on" if row["on"] else "", row["summary"])))
    print_table(console(), table)
    console().print("caal-node tools add NAME turns one on.", style="dim")


def _row(name: str, tables: Mapping[str, ToolsetTable]) -> dict[str, Any]:
    on = name in tables and tables[name].enabled
    try:
        summary = load(name).SUMMARY
    except ConfigError as error:
        summary = str(error)
    return {"name": name, "on": on, "summary": summary}


def add_toolset(
    settings: Settings, name: str, given: Sequence[str], *, ask: bool, check: bool
) -> None:
    """Turn a toolset on: ask for its options, try them, and write them down.

    Args:
        given: Options as `name=value`, which are not asked for.
        ask: Whether a person is there to answer.
        check: Whether what the options name is tried first.

    Raises:
        ConfigError: an option is wrong or missing, or what it names does not work. Nothing is
            written then.
        typer.Exit: the person wanted no more. Nothing is written then either.
    """
    kind = load(name)
    refuse_unwritable(FILE)
    before = settings.toolsets.get(name)
    options = dict(before.options) if before else {}
    parsed = _parsed(kind, given)
    options |= parsed
    try:
        if ask:
            console().print(f"{name}: {kind.SUMMARY}", markup=False)
            options |= asked_options(kind, options, parsed)
        toolset = _made(settings, name, kind, options, before)
        if check:
            _try(toolset, name)
    except typer.Abort:
        if sys.stdin.isatty():
            _stop()
        raise ConfigError(
            f"{name}: there is no answer to this question. Nothing was written; add --yes, and "
            "--set NAME=VALUE for what has no default"
        ) from None
    except KeyboardInterrupt:
        _stop()
    kept, secrets = _without_secrets(kind, options)
    # The file as it is now: its owner may have written into it while questions were asked.
    text = with_toolset(read_text(FILE), name, kept)
    _write_secrets(secrets)
    replace_text(FILE, text)
    load_settings()  # what was written can be read
    console().print(f"{name} is on: {', '.join(tool_names(toolset))}", markup=False)
    console().print("Rooms that are open have them when they begin anew.", style="dim")


def remove_toolset(settings: Settings, name: str) -> None:
    """Take the table of a toolset out of the file.

    Raises:
        ConfigError: the file has no such table, or cannot be written.
    """
    if name not in settings.toolsets:
        known = ", ".join(settings.toolsets) or "none"
        raise ConfigError(f"{FILE}: there is no toolset {name}; there are {known}")
    refuse_unwritable(FILE)
    replace_text(FILE, without_toolset(read_text(FILE), name))
    console().print(f"{name} is off; rooms that are open keep it until they end.", markup=False)


def _stop() -> NoReturn:
    console(stderr=True).print("\nNothing was written.", markup=False)
    raise typer.Exit(STOPPED)


def _made(
    settings: Settings,
    name: str,
    kind: type[ConfiguredToolset],
    options: Mapping[str, Any],
    before: ToolsetTable | None,
) -> ConfiguredToolset:
    if missing := missing_option(kind, options):
        raise ConfigError(
            f"{name}: {missing} is missing ({kind.Options.model_fields[missing].description}). "
            f"Nothing was written; add --set {missing}=VALUE"
        )
    lines = before.lines if before else dict[str, str]()
    table = ToolsetTable(name, options, base=Path.cwd(), lines=lines)
    toolset = made_of(table, ToolsetServices(timezone=settings.timezone or LOCAL_ZONE))
    refuse_doubles([*_others_that_are_on(settings, name), toolset])
    return toolset


def _others_that_are_on(settings: Settings, name: str) -> list[ConfiguredToolset]:
    others = list[ConfiguredToolset]()
    for table in settings.toolsets.values():
        if table.enabled and table.name != name:
            # One that is broken is `doctor`'s to tell of, and keeps no other from being added.
            with contextlib.suppress(ConfigError):
                others.append(made_of(table, ToolsetServices()))
    return others


def _parsed(kind: type[ConfiguredToolset], given: Sequence[str]) -> dict[str, Any]:
    parsed: dict[str, Any] = {}
    for each in given:
        option, equals, value = each.partition("=")
        if not equals:
            raise ConfigError(f"--set {each}: write name=value")
        if (field := kind.Options.model_fields.get(option)) is None:
            known = ", ".join(kind.Options.model_fields) or "none"
            raise ConfigError(f"--set {each}: there is no such option; there are {known}")
        parsed[option] = typed_value(field, value)
    return parsed


def _without_secrets(
    kind: type[ConfiguredToolset], options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the options as the file has them, and the values of their variables."""
    kept: dict[str, Any] = {}
    secrets: dict[str, str] = {}
    for option, value in options.items():
        if is_secret(kind.Options.model_fields[option]) and not str(value).startswith(VARIABLE):
            variable = f"{kind.NAME}_{option}".upper()
            secrets[variable] = str(value)
            kept[option] = f"${{{variable}}}"
        else:
            kept[option] = value
    return kept, secrets


def _try(toolset: ConfiguredToolset, name: str) -> None:
    try:
        found = asyncio.run(checked(toolset, CHECK_S))
    except TimeoutError:
        raise ConfigError(
            f"{name}: no answer in {CHECK_S:g} seconds. Nothing was written; mend it, or add "
            "--unchecked"
        ) from None
    except CaalError as error:
        raise ConfigError(
            f"{name}: {error} Nothing was written; mend it, or add --unchecked"
        ) from None
    console().print(f"{name}: {found}", markup=False)


def _write_secrets(secrets: Mapping[str, str]) -> None:
    """Write them before the file that names them, which no process could read without them."""
    try:
        for variable, value in secrets.items():
            ENV_FILE.touch(OWNER_ONLY)
            set_key(ENV_FILE.resolve(), variable, value)  # a link stays a link
            os.environ[variable] = value
    except OSError as error:
        raise ConfigError(f"{ENV_FILE}: {error.strerror}; mend that, and add it again") from None
