"""Where a tool comes from, as events tell it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from caal_node.core.events import Outcome, TierName


@dataclass(frozen=True, slots=True)
class ToolOrigin:
    """`source` is the agent's class, `n8n`, or an MCP server's name."""

    tier: TierName
    source: str


Describe: TypeAlias = Callable[[str], ToolOrigin]
"""Exposed name -> origin."""
OutcomeOf: TypeAlias = Callable[[str], Outcome | None]
"""Call id -> how it ended, where that is known better than LiveKit knows it."""
