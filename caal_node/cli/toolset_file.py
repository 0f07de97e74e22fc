"""Writes a toolset's table into its owner's `caal.toml`: comments, order, link and rights stay."""

from __future__ import annotations

import contextlib
import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

from caal_node.config.toolset_tables import ENABLED, TABLE
from caal_node.core.errors import ConfigError

_AGAIN: Final = "Nothing was written; mend that, and add it again"


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
