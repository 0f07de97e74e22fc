"""What a manager tells of its servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mcp_bridge.core.server_config import TransportName

State: TypeAlias = Literal["ready", "idle", "down", "off"]
"""idle: its tools are known from the catalogue, or from before it was closed because nobody used
it; it is connected when one is called. off: see its notes."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How one configured server is doing."""

    name: str
    state: State
    transport: TransportName
    tools: int
    connect_ms: int | None
    """Of the last connection; None where there was none."""
    error: str | None
    """What is wrong, and the mend; one line."""
    notes: tuple[str, ...]
    """What was left out of its tools, and why; of a server that is off, why it is."""
    protocol: str | None = None
    """The version of the last connection, for example `2026-07-28`."""
    shared: bool = False
    """Whether other managers of this process may use the same session."""


@dataclass(frozen=True, slots=True)
class ReloadReport:
    """What a reload changed: exposed names of tools, and servers with their reasons."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    failed: Mapping[str, str]
