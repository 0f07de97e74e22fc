"""What a manager tells of its servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mcp_bridge.servers import ServerConfig, TransportName
from mcp_bridge.session import ServerSession

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


def status_of(
    config: ServerConfig, session: ServerSession | None, held: Mapping[str, str]
) -> ServerStatus:
    """Of a configured server; without a session it is off."""
    if session is None:
        notes = (config.off_because,) if config.off_because else ()
        return ServerStatus(config.name, "off", config.transport, 0, None, None, notes)
    return ServerStatus(
        name=config.name,
        state="down" if session.failure else "idle" if session.recalled else "ready",
        transport=config.transport,
        tools=len(session.listing.definitions) - len(held),
        connect_ms=session.connect_ms,
        error=session.failure,
        notes=(*(f"{tool[:80]!r}: {why}" for tool, why in held.items()), *session.listing.notes),
        protocol=session.protocol,
        shared=config.share,
    )
