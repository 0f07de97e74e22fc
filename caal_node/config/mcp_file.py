"""The file of MCP servers that the settings name, read with what people answered to its inputs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mcp_bridge
from caal_node.core import paths
from caal_node.network.guard import policies


def input_answers() -> mcp_bridge.InputAnswers:
    """Return where answers to `${input:ID}` are kept."""
    return mcp_bridge.InputAnswers(paths.mcp_inputs())


def load_mcp_servers(
    path: Path, *, missing_ok: bool = False, room_path: str | None = None
) -> tuple[mcp_bridge.ServerConfig, ...]:
    """Return the servers of a file. It reads the disk, so call it in a thread.

    Raises:
        mcp_bridge.ConfigError: The file cannot be read at all.
    """
    servers = mcp_bridge.load_servers(
        path, missing_ok=missing_ok, room_path=room_path, answers=input_answers()
    )
    # What they start is not seen by this process, so it can only be asked to stay inside.
    return tuple(replace(server, offline=True) for server in servers) if policies() else servers
