"""What a file of servers is said to be wrong in, whether it costs one server or all of them."""

from __future__ import annotations

from collections.abc import Mapping

from mcp_bridge import ConfigError, parse_servers


def fault_in(
    text: str,
    *,
    file: str = "servers.json",
    environ: Mapping[str, str] | None = None,
    room_path: str | None = None,
) -> str:
    """Give the file's fault, or that of its first server that has one; "" where all is well."""
    try:
        found = parse_servers(text, file=file, environ=environ, room_path=room_path)
    except ConfigError as error:
        return str(error)
    return next((config.fault for config in found if config.fault), "")
