"""What happens in a conversation, as a closed union of frozen events.

The same objects feed `caal-node chat --json`, the demo's transcript and the room's
`caal.tools` text stream. `to_json` gives one line; the key `type` names the event.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias

Outcome: TypeAlias = Literal["ok", "error", "timeout", "refused", "cancelled"]
CueKind: TypeAlias = Literal["tool", "agent", "error", "tick"]
TierName: TypeAlias = Literal["agent", "n8n", "mcp"]
API_CALL: Final = "api_"
"""How the ids of calls begin that came over the Tools API, and not from the model."""


@dataclass(frozen=True, slots=True)
class UserSaid:
    """The turn's words, after speech to text or as typed."""

    type: ClassVar[str] = "user"
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """LiveKit's executor has begun a call. `source` is the agent's class, `n8n`, or a server."""

    type: ClassVar[str] = "tool_call_started"
    call_id: str
    tool: str
    tier: TierName
    source: str
    arguments: Mapping[str, Any] | None
    """None where the reader may not see arguments (the room, by default)."""


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A tool's source tells how far a call has come: a few times a second at most."""

    type: ClassVar[str] = "tool_progress"
    call_id: str
    tool: str
    tier: TierName
    source: str
    done: float
    """Grows; in units of the source's choice."""
    total: float | None
    message: str
    """The source's own words, for the eye."""


@dataclass(frozen=True, slots=True)
class ToolCallEnded:
    type: ClassVar[str] = "tool_call_ended"
    call_id: str
    tool: str
    tier: TierName
    outcome: Outcome
    duration_ms: int


@dataclass(frozen=True, slots=True)
class CuePlayed:
    """A ping was handed to the room."""

    type: ClassVar[str] = "cue"
    kind: CueKind


@dataclass(frozen=True, slots=True)
class Spoken:
    """A piece of text as it goes to speech synthesis."""

    type: ClassVar[str] = "speech"
    text: str


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A turn's sums: `rounds` of tools, `requests` to the model, and its whole length."""

    type: ClassVar[str] = "turn_ended"
    rounds: int
    requests: int
    duration_ms: int


Event: TypeAlias = (
    UserSaid | ToolCallStarted | ToolProgress | ToolCallEnded | CuePlayed | Spoken | TurnEnded
)


def to_json(event: Event) -> str:
    """One line of JSON: `type` first, then the event's fields in their order."""
    fields = {f.name: getattr(event, f.name) for f in dataclasses.fields(event)}
    return json.dumps(
        {"type": event.type, **fields}, ensure_ascii=False, separators=(",", ":"), default=str
    )


_TYPES: Final = {
    kind.type: kind
    for kind in (
        UserSaid,
        ToolCallStarted,
        ToolProgress,
        ToolCallEnded,
        CuePlayed,
        Spoken,
        TurnEnded,
    )
}


def from_json(line: str) -> Event:
    """The event of a line that `to_json` wrote.

    Raises:
        ValueError: the line is none, or is of a newer version.
    """
    fields = json.loads(line)
    try:
        return _TYPES[fields.pop("type")](**fields)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("this line is no event") from error
