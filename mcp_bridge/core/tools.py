"""What callers see of a tool and of its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mcp_bridge.core.server_config import Example

JsonValue: TypeAlias = Any
"""None, bool, int, float, str, list or dict, all the way down."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """One tool as its server describes it, within caps."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    read_only: bool | None = None


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """One tool of one server."""

    name: str
    """What `call_tool` takes: `server__tool`, `^[A-Za-z0-9_-]{1,64}$`, unique in the manager."""
    server: str
    tool: str
    """Its name at the server."""
    description: str
    """Without control and direction characters; may be cut."""
    input_schema: Mapping[str, Any]
    """JSON schema of an object."""
    read_only: bool | None = None
    """What the server claims; None where it says nothing. It may be a lie: let it add caution
    (False), and never allow a call for it. Letting readers of one server run side by side is all
    that True is good for: a liar harms its own order alone."""
    examples: tuple[Example, ...] = field(default=())
    """From the configuration."""


@dataclass(frozen=True, slots=True)
class ToolCallResult:
    """What a tool answered."""

    value: JsonValue
    """Structured content where there is some; else text, read as JSON where it is an object or a
    list. Pictures, sound and files are told of in a short note."""
    is_error: bool = False
    """The tool says that it failed; `value` then says why."""
    truncated: bool = False
    """`value` is a text, cut, with a note at its end."""
