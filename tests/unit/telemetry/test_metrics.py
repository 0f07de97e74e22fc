"""What a session's events are counted as, and that no label can grow."""

from __future__ import annotations

from typing import get_args

import pytest
from livekit.agents.metrics import LLMMetrics
from prometheus_client import CollectorRegistry, generate_latest

from caal_node.core.events import (
    ClaimCorrected,
    CueKind,
    CuePlayed,
    ModelRequestEnded,
    Outcome,
    RequestOutcome,
    Spoken,
    TierName,
    ToolCallEnded,
    TurnEnded,
)
from caal_node.telemetry.metrics import SessionMetrics, request_of, session_metrics


class Counted:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.tell = SessionMetrics(self.registry)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    def series(self) -> set[str]:
        lines = generate_latest(self.registry).decode().splitlines()
        return {
            line.rpartition(" ")[0] for line in lines if line[0] != "#" and "_created" not in line
        }


@pytest.mark.parametrize("outcome", get_args(Outcome))
@pytest.mark.parametrize("tier", get_args(TierName))
def test_a_call_is_counted_by_tier_and_outcome_with_its_time(
    tier: TierName, outcome: Outcome
) -> None:
    it = Counted()
    it.tell(ToolCallEnded("c1", "any_tool", tier, outcome, 250))
    it.tell(ToolCallEnded("c2", "other_tool", tier, outcome, 750))
    assert it.value("caal_tool_calls_total", tier=tier, outcome=outcome) == 2
    assert it.value("caal_tool_call_duration_seconds_sum", tier=tier) == 1.0
    assert it.value("caal_tool_call_duration_seconds_count", tier=tier) == 2
    others = sum(
        it.value("caal_tool_calls_total", tier=t, outcome=o) or 0
        for t in get_args(TierName)
        for o in get_args(Outcome)
    )
    assert others == 2


@pytest.mark.parametrize("outcome", get_args(RequestOutcome))
def test_a_request_is_counted_with_its_times(outcome: RequestOutcome) -> None:
    it = Counted()
    it.tell(ModelRequestEnded(2000, 500, outcome, 100, 60, 7))
    it.tell(ModelRequestEnded(1000, None, outcome))
    assert it.value("caal_model_requests_total", outcome=outcome) == 2
    assert it.value("caal_model_request_duration_seconds_sum") == 3.0
    assert it.value("caal_model_first_token_seconds_sum") == 0.5
    assert it.value("caal_model_first_token_seconds_count") == 1, "one of them had no first piece"


def test_turns_claims_and_cues_are_counted() -> None:
    it = Counted()
    it.tell(TurnEnded(1, 2, 900))
    it.tell(ClaimCorrected("I have lit it.", "call"))
    for kind in ("tool", "tool", "tick"):
        it.tell(CuePlayed(kind))
    it.tell(Spoken("Nobody counts words."))
    assert it.value("caal_turns_total") == 1
    assert it.value("caal_claims_corrected_total") == 1
    assert {k: it.value("caal_cues_total", kind=k) for k in get_args(CueKind)} == {
        "tool": 2, "agent": 0, "error": 0, "tick": 1, "done": 0, "ring": 0,
    }  # fmt: skip


def test_no_event_adds_a_series() -> None:
    it = Counted()
    before = it.series()
    for number in range(20):
        for tier in get_args(TierName):
            it.tell(ToolCallEnded(f"c{number}", f"tool_{number}", tier, "ok", number))
        it.tell(ClaimCorrected(f"claim {number}", "nothing"))
        it.tell(ModelRequestEnded(number, number, "ok"))
        it.tell(CuePlayed("ring"))
        it.tell(TurnEnded(number, number, number))
    assert it.series() == before
    assert not [line for line in before if "tool_1" in line]


def test_a_request_to_a_model_of_another_plugin_is_one_like_ours() -> None:
    metrics = LLMMetrics(
        label="x", request_id="r", timestamp=1.0, duration=1.5, ttft=0.4, cancelled=False,
        completion_tokens=5, prompt_tokens=50, prompt_cached_tokens=10, total_tokens=55,
        tokens_per_second=1.0,
    )  # fmt: skip
    assert request_of(metrics) == ModelRequestEnded(1500, 400, "ok", 50, 10, 5)
    closed = metrics.model_copy(update={"ttft": -1, "cancelled": True})
    assert request_of(closed) == ModelRequestEnded(1500, None, "closed", 50, 10, 5)


def test_all_sessions_of_a_process_count_in_one_place() -> None:
    assert session_metrics() is session_metrics()
