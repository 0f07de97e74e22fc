"""The systemd unit, with the path of this machine's `mcp-bridge` in it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("mcp-bridge.service")
_INSTALLED: Final = "/usr/bin/mcp-bridge"


def unit(program: str) -> str:
    """The unit's text.

    Args:
        program: absolute path of `mcp-bridge`; systemd takes no other.
    """
    quoted = f'"{program}"' if " " in program else program
    return FILE.read_text(encoding="utf-8").replace(
        f"ExecStart={_INSTALLED}", f"ExecStart={quoted}"
    )
