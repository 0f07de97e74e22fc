"""`caal-node tools add`: asks for a toolset's options, tries them, and writes `caal.toml`.

The file is changed and not written anew, so that comments stay. What is a secret goes to `.env`,
and the file names its variable.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
import sys
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, cast, get_args, get_origin

import tomlkit
import typer
from dotenv import set_key
from pydantic import SecretStr, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from rich.markup import escape
from rich.table import Table
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

from caal_node.cli.output import console, print_table
from caal_node.cli.schema import FILE as SCHEMA
from caal_node.config.file import ENV_FILE, read_text
from caal_node.config.setting_tables import ENABLED, TABLE, ToolsetTable
from caal_node.config.settings import Settings, load_settings
from caal_node.core.errors import CaalError, ConfigError
from caal_node.toolsets.base import BASE, ConfiguredToolset, ToolsetServices
from caal_node.toolsets.installed import installed
from caal_node.toolsets.registry import (
    checked,
    load,
    made_of,
    refuse_doubles,
    tool_names,
    what_is_wrong,
)

# Writes a toolset's table into its owner's `caal.toml`: comments, order, link and rights stay.

_AGAIN: Final = "Nothing was written; fix that, and add it again"


def refuse_unwritable(path: Path) -> None:
    """Find out before any question is asked that the answers could not be kept.

    Raises:
        ConfigError: the file is read-only, or its folder is.
    """
    place = path.resolve()
    if place.exists() and not (place.stat().st_mode & stat.S_IWUSR and os.access(place, os.W_OK)):
        raise ConfigError(f"{path}: you may not write it (chmod u+w {path}). {_AGAIN}")
    if not os.access(place.parent, os.W_OK):
        raise ConfigError(f"{place.parent}: you may not write files there. {_AGAIN}")


def with_toolset(text: str, name: str, options: Mapping[str, Any]) -> str:
    """Return a `caal.toml`'s text in which the toolset is on with these options.

    Raises:
        ConfigError: the text has a form that cannot be changed safely; the message has the lines
            that its owner can write there.
    """
    try:
        changed = _changed(text, name, options)
        table = tomllib.loads(changed)[TABLE][name]
        is_right = {**table, **options} == table and ENABLED not in table
    except (TOMLKitError, ValueError, KeyError, TypeError):
        changed, is_right = "", False
    if not is_right:  # rather than a file that says something else than was asked for
        lines = tomlkit.dumps({TABLE: {name: dict(options)}}).strip().replace("\n", "\n  ")
        raise ConfigError(
            f"caal.toml: its tables of toolsets are written in a way that cannot be added to. "
            f"Nothing was written; write these lines into it:\n  {lines}"
        )
    return changed


def without_toolset(text: str, name: str) -> str:
    """Return a `caal.toml`'s text without the table of a toolset.

    Raises:
        ConfigError: the text has a form that cannot be changed safely.
    """
    try:
        document: Any = tomlkit.parse(text)
        document[TABLE].pop(name)
        changed = tomlkit.dumps(document)
        # A line above the next table counts as part of this one, and is its owner's to remove.
        left = set(changed.splitlines())
        lines = (line for line in text.splitlines() if line.lstrip().startswith("#"))
        changed = "".join(f"{line}\n" for line in lines if line not in left) + changed
        wanted: Any = tomllib.loads(text)
        wanted[TABLE].pop(name)
        after = tomllib.loads(changed)
        is_right = {TABLE: {}, **after} == wanted
    except (TOMLKitError, ValueError, KeyError, TypeError, AttributeError):
        changed, is_right = "", False
    if not is_right:
        raise ConfigError(
            f"caal.toml: its tables of toolsets are written in a way that cannot be changed. "
            f"Nothing was written; remove the table {TABLE}.{name} by hand"
        )
    return changed


def _changed(text: str, name: str, options: Mapping[str, Any]) -> str:
    document = tomlkit.parse(text)
    if TABLE not in document:
        document[TABLE] = tomlkit.table(is_super_table=True)
    tables: Any = document[TABLE]
    if name not in tables:
        # Within { } there can be no table with a line of its own.
        tables[name] = (
            tomlkit.inline_table() if isinstance(tables, InlineTable) else tomlkit.table()
        )
    table: Any = tables[name]
    remark = table.item(ENABLED).trivia.comment.lstrip("# ") if ENABLED in table else ""
    table.pop(ENABLED, None)
    for option, value in options.items():
        if option not in table or table[option] != value:
            table[option] = value
    changed = tomlkit.dumps(document)
    if remark and remark not in changed:  # in a key with dots it goes with its line
        changed = f"# {remark}\n{changed}"
    return changed


def replace_text(path: Path, text: str) -> None:
    """Write the whole file or nothing; where it is a link, the file that it leads to.

    Raises:
        ConfigError: it cannot be written.
    """
    place = path.resolve()
    # Beside it first, so that a full disk leaves the old file.
    beside = place.with_name(f".{place.name}.new")
    try:
        beside.write_text(text, encoding="utf-8", newline="")
        if place.exists():
            beside.chmod(stat.S_IMODE(place.stat().st_mode))
        beside.replace(place)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise ConfigError(f"{path}: {error.strerror}. {_AGAIN}") from None


# Asks a person for the options of a toolset, and reads what is typed as TOML has it.

VARIABLE: Final = "${"
"""What a value begins with that names a variable of `.env`."""
_YES: Final = frozenset({"true", "yes", "on"})
_NO: Final = frozenset({"false", "no", "off"})


def asked_options(
    kind: type[ConfiguredToolset], known: Mapping[str, Any], given: Collection[str] = ()
) -> dict[str, Any]:
    """Ask for every option that has a question, a line can answer, and is not `given` already.

    An answer that does not fit is asked for again, so that the others need not be typed anew.

    Returns:
        The options whose answer is not the default that was shown.

    Raises:
        typer.Abort: the person wants no more, or nobody is there.
    """
    answers: dict[str, Any] = {}
    for option, field in kind.Options.model_fields.items():
        if option in given or not field.description or _is_table(field):
            continue
        if is_secret(field):
            must = field.is_required() and option not in known
            typed = typer.prompt(
                field.description, hide_input=True, default=None if must else "", show_default=False
            )
            if typed.strip():
                answers[option] = typed.strip()
            continue
        default = known.get(option, None if field.is_required() else field.get_default())
        shown = "" if default is None else _shown(default)
        must = field.is_required() and not shown

        def fitting(
            typed: str, field: FieldInfo = field, shown: str = shown, must: bool = must
        ) -> str:
            text = typed.strip()
            if text != shown or must:
                _refuse_misfit(field, text, must=must)
            return text

        text = typer.prompt(field.description, default=None if must else shown, value_proc=fitting)
        if text != shown:
            answers[option] = typed_value(field, text)
    return answers


def missing_option(kind: type[ConfiguredToolset], options: Mapping[str, Any]) -> str:
    """Return the first option that has to be answered and is not, or ""."""
    fields = kind.Options.model_fields.items()
    return next((name for name, each in fields if each.is_required() and name not in options), "")


def _refuse_misfit(field: FieldInfo, text: str, *, must: bool) -> None:
    if must and not text:
        raise typer.BadParameter("this has to be answered")
    if text.startswith(VARIABLE):
        return
    try:
        TypeAdapter[Any](field.rebuild_annotation()).validate_python(
            typed_value(field, text), context={BASE: Path.cwd()}
        )
    except ValidationError as error:
        raise typer.BadParameter(what_is_wrong(error)) from None
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from None


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, cast("Sequence[object]", value)))
    return str(value).lower() if isinstance(value, bool) else str(value)


def typed_value(field: FieldInfo, text: str) -> Any:
    """Return what a person typed as TOML has it; whether it fits is the options' to say."""
    if text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except ValueError:
            return text
    kinds = _kinds(field.annotation)
    if any(get_origin(kind) in (list, tuple) for kind in kinds):
        return [part for each in text.split(",") if (part := each.strip())]
    if bool in kinds and text.casefold() in _YES | _NO:
        return text.casefold() in _YES
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


def is_secret(field: FieldInfo) -> bool:
    """Say whether the option is one that neither screen nor `caal.toml` may show."""
    return SecretStr in _kinds(field.annotation)


def _is_table(field: FieldInfo) -> bool:
    return any(get_origin(kind) in (dict, Mapping) for kind in _kinds(field.annotation))


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
    table = Table("toolset", "", "what the user can ask for")
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
    text = with_toolset(read_text(FILE) or f"#:schema {SCHEMA.as_uri()}\n", name, kept)
    _write_secrets(secrets)
    replace_text(FILE, text)
    load_settings()  # what was written can be read
    console().print(f"{name} is on: {', '.join(tool_names(toolset))}", markup=False)
    console().print("Rooms that are already open get them when they restart.", style="dim")


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
    toolset = made_of(table, ToolsetServices())
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
            f"{name}: no answer in {CHECK_S:g} seconds. Nothing was written; fix it, or add "
            "--unchecked"
        ) from None
    except CaalError as error:
        raise ConfigError(
            f"{name}: {str(error).rstrip('.')}. Nothing was written; fix it, or add --unchecked"
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
        raise ConfigError(f"{ENV_FILE}: {error.strerror}; fix that, and add it again") from None
