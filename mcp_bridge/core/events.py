"""What a manager tells while it works, as a closed union of frozen events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class CallProgressed:
    """A server tells how far a call of ours has come. Texts are the server's own words, cleaned."""

    name: str
    """The tool's exposed name."""
    server: str
    done: float
    """Grows with every event of a call; in units of the server's choice."""
    total: float | None
    """Of the same units; None where the server does not know."""
    message: str


@dataclass(frozen=True, slots=True)
class ToolsChanged:
    """A server's tools are not those they were, and nobody waits for a reload; or one that nobody
    waited for any more turned out to be down, or to have none."""

    server: str
    added: tuple[str, ...]
    """Exposed names, as all three."""
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    failed: Mapping[str, str]
    """Servers that are down now, and why."""


BridgeEvent: TypeAlias = CallProgressed | ToolsChanged

Sink: TypeAlias = Callable[[BridgeEvent], None]
"""Called on the event loop; must not block."""
