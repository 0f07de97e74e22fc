"""Tracks the calls and turns of a session, and makes their events."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from livekit.agents import llm

from caal_node.core.events import (
    REASON_CHARS,
    CallReport,
    Event,
    Outcome,
    TierName,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
)
from caal_node.models.backends.base import ServerCall, ServerResult

SERVER_SOURCE: Final = "model server"
"""The source, in events, of tools that the model's server runs by itself."""


@dataclass(frozen=True, slots=True)
class ToolOrigin:
    """The origin of a tool. `source` is the agent's class, `n8n`, or an MCP server's name."""

    tier: TierName
    source: str


Describe: TypeAlias = Callable[[str], ToolOrigin]
"""It returns the origin of the tool with an exposed name."""
ReportOf: TypeAlias = Callable[[str], CallReport | None]
"""It returns how the call of an id ended, where more is known of that than LiveKit knows."""

_OUTCOMES: Final[dict[str, Outcome]] = {"done": "ok", "error": "error", "cancelled": "cancelled"}


@dataclass(frozen=True, slots=True)
class _RunningCall:
    tool: str
    tier: TierName
    began: float


class CallTracker:
    """The calls that LiveKit runs in one session, by id. `now` is a time in seconds."""

    def __init__(self, describe: Describe, report_of: ReportOf) -> None:
        self._describe = describe
        self._report_of = report_of
        self._running: dict[str, _RunningCall] = {}

    @property
    def under_way(self) -> bool:
        return bool(self._running)

    def started(self, now: float, call: llm.FunctionCall) -> ToolCallStarted:
        origin = self._describe(call.name)
        self._running[call.call_id] = _RunningCall(call.name, origin.tier, now)
        return ToolCallStarted(
            call.call_id,
            call.name,
            origin.tier,
            origin.source,
            arguments_of(call.arguments),
        )

    def ended(
        self, now: float, call_id: str, status: str, message: str | None = None
    ) -> ToolCallEnded | None:
        """Return the event for LiveKit's `status`, or None for a call whose start is unknown.

        Args:
            message: LiveKit's own words. They say why a call never reached its tool, as where its
                arguments did not fit.
        """
        if (call := self._running.pop(call_id, None)) is None:
            return None
        outcome = _OUTCOMES[status]
        report = self._report_of(call_id)
        if report is None:
            why = " ".join((message or "").split()) if outcome == "error" else ""
            report = CallReport(outcome, reason=why[:REASON_CHARS])
        if outcome != "cancelled":
            # A cancelled call stays cancelled, whatever outcome was noted while it was stopped.
            outcome = report.outcome
        duration_ms = round((now - call.began) * 1000)
        return ToolCallEnded(
            *(call_id, call.tool, call.tier, outcome, duration_ms, report.decisions),
            reason=report.reason,
            result=report.result,
        )


class ServerCallTracker:
    """The calls of one session that the model's server runs by itself.

    `now` returns seconds. `begin(call_id, tool)` and `end(call_id, outcome)` play the cues, and
    `emit` takes the events.
    """

    def __init__(
        self,
        now: Callable[[], float],
        emit: Callable[[Event], None],
        begin: Callable[[str, str], None],
        end: Callable[[str, Outcome], None],
    ) -> None:
        self._now = now
        self._emit = emit
        self._begin = begin
        self._end = end
        self._open: dict[str, tuple[str, float]] = {}

    def note(self, run: ServerCall | ServerResult) -> None:
        """Take the start or the result of a call."""
        if isinstance(run, ServerCall):
            self._open[run.id] = (run.name, self._now())
            self._begin(run.id, run.name)
            arguments = arguments_of(run.arguments)
            self._emit(ToolCallStarted(run.id, run.name, "mcp", SERVER_SOURCE, arguments))
        else:
            self._close(run.id, "error" if run.failed else "ok")

    def reply_over(self) -> None:
        """End the calls that are still open as cancelled, since the reply's stream has ended."""
        for call_id in list(self._open):
            self._close(call_id, "cancelled")

    def _close(self, call_id: str, outcome: Outcome) -> None:
        if (call := self._open.pop(call_id, None)) is not None:
            tool, began = call
            duration_ms = round((self._now() - began) * 1000)
            self._emit(ToolCallEnded(call_id, tool, "mcp", outcome, duration_ms))
            self._end(call_id, outcome)


class TurnMeter:
    """Counts a turn's requests and rounds, and its time. `now` is in seconds.

    Requests count from the end of the turn before, since LiveKit may begin an answer before the
    turn's words are known.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._rounds = 0
        self._requests = 0

    @property
    def open(self) -> bool:
        return self._began is not None

    def begin(self, now: float) -> None:
        self._began = now

    def note_request(self) -> None:
        self._requests += 1

    def note_round(self) -> None:
        self._rounds += 1

    def end(self, now: float) -> TurnEnded | None:
        """End the turn, or return None where none is open, as after a greeting."""
        began, rounds, requests = self._began, self._rounds, self._requests
        self._began, self._rounds, self._requests = None, 0, 0
        if began is None:
            return None
        return TurnEnded(rounds, requests, duration_ms=round((now - began) * 1000))


def arguments_of(arguments: str) -> dict[str, Any] | None:
    """Return the JSON object in `arguments`, or None where it holds none.

    LiveKit has repaired the JSON before it runs a call.
    """
    try:
        value: object = json.loads(arguments or "{}")
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
