"""What a tool is, whichever tier it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from caal_node.core.events import TierName

ToolSchema: TypeAlias = Mapping[str, Any]
"""`{"type": "function", "function": {"name", "description", "parameters"}}`."""


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
    details: str = ""
    """The whole description where `description` is cut: for discovery, never for the prompt."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """Parameter -> where it was found, in words for the tool's author. Empty: its own schema."""
    facts: tuple[str, ...] = ()
    """More for the author, a line each: how it is called, what is wrong with its notes."""
    timeout_s: float | None = None
    """How long a call may take where that is more than usual."""
    read_only: bool | None = None
    """Whether a call changes nothing, as far as its source says; None: it says nothing."""
    own_name: str = ""
    """What the server itself calls it, where `name` is not that."""
    remembered: bool = True
    """Whether its results are something to refer back to, later in the conversation."""
