"""The tables `[toolsets.NAME]` of `caal.toml`: which toolsets are on, and their options.

What the options are is the toolset's to say, so they are judged when it is made. A value
`"${NAME}"` is the variable of that name, so that a token need not stand in the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from caal_node.core.errors import ConfigError

TABLE: Final = "toolsets"
ENABLED: Final = "enabled"
_VARIABLE: Final = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)\}")


@dataclass(frozen=True, slots=True)
class ToolsetTable:
    """One toolset's table."""

    name: str
    options: Mapping[str, Any]
    enabled: bool = True
    base: Path = Path()
    """The folder that relative paths start from."""
    lines: Mapping[str, str] = field(default_factory=dict[str, str])
    """The place of each option in words; that of "" is the table's own."""

    def where(self, option: str = "") -> str:
        """Return the place of an option for an error: file, line and key."""
        key = f"{TABLE}.{self.name}.{option}".rstrip(".")
        line = self.lines.get(option) or self.lines.get("")
        return f"{line}, {key}" if line else key

    def expanded(self, env: Mapping[str, str] = os.environ) -> dict[str, Any]:
        """Return the options with the values of variables.

        Raises:
            ConfigError: a variable is not set.
        """
        return {name: self._expanded(name, value, env) for name, value in self.options.items()}

    def _expanded(self, option: str, value: Any, env: Mapping[str, str]) -> Any:
        if not (isinstance(value, str) and (match := _VARIABLE.fullmatch(value))):
            return value
        if not (found := env.get(match["name"])):
            raise ConfigError(
                f"{self.where(option)}: {match['name']} is not set; write it into .env, "
                "or set it where this process starts."
            )
        return found


def toolset_tables(
    value: object, base: Path = Path(), lines: Mapping[str, str] | None = None
) -> dict[str, ToolsetTable]:
    """Read all tables. `lines` has the place of each `NAME` and `NAME.option` in words.

    Raises:
        ValueError: a table is none; the message says what to write.
    """
    lines = lines or {}
    if not isinstance(value, Mapping):
        raise ValueError("write a table such as [toolsets.lists]")
    made: dict[str, ToolsetTable] = {}
    for name, options in cast("Mapping[str, object]", value).items():
        if isinstance(options, ToolsetTable):
            made[name] = options
            continue
        if not isinstance(options, Mapping):
            raise ValueError(f"write {name} as a table, [toolsets.{name}]")
        given = dict(cast("Mapping[str, Any]", options))
        enabled = given.pop(ENABLED, True)
        if not isinstance(enabled, bool):
            raise ValueError(f"{name}.{ENABLED}: write true or false")
        places = {
            key.partition(".")[2]: line
            for key, line in lines.items()
            if key == name or key.startswith(f"{name}.")
        }
        made[name] = ToolsetTable(name, given, enabled, base, places)
    return made
