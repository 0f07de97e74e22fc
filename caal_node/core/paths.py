"""Paths in the user's folders: where state and settings are kept, and what `~` means in them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from platformdirs import user_config_path, user_state_path

from caal_node.core.errors import ConfigError

STATE_VARIABLE: Final = "CAAL_STATE"
CONFIG_VARIABLE: Final = "CAAL_CONFIG"


def state_folder() -> Path:
    """Return `$CAAL_STATE`, else the platform's folder for state. It may not exist yet.

    Raises:
        ConfigError: The variable names the home folder of an unknown user.
    """
    if own := os.environ.get(STATE_VARIABLE):
        return from_home(own, STATE_VARIABLE)
    return user_state_path("caal-node", appauthor=False)


def config_folder() -> Path:
    """Return `$CAAL_CONFIG`, else the platform's folder for settings. It need not exist.

    Its `caal.toml` and `mcp_servers.json` hold wherever a command is run; those of the working
    directory come first.

    Raises:
        ConfigError: The variable names the home folder of an unknown user.
    """
    if own := os.environ.get(CONFIG_VARIABLE):
        return from_home(own, CONFIG_VARIABLE)
    return user_config_path("caal-node", appauthor=False)


def tool_pins() -> Path:
    """Return the folder with the definitions of MCP tools that were accepted."""
    return state_folder() / "mcp-pins"


def sign_ins() -> Path:
    """Return the folder with the tokens of MCP servers that a person signed in to."""
    return state_folder() / "mcp-sign-ins"


def mcp_inputs() -> Path:
    """Return the file with what people answered to `${input:ID}` of files of MCP servers."""
    return state_folder() / "mcp-inputs.json"


def wrong_pins() -> Path:
    """Return the file that counts the wrong PINs since the last right one."""
    return state_folder() / "wrong-pins"


def used_tools(agent: str) -> Path:
    """Return the file that counts the calls of an agent, by the name of its class."""
    return state_folder() / "used-tools" / f"{agent}.json"


def worker_metrics(port: int) -> Path:
    """Return the folder in which the rooms' processes of a worker leave their counts."""
    return state_folder() / f"metrics-{port}"


def validations() -> Path:
    """Return the database with the results of `caal-node validate`."""
    return state_folder() / "validations.db"


def from_home(path: str, where: str) -> Path:
    """Put the home folder in place of `~` in `path`. `where` is the variable or key of the path.

    Raises:
        ConfigError: No user has that name.
    """
    try:
        return Path(path).expanduser()
    except (RuntimeError, ValueError):  # ValueError: a NUL in the name
        head = Path(path).parts[0]
        raise ConfigError(
            f"{where}: {head!r} is nobody's home folder; write the whole path."
        ) from None
