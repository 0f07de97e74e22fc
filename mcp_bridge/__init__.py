"""Many MCP servers as one set of tools: configured in a file, connected side by side, kept alive.

async with ServerManager(load_servers("mcp_servers.json")) as manager:
    for tool in await manager.list_tools(): ...
    result = await manager.call_tool("time__get_current_time", {"timezone": "Europe/Paris"})

The names are those of `public.py`. They are loaded when the first of them is used: the MCP SDK
takes a second, and who only reads a file of servers needs none of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_bridge.public import *  # noqa: F403 - every name of its `__all__`


def __getattr__(name: str) -> Any:
    if name.startswith("_"):  # "__path__" and the like are asked for while it is imported
        raise AttributeError(f"module 'mcp_bridge' has no attribute {name!r}")
    return getattr(importlib.import_module("mcp_bridge.public"), name)
