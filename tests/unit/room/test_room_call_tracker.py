"""LiveKit's reports of a call become this project's events."""

from __future__ import annotations

import pytest
from livekit.agents import llm

from caal_node.core.events import CallReport, Outcome, ToolCallEnded
from caal_node.room.presence import CallTracker, ToolOrigin


def call(arguments: str = "{}") -> llm.FunctionCall:
    return llm.FunctionCall(call_id="c1", name="look", arguments=arguments)


def calls(noted: Outcome | None = None) -> CallTracker:
    return CallTracker(lambda _: ToolOrigin("mcp", "files"), lambda _: noted and CallReport(noted))


@pytest.mark.parametrize(
    ("status", "noted", "told"),
    [
        ("done", None, "ok"),
        ("error", None, "error"),
        ("cancelled", None, "cancelled"),
        ("done", "refused", "refused"),
        ("error", "timeout", "timeout"),
        ("cancelled", "error", "cancelled"),
    ],
)
def test_what_was_noted_wins_except_over_a_cancellation(
    status: str, noted: Outcome | None, told: Outcome
) -> None:
    it = calls(noted)
    it.started(1.0, call())
    assert it.ended(1.25, "c1", status) == ToolCallEnded("c1", "look", "mcp", told, 250)


def test_a_call_ends_once_and_not_before_it_started() -> None:
    it = calls()
    assert it.ended(1.0, "c1", "done") is None
    it.started(1.0, call())
    assert it.ended(1.0, "c1", "done") is not None
    assert it.ended(1.0, "c1", "done") is None


@pytest.mark.parametrize(
    ("text", "told"),
    [('{"a":1}', {"a": 1}), ("", {}), ("[1]", None), ("{not json", None), ("null", None)],
)
def test_only_an_object_counts_as_arguments(text: str, told: object) -> None:
    assert calls().started(0.0, call(text)).arguments == told
