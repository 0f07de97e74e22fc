"""Loads the toolsets that are installed, and makes those that `caal.toml` turns on."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from caal_node.config.file import remedy
from caal_node.config.setting_tables import ToolsetTable
from caal_node.config.settings import Settings
from caal_node.core.errors import CaalError, ConfigError
from caal_node.core.events import Events
from caal_node.toolsets.base import (
    BASE,
    Announcer,
    ConfiguredToolset,
    ToolsetOptions,
    ToolsetServices,
)
from caal_node.toolsets.installed import installed
from mcp_bridge.embedding.embedders import Embedder

_NEAR: Final = 0.6


def load(name: str, where: str = "") -> type[ConfiguredToolset]:
    """Return the class of an installed toolset.

    Raises:
        ConfigError: there is none of that name, or it cannot be imported.
    """
    where = where or name
    if (entry := installed().get(name)) is None:
        alike = name.casefold().replace("-", "_")
        near = difflib.get_close_matches(alike, installed(), 1, _NEAR)
        known = f"did you mean {near[0]}?" if near else f"there are {', '.join(installed())}."
        raise ConfigError(f"{where}: no toolset {name!r} is installed; {known}")
    try:
        made: object = entry.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{where}: {entry.value} cannot be imported ({error}); install its distribution again"
        ) from error
    except (Exception, SystemExit) as error:  # an author's module may raise anything
        raise ConfigError(
            f"{where}: {entry.value} cannot be imported ({_said(error)}); fix it, or tell its "
            f"author"
        ) from error
    if not (isinstance(made, type) and issubclass(made, ConfiguredToolset)):
        raise ConfigError(f"{where}: {entry.value} is not a ConfiguredToolset; tell its author")
    for wanted in ("NAME", "SUMMARY"):
        if not isinstance(getattr(made, wanted, None), str):
            raise ConfigError(f"{where}: {entry.value} has no {wanted}; write one, as a text")
    if name != made.NAME:
        raise ConfigError(
            f"{where}: its entry point is named {name}, and {entry.value} has NAME = "
            f"{made.NAME!r}; make them the same"
        )
    return made


def configured_toolsets(
    settings: Settings,
    *,
    announcer: Announcer | None = None,
    events: Events | None = None,
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
        "events": events,
        "embedder": embedder,
    }
    services = ToolsetServices(**{name: each for name, each in given.items() if each is not None})
    made = [made_of(table, services) for table in tables]
    refuse_doubles(made)
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
    except Exception as error:  # an author's code may raise anything
        raise ConfigError(
            f"{table.where()}: it cannot be made ({_said(error)}); tell its author, or turn it "
            f"off (enabled = false)"
        ) from error


async def checked(toolset: ConfiguredToolset, deadline_s: float) -> str:
    """Return what the toolset's `check` found, and close it.

    Raises:
        TimeoutError: it found nothing in so many seconds.
        ConfigError, ToolFailure: it does not work; the message says why.
    """
    try:
        async with asyncio.timeout(deadline_s):
            return await toolset.check()
    except (CaalError, TimeoutError):
        raise
    except Exception as error:  # an author's code may raise anything
        raise ConfigError(f"its check fails ({_said(error)}).") from error
    finally:
        await toolset.aclose()


def _said(error: BaseException) -> str:
    """Return an error in a line: its type, and what it says."""
    return f"{type(error).__name__}: {error}".strip().rstrip(":").replace("\n", " ")


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
        raise ConfigError(f"{table.where(option)}: {what_is_wrong(error)}.") from None


def what_is_wrong(error: ValidationError) -> str:
    """Return what to write instead of the first value that does not fit; never the value."""
    first = error.errors(include_url=False, include_input=False)[0]
    return remedy(first["type"], first.get("ctx", {}))


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


def refuse_doubles(toolsets: Iterable[ConfiguredToolset]) -> None:
    """Refuse toolsets that have a tool of the same name.

    Raises:
        ConfigError: the message names both, and says what to do.
    """
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
