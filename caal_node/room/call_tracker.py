"""The calls of a session as LiveKit tells them, turned into this project's events."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from livekit.agents import llm

from caal_node.core.events import Outcome, TierName, ToolCallEnded, ToolCallStarted


@dataclass(frozen=True, slots=True)
class ToolOrigin:
    """Where a tool comes from. `source` is the agent's class, `n8n`, or an MCP server's name."""

    tier: TierName
    source: str


Describe: TypeAlias = Callable[[str], ToolOrigin]
"""Exposed name -> origin."""
OutcomeOf: TypeAlias = Callable[[str], Outcome | None]
"""Call id -> how it ended, where that is known better than LiveKit knows it."""

_OUTCOMES: Final[dict[str, Outcome]] = {"done": "ok", "error": "error", "cancelled": "cancelled"}


@dataclass(frozen=True, slots=True)
class _Running:
    tool: str
    tier: TierName
    began: float


def no_outcome(call_id: str) -> Outcome | None:
    """Leave every outcome to LiveKit."""
    return None


class CallTracker:
    """The calls that run in one session, by id. Times in seconds."""

    def __init__(self, describe: Describe, outcome_of: OutcomeOf) -> None:
        self._describe = describe
        self._outcome_of = outcome_of
        self._running: dict[str, _Running] = {}

    @property
    def under_way(self) -> bool:
        return bool(self._running)

    def started(self, now: float, call: llm.FunctionCall) -> ToolCallStarted:
        origin = self._describe(call.name)
        self._running[call.call_id] = _Running(call.name, origin.tier, now)
        return ToolCallStarted(
            call.call_id, call.name, origin.tier, origin.source, arguments_of(call.arguments)
        )

    def ended(self, now: float, call_id: str, status: str) -> ToolCallEnded | None:
        """`status` is LiveKit's. None for a call that was never seen to start."""
        if (call := self._running.pop(call_id, None)) is None:
            return None
        outcome = _OUTCOMES[status]
        if outcome != "cancelled":
            # A cancelled call has no other end, whatever was noted while it was stopped.
            outcome = self._outcome_of(call_id) or outcome
        duration_ms = round((now - call.began) * 1000)
        return ToolCallEnded(call_id, call.tool, call.tier, outcome, duration_ms)


def arguments_of(arguments: str) -> dict[str, Any] | None:
    """The object that `arguments` holds; None where it is no JSON object.

    LiveKit has repaired the JSON by the time it runs a call.
    """
    try:
        value: object = json.loads(arguments or "{}")
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
