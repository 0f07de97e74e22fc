"""Collects what speaks against one server's configuration, less what its owner allows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from mcp.client.stdio import get_default_environment

from mcp_bridge.core.files import expand_home
from mcp_bridge.core.sanitize import one_line
from mcp_bridge.core.server_config import ServerConfig
from mcp_bridge.security.addresses import plain_text
from mcp_bridge.security.commands import judge
from mcp_bridge.security.environment import is_data
from mcp_bridge.security.finding import Finding

_MAX_REASON_CHARS: Final = 200
"""A reason quotes the entry, whose words may be of any length."""


def objections(config: ServerConfig) -> Iterator[Finding]:
    """Yields the objections that the owner does not allow. This reads the disk.

    It is asked when the file is read, and again before a server is started: a link may have
    changed.
    """
    for finding in _findings(config):
        if finding.allowance not in config.allow:
            reason = one_line(config.redact(finding.reason), _MAX_REASON_CHARS)
            yield replace(finding, reason=reason)


def _findings(config: ServerConfig) -> Iterator[Finding]:
    if config.transport != "stdio":
        if (finding := plain_text(config.url)) is not None:
            yield finding
        return
    for name, value in config.env.items():
        if not is_data(name, value):
            reason = "is not plainly data: programs may take code from it, or the place of code"
            yield Finding(f"env.{name}", reason, "remove it", "env")
    path = config.env.get("PATH") or get_default_environment().get("PATH")
    yield from judge(
        config.command,
        config.args,
        cwd=Path(expand_home(config.cwd)) if config.cwd else None,
        search_path=path,
        windows=sys.platform == "win32",
    )
