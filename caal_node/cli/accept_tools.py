"""`caal-node tools --accept NAME`: offer MCP tools again whose definitions have changed."""

from __future__ import annotations

import asyncio

from rich.console import Console

import mcp_bridge
from caal_node.core import paths
from caal_node.core.errors import ConfigError


async def accept(name: str) -> None:
    """Take what waits for `name`, a server or `server__tool`, and print what was taken.

    Nothing is connected: what is accepted is what was seen, and not what a server says by now.

    Raises:
        ConfigError: nothing of that name waits; it names what does.
    """
    pins = mcp_bridge.Pins(paths.tool_pins())
    try:
        taken = await asyncio.to_thread(pins.accept, name)
    except OSError as error:
        raise ConfigError(
            f"{paths.tool_pins()} cannot be written ({error.strerror}); mend its mode"
        ) from None
    if not taken:
        waiting = await asyncio.to_thread(pins.waiting)
        said = f"what waits: {', '.join(waiting)}" if waiting else "no tool waits"
        raise ConfigError(f"no tool of {name!r} waits to be accepted; {said}")
    console = Console(highlight=False, soft_wrap=True)
    for tool in taken:
        console.print(f"accepted {tool.server}__{tool.tool}", markup=False)
        if tool.before == tool.after:
            console.print("  its words are the same, its schema is another", markup=False)
        else:
            console.print(f"  it said: {tool.before}\n  it says: {tool.after}", markup=False)
    console.print("Live rooms offer them after /reload-tools.", style="dim")
