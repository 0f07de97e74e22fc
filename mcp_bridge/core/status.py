"""What a manager tells: its events, the state of its servers, and what a reload changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mcp_bridge.core.server_config import TransportName

State: TypeAlias = Literal["ready", "idle", "starting", "down", "off"]
"""starting: nobody has heard of it yet; its notes say so where that may take minutes. idle: the
tools are known from the catalogue, or from before the connection was closed because nobody used it;
the server is connected when one of them is called. off: its notes say why."""


@dataclass(frozen=True, slots=True)
class CallProgressed:
    """A server tells how far a call of ours has come. Texts are the server's own words, cleaned."""

    name: str
    """The tool's exposed name."""
    server: str
    done: float
    """This grows with every event of a call, in units of the server's choice."""
    total: float | None
    """The whole in the same units; None where the server does not know."""
    message: str


@dataclass(frozen=True, slots=True)
class ToolsChanged:
    """A server's tools changed while nobody waited for a reload, or a late server turned out to be
    down or to have no tools."""

    server: str
    added: tuple[str, ...]
    """Exposed names, as in the two fields below."""
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    failed: Mapping[str, str]
    """The servers that are down now, and why."""


BridgeEvent: TypeAlias = CallProgressed | ToolsChanged

EventSink: TypeAlias = Callable[[BridgeEvent], None]
"""A host's function, called on the event loop; it must not block."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How one configured server is doing."""

    name: str
    state: State
    transport: TransportName
    tools: int
    connect_ms: int | None
    """How long the last connection took; None where there was none."""
    error: str | None
    """What is wrong and how to fix it, on one line."""
    notes: tuple[str, ...]
    """What was left out of its tools, and why; for a server that is off, why it is off."""
    protocol: str | None = None
    """The protocol version of the last connection, for example `2026-07-28`."""
    held: int = 0
    """How many of its tools wait for a person to accept them, and are not offered."""
    added: int = 0
    """How many it has added that are offered, and that nobody has accepted yet."""
    shared: bool = False
    """Whether other managers of this process may use the same session."""


@dataclass(frozen=True, slots=True)
class CallRoute:
    """The way that the calls of one server take now."""

    transport: TransportName
    protocol: str | None
    """The protocol version of the last connection."""
    session_id: str | None
    """The HTTP session's id at the server; None where there is none."""


@dataclass(frozen=True, slots=True)
class ReloadReport:
    """What a reload changed: exposed names of tools, and failed servers with their reasons."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    failed: Mapping[str, str]
