"""`caal-node tools add`: asks for a toolset's options, tries them, and writes `caal.toml`.

The file is changed and not written anew, so that comments stay. What is a secret goes to `.env`,
and the file names its variable.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast, get_args, get_origin

import tomlkit
import typer
from dotenv import set_key
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from rich.markup import escape
from rich.table import Table
from tomlkit.exceptions import TOMLKitError

from caal_node.cli.output import console, print_table
from caal_node.config.env_file import ENV_FILE
from caal_node.config.file import read_text
from caal_node.config.settings import Settings, load_settings
from caal_node.config.toolset_tables import ENABLED, TABLE, ToolsetTable
from caal_node.core.errors import CaalError, ConfigError
from caal_node.toolsets.base import ConfiguredToolset, ToolsetServices
from caal_node.toolsets.registry import installed, load, made_of

FILE: Final = Path("caal.toml")
CHECK_S: Final = 30.0
"""Seconds in which what the options name has to answer."""
OWNER_ONLY: Final = 0o600
"""The mode of `.env`, which holds keys."""


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
    """
    kind = load(name)
    document = _document(FILE)
    before = settings.toolsets.get(name)
    options = dict(before.options) if before else {}
    options |= _parsed(kind, given)
    if ask:
        console().print(f"{name}: {kind.SUMMARY}", markup=False)
        options |= _answers(kind, options)
    kept, secrets = _without_secrets(kind, options)
    toolset = made_of(
        ToolsetTable(name, options, base=Path.cwd()),
        ToolsetServices(),
    )
    if check:
        _try(toolset, name)
    _write(document, name, kept, secrets)
    done = f"{name} is on: {', '.join(each.id for each in toolset.tools if hasattr(each, 'info'))}"
    console().print(done, markup=False)
    console().print("Rooms that are open have them when they begin anew.", style="dim")


def _document(path: Path) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(read_text(path))
    except TOMLKitError as error:
        raise ConfigError(f"{path}: {error}. Mend that line.") from None


def _parsed(kind: type[ConfiguredToolset], given: Sequence[str]) -> dict[str, Any]:
    parsed: dict[str, Any] = {}
    for each in given:
        option, equals, value = each.partition("=")
        if not equals:
            raise ConfigError(f"--set {each}: write name=value")
        if (field := kind.Options.model_fields.get(option)) is None:
            known = ", ".join(kind.Options.model_fields) or "none"
            raise ConfigError(f"--set {each}: there is no such option; there are {known}")
        parsed[option] = _value(field, value)
    return parsed


def _answers(kind: type[ConfiguredToolset], known: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for every option that has a question, and is one that a line can answer."""
    answers: dict[str, Any] = {}
    for option, field in kind.Options.model_fields.items():
        if not field.description or _is_table(field):
            continue
        default = known.get(option, None if field.is_required() else field.get_default())
        if _is_secret(field):
            typed = typer.prompt(field.description, hide_input=True, default="", show_default=False)
            if typed:
                answers[option] = typed
            continue
        shown = "" if default is None else _shown(default)
        must = field.is_required() and not shown
        typed = typer.prompt(field.description, default=None if must else shown)
        if typed.strip() != shown:
            answers[option] = _value(field, typed.strip())
    return answers


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, cast("Sequence[object]", value)))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(field: FieldInfo, text: str) -> Any:
    """Return what a person typed as TOML has it; whether it fits is the options' to say."""
    if text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except ValueError:
            return text
    kinds = _kinds(field.annotation)
    if any(get_origin(kind) in (list, tuple) for kind in kinds):
        return [part for each in text.split(",") if (part := each.strip())]
    if bool in kinds and text.casefold() in ("true", "yes", "on", "false", "no", "off"):
        return text.casefold() in ("true", "yes", "on")
    for number in (int, float):
        if number in kinds:
            try:
                return number(text)
            except ValueError:
                continue
    return text


def _kinds(annotation: Any) -> tuple[Any, ...]:
    parts = [annotation, *get_args(annotation)]
    return tuple(part for part in parts if part is not type(None))


def _is_secret(field: FieldInfo) -> bool:
    return SecretStr in _kinds(field.annotation)


def _is_table(field: FieldInfo) -> bool:
    return any(get_origin(kind) in (dict, Mapping) for kind in _kinds(field.annotation))


def _without_secrets(
    kind: type[ConfiguredToolset], options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the options as the file has them, and the values of their variables."""
    kept: dict[str, Any] = {}
    secrets: dict[str, str] = {}
    for option, value in options.items():
        if _is_secret(kind.Options.model_fields[option]) and not str(value).startswith("${"):
            variable = f"{kind.NAME}_{option}".upper()
            secrets[variable] = str(value)
            kept[option] = f"${{{variable}}}"
        else:
            kept[option] = value
    return kept, secrets


def _try(toolset: ConfiguredToolset, name: str) -> None:
    async def tried() -> str:
        try:
            async with asyncio.timeout(CHECK_S):
                return await toolset.check()
        finally:
            await toolset.aclose()

    try:
        found = asyncio.run(tried())
    except TimeoutError:
        raise ConfigError(
            f"{name}: no answer in {CHECK_S:g} seconds; nothing was written. Mend it, or add "
            "--unchecked"
        ) from None
    except CaalError as error:
        raise ConfigError(
            f"{name}: {error} Nothing was written; mend it, or add --unchecked"
        ) from None
    console().print(f"{name}: {found}", markup=False)


def _write(
    document: tomlkit.TOMLDocument,
    name: str,
    options: Mapping[str, Any],
    secrets: Mapping[str, str],
) -> None:
    tables: Any = document.setdefault(TABLE, tomlkit.table(is_super_table=True))
    table: Any = tables.setdefault(name, tomlkit.table())
    table.pop(ENABLED, None)
    for option, value in options.items():
        if option not in table or table[option] != value:
            table[option] = value
    try:
        for variable, value in secrets.items():
            ENV_FILE.touch(OWNER_ONLY)
            set_key(ENV_FILE, variable, value)
            os.environ[variable] = value
        text = tomlkit.dumps(document)
        # Beside it first, so that a full disk leaves the old file.
        beside = FILE.with_name(f"{FILE.name}.new")
        beside.write_text(text, encoding="utf-8")
        if FILE.exists():
            beside.chmod(FILE.stat().st_mode & 0o777)
        beside.replace(FILE)
    except OSError as error:
        raise ConfigError(
            f"{error.filename}: {error.strerror}; mend that, and add it again"
        ) from None
    load_settings()  # what was written can be read
