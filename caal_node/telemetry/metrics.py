"""Counters and histograms for Prometheus. No label grows: tools, models and rooms have none.

Those of conversations are in the process's own registry, as LiveKit's are, so the worker's
`/metrics` has them; where each room has a process of its own, `PROMETHEUS_MULTIPROC_DIR` is what
collects them. The control process serves those of its own requests.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Final, get_args

from livekit.agents.metrics import LLMMetrics
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from caal_node.core.events import (
    ClaimCorrected,
    CueKind,
    CuePlayed,
    Event,
    ModelRequestEnded,
    Outcome,
    RequestOutcome,
    TierName,
    ToolCallEnded,
    TurnEnded,
)

_CALL_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 60.0)
"""Bounds for a call: a method takes milliseconds, a deadline is 20 s, a slow workflow a minute."""
_REQUEST_S: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_FIRST_S: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0)
"""Bounds for a first token: close together where a person begins to notice a wait."""
_OTHER: Final = "other"
"""The path of a request that no path of the API fits."""
METRICS_TYPE: Final = CONTENT_TYPE_LATEST


class SessionMetrics:
    """An event listener that counts, requests to the model as well.

    Every series is there from the beginning, at 0.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        calls = Counter(
            "caal_tool_calls_total",
            "Calls of tools, by how they ended.",
            ["tier", "outcome"],
            registry=registry,
        )
        call_s = Histogram(
            "caal_tool_call_duration_seconds",
            "Time from a call's start to its result, waits and confirmations included.",
            ["tier"],
            buckets=_CALL_S,
            registry=registry,
        )
        requests = Counter(
            "caal_model_requests_total",
            "Requests to the model, by how they ended.",
            ["outcome"],
            registry=registry,
        )
        cues = Counter("caal_cues_total", "Cues played.", ["kind"], registry=registry)
        self._calls: Final = {
            (tier, outcome): calls.labels(tier, outcome)
            for tier in get_args(TierName)
            for outcome in get_args(Outcome)
        }
        self._call_s: Final = {tier: call_s.labels(tier) for tier in get_args(TierName)}
        self._requests: Final = {each: requests.labels(each) for each in get_args(RequestOutcome)}
        self._cues: Final = {kind: cues.labels(kind) for kind in get_args(CueKind)}
        self._request_s: Final = Histogram(
            "caal_model_request_duration_seconds",
            "Time of a request to the model, from its sending to its end.",
            buckets=_REQUEST_S,
            registry=registry,
        )
        self._first_s: Final = Histogram(
            "caal_model_first_token_seconds",
            "Time from a request's sending to the first piece of its reply.",
            buckets=_FIRST_S,
            registry=registry,
        )
        self._turns: Final = Counter("caal_turns_total", "Turns.", registry=registry)
        self._claims: Final = Counter(
            "caal_claims_corrected_total",
            "Claims of the model that no call supported, and that nobody heard.",
            registry=registry,
        )

    def __call__(self, event: Event | ModelRequestEnded) -> None:
        match event:
            case ToolCallEnded(tier=tier, outcome=outcome, duration_ms=ms):
                self._calls[tier, outcome].inc()
                self._call_s[tier].observe(ms / 1000)
            case ModelRequestEnded(outcome=outcome, took_ms=ms, first_ms=first_ms):
                self._requests[outcome].inc()
                self._request_s.observe(ms / 1000)
                if first_ms is not None:
                    self._first_s.observe(first_ms / 1000)
            case TurnEnded():
                self._turns.inc()
            case ClaimCorrected():
                self._claims.inc()
            case CuePlayed(kind=kind):
                self._cues[kind].inc()
            case _:
                pass


@cache
def session_metrics() -> SessionMetrics:
    """Return the metrics of all conversations of this process."""
    return SessionMetrics()


def request_of(metrics: LLMMetrics) -> ModelRequestEnded:
    """Return what LiveKit measured of a request to a model of another plugin."""
    return ModelRequestEnded(
        took_ms=round(metrics.duration * 1000),
        first_ms=round(metrics.ttft * 1000) if metrics.ttft >= 0 else None,
        outcome="closed" if metrics.cancelled else "ok",
        prompt_tokens=metrics.prompt_tokens or None,
        cached_tokens=metrics.prompt_cached_tokens if metrics.prompt_tokens else None,
        completion_tokens=metrics.completion_tokens or None,
    )


class RequestMetrics:
    """The requests of one ASGI application, by path and status."""

    def __init__(self) -> None:
        self._registry: Final = CollectorRegistry()
        self._requests: Final = Counter(
            "caal_control_requests_total",
            "Requests to the control API.",
            ["path", "status"],
            registry=self._registry,
        )
        self._request_s: Final = Histogram(
            "caal_control_request_duration_seconds",
            "Time of a request to the control API.",
            ["path"],
            buckets=_CALL_S,
            registry=self._registry,
        )

    def note(self, path: str, status: int, took_s: float) -> None:
        self._requests.labels(path, str(status)).inc()
        self._request_s.labels(path).observe(took_s)

    def text(self) -> bytes:
        """Return what Prometheus reads, of the type `METRICS_TYPE`."""
        return generate_latest(self._registry)


class CountedRequests:
    """ASGI middleware that notes each request of `app`. A path is its route's, never a caller's."""

    def __init__(self, app: ASGIApp, metrics: RequestMetrics) -> None:
        self._app: Final = app
        self._metrics: Final = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 500  # what is answered where the application raises

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            path = getattr(scope.get("route"), "path", _OTHER)
            self._metrics.note(path, status, time.perf_counter() - began)
