"""What a tool is, whichever tier it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from caal_node.events import TierName


@dataclass(frozen=True, slots=True)
class Example:
    """Words a person could say, and the arguments of the call they mean."""

    utterance: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool as its source describes it."""

    tier: TierName
    source: str
    """The agent's class name, `n8n`, or the MCP server's name."""
    name: str
    """The name at the source; what the tier is called with."""
    wanted: str
    """The name to expose when it is free and allowed (MCP: `server__tool`)."""
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of an object."""
    examples: tuple[Example, ...] = field(default=())
