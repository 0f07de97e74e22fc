"""Where what was found is kept: the user's folder for state, which outlives any cache."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from caal_node.home import from_home

VARIABLE: Final = "CAAL_STATE"


def root() -> Path:
    """`$CAAL_STATE`, else the platform's folder for state. It need not exist yet."""
    if own := os.environ.get(VARIABLE):
        return from_home(own, VARIABLE)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "caal-node"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        return Path(local) / "caal-node" / "State"
    # A relative path there is to be read past, by the XDG base directory specification.
    home = os.environ.get("XDG_STATE_HOME", "")
    return (
        Path(home if Path(home).is_absolute() else Path.home() / ".local" / "state") / "caal-node"
    )


def pins() -> Path:
    """Definitions of MCP tools as they were accepted."""
    return root() / "mcp-pins"


def sign_ins() -> Path:
    """What signing in to MCP servers has brought."""
    return root() / "mcp-sign-ins"


def validations() -> Path:
    return root() / "validations.db"
