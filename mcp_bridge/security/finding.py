"""What speaks against an entry of the configuration, and the word that lets it pass."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_bridge.core.server_config import Allowance


@dataclass(frozen=True, slots=True)
class Finding:
    """One objection to an entry, and how to mend it."""

    key: str
    """The key of the entry: `command`, `args`, `env.NODE_OPTIONS`, `url`."""
    reason: str
    mend: str
    allowance: Allowance

    def __str__(self) -> str:
        return f'{self.reason}; {self.mend}, or write "allow": ["{self.allowance}"]'
