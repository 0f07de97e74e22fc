"""The file of MCP servers that the settings name, read with what people answered to its inputs."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cache
from pathlib import Path

from caal_node.config.settings import MCP_SERVERS
from caal_node.core import paths
from caal_node.network.guard import policies
from mcp_bridge.config.server_entry import InputAnswers
from mcp_bridge.config.servers_file import load_servers
from mcp_bridge.core.server_config import ServerConfig

logger = logging.getLogger("caal_node.network")


def input_answers() -> InputAnswers:
    """Return where answers to `${input:ID}` are kept."""
    return InputAnswers(paths.mcp_inputs())


def load_mcp_servers(
    path: Path, *, missing_ok: bool = False, room_path: str | None = None
) -> tuple[ServerConfig, ...]:
    """Return the servers of a file. It reads the disk, so call it in a thread.

    Raises:
        mcp_bridge.ConfigError: The file cannot be read at all.
    """
    servers = load_servers(
        path, missing_ok=missing_ok, room_path=room_path, answers=input_answers()
    )
    if not policies():
        return servers
    _warn_of(tuple(each.name for each in servers if each.enabled and each.transport == "stdio"))
    return tuple(replace(server, offline=True) for server in servers)


def missing_file(path: Path) -> str | None:
    """Return what to say of a file that is not there, although somebody named it.

    The file that is looked for where nobody named one need not be there. It reads the disk.
    """
    if path.name == MCP_SERVERS or path.exists():
        return None
    return f"{path}: there is no such file; write it, or fix CAAL_MCP_SERVERS"


@cache
def _warn_of(names: tuple[str, ...]) -> None:
    """Say once what this process does not see: where the servers connect to that it starts."""
    if names:
        logger.warning(
            "CAAL_NETWORK does not hold %s: an MCP server over stdio is a process of its own. Its "
            "package runner is told to fetch nothing",
            ", ".join(names),
        )
