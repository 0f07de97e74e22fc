"""Folders of the user's: where state is kept, and what `~` stands for in a configuration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from platformdirs import user_state_path

from caal_node.core.errors import ConfigError

STATE_VARIABLE: Final = "CAAL_STATE"


def state_folder() -> Path:
    """`$CAAL_STATE`, else the platform's folder for state. It need not exist yet.

    Raises:
        ConfigError: the variable names the home folder of nobody.
    """
    if own := os.environ.get(STATE_VARIABLE):
        return from_home(own, STATE_VARIABLE)
    return user_state_path("caal-node", appauthor=False)


def tool_pins() -> Path:
    """The folder that keeps the definitions of MCP tools as they were accepted."""
    return state_folder() / "mcp-pins"


def sign_ins() -> Path:
    """The folder that keeps what signing in to MCP servers has brought."""
    return state_folder() / "mcp-sign-ins"


def validations() -> Path:
    """The file that keeps what `caal-node validate` has found."""
    return state_folder() / "validations.db"


def from_home(path: str, where: str) -> Path:
    """`path` with the home folder in place of `~`. `where` is the variable or key it stands in.

    Raises:
        ConfigError: nobody has that name.
    """
    try:
        return Path(path).expanduser()
    except (RuntimeError, ValueError):  # ValueError: a NUL in the name
        head = Path(path).parts[0]
        raise ConfigError(
            f"{where}: {head!r} is nobody's home folder; write the whole path."
        ) from None
