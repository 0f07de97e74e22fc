"""Finds the toolsets that are installed, and makes those that `caal.toml` turns on.

A toolset is an entry point of the group `caal_node.tools`, in this distribution or in any other:

    [project.entry-points."caal_node.tools"]
    shelf = "my_shelf:Shelf"
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from pydantic import ValidationError

from caal_node.config.settings import Settings
from caal_node.config.toolset_tables import ToolsetTable
from caal_node.core.errors import ConfigError
from caal_node.core.events import Event
from caal_node.toolsets.base import (
    BASE,
    Announcer,
    ConfiguredToolset,
    ToolsetOptions,
    ToolsetServices,
)
from mcp_bridge import Embedder

GROUP: Final = "caal_node.tools"
_NEAR: Final = 0.6


@lru_cache(maxsize=1)
def installed() -> Mapping[str, EntryPoint]:
    """Return the entry point of every toolset by its name. It reads the disk once a process."""
    return {each.name: each for each in sorted(entry_points(group=GROUP), key=lambda e: e.name)}


def load(name: str, where: str = "") -> type[ConfiguredToolset]:
    """Return the class of an installed toolset.

    Raises:
        ConfigError: there is none of that name, or it cannot be imported.
    """
    where = where or name
    if (entry := installed().get(name)) is None:
        near = difflib.get_close_matches(name, installed(), 1, _NEAR)
        known = f"did you mean {near[0]}?" if near else f"there are {', '.join(installed())}."
        raise ConfigError(f"{where}: no toolset {name!r} is installed; {known}")
    try:
        made: object = entry.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{where}: {entry.value} cannot be imported ({error}); install its distribution again"
        ) from error
    if not (isinstance(made, type) and issubclass(made, ConfiguredToolset)):
        raise ConfigError(f"{where}: {entry.value} is no ConfiguredToolset; tell its author")
    return made


def configured_toolsets(
    settings: Settings,
    *,
    announcer: Announcer | None = None,
    emit: Callable[[Event], None] | None = None,
    embedder: Embedder | None = None,
) -> list[ConfiguredToolset]:
    """Make every toolset that the settings turn on, each with a state folder of its own.

    The rest is what a toolset gets of its conversation (`ToolsetServices`).

    Raises:
        ConfigError: one is not installed, its options are wrong, or two of them have a tool of
            the same name.
    """
    tables = [table for table in settings.toolsets.values() if table.enabled]
    if not tables:
        return []  # so that nothing is read for those who want none
    given: dict[str, Any] = {
        "announcer": announcer,
        "emit": emit,
        "embedder": embedder,
        "timezone": settings.timezone,
    }
    services = ToolsetServices(**{name: each for name, each in given.items() if each is not None})
    made = [made_of(table, services) for table in tables]
    _refuse_doubles(made)
    return made


def made_of(table: ToolsetTable, services: ToolsetServices) -> ConfiguredToolset:
    """Make the toolset of a table.

    Raises:
        ConfigError: the message names the key and what to write.
    """
    kind = load(table.name, table.where())
    options = options_of(kind, table)
    own = replace(services, state=services.state / table.name)
    try:
        return kind(options, own)
    except ConfigError as error:
        raise ConfigError(f"{table.where()}: {error}") from error


def options_of(kind: type[ConfiguredToolset], table: ToolsetTable) -> ToolsetOptions:
    """Judge a table's options as the toolset wants them.

    Raises:
        ConfigError: the first that does not fit, with its place and what is wrong; never its value.
    """
    try:
        return kind.Options.model_validate(table.expanded(), context={BASE: table.base})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        option = ".".join(map(str, first["loc"][:1]))
        if first["type"] == "extra_forbidden":
            known = ", ".join(kind.Options.model_fields)
            raise ConfigError(
                f"{table.where(option)}: there is no such option; there are {known}."
            ) from None
        if first["type"] == "missing":
            raise ConfigError(
                f"{table.where(option)}: this is missing; run: caal-node tools add {table.name}"
            ) from None
        said: Any = first.get("ctx", {}).get("error", first["msg"])
        raise ConfigError(f"{table.where(option)}: {said}.") from None


def refuse_names(toolsets: Iterable[ConfiguredToolset], own: Collection[str]) -> None:
    """Refuse toolsets that have a tool of a name in `own`, those of the agent's function tools.

    Raises:
        ConfigError: the message names both, and says what to do.
    """
    for each in toolsets:
        for name in tool_names(each):
            if name in own:
                raise ConfigError(
                    f"toolset {each.NAME} and the agent both have a tool {name!r}; rename the "
                    f"agent's, or turn the toolset off (enabled = false)"
                )


def _refuse_doubles(toolsets: Iterable[ConfiguredToolset]) -> None:
    owners: dict[str, str] = {}
    for each in toolsets:
        for name in tool_names(each):
            if (other := owners.setdefault(name, each.NAME)) != each.NAME:
                raise ConfigError(
                    f"toolsets {other} and {each.NAME} both have a tool {name!r}; turn one off "
                    f"(enabled = false)"
                )


def tool_names(toolset: ConfiguredToolset) -> Sequence[str]:
    """Return the names of a toolset's tools."""
    return [each.id for each in toolset.tools if not hasattr(each, "tools")]
