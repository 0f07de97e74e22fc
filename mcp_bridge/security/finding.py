"""What speaks against an entry of the configuration, and the word that lets it pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_bridge.core.server_config import Allowance


@dataclass(frozen=True, slots=True)
class Finding:
    """One objection to an entry, and how to fix it."""

    key: str
    """The key of the entry: `command`, `args`, `env.NODE_OPTIONS`, `url`."""
    reason: str
    fix: str
    allowance: Allowance

    def __str__(self) -> str:
        return f'{self.reason}; {self.fix}, or write "allow": ["{self.allowance}"]'


def in_one_sentence(findings: Sequence[Finding]) -> str:
    """Says all that is asked for at once, so that nobody fixes one thing to meet the next."""
    if len(findings) == 1:
        return str(findings[0])
    first, *others = findings
    reasons = [first.reason, *(f"{one.key} {one.reason}" for one in others)]
    words = ", ".join(f'"{word}"' for word in dict.fromkeys(one.allowance for one in findings))
    return f'{"; ".join(reasons)}; fix these, or write "allow": [{words}]'
