"""The span of a call: what another tool's reader sees of it, and what is never in it."""

from __future__ import annotations

import asyncio
import json
import time
import timeit
from collections.abc import Generator
from typing import Any

import pytest
from livekit.agents import StopResponse, ToolError
from livekit.agents.telemetry import tracer
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from caal_node.context.tool_data import ToolDataCache
from caal_node.core.errors import (
    InvalidArguments,
    ToolBroke,
    ToolRefused,
    ToolTimeout,
    ToolUnavailable,
)
from caal_node.core.events import CallReport, ModelRequestEnded, Verdict
from caal_node.core.tool_spec import ToolSpec
from caal_node.redaction.outgoing import OutgoingRedaction
from caal_node.redaction.settings import RedactionSettings
from caal_node.telemetry.spans import (
    CAPTURE_CONTENT,
    begin_chat,
    end_chat,
    note_mcp_call,
    tool_span,
    trace_headers,
)
from caal_node.tools.call_middleware import ToolCallRequest
from caal_node.tools.pipeline import Gates, Pipeline
from caal_node.tools.table import ToolEntry, ToolTable
from tests.stand_ins.before_call import BeforeCall
from tests.stand_ins.recorded_spans import RecordedSpans, of, recorded_spans

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
SPEC = ToolSpec("mcp", "home", "home__lights", "home__lights", "Lights.", SCHEMA)
KEY = "sk-proj-0123456789abcdefABCDEF0123456789abcdefABCDEF"


@pytest.fixture
def spans() -> Generator[RecordedSpans]:
    with recorded_spans() as recorded:
        yield recorded


def entry() -> ToolEntry:
    return ToolTable([SPEC]).resolve("home__lights")


def pipeline(**options: Any) -> Pipeline:
    return Pipeline(ToolDataCache(), outgoing=OutgoingRedaction(RedactionSettings()), **options)


async def lit() -> str:
    return f"the lights are lit by {KEY}"


async def test_a_call_without_a_span_of_livekits_gets_one(spans: RecordedSpans) -> None:
    await pipeline().run(entry(), "c1", {"city": "Paris"}, lit)
    (span,) = spans.all
    assert span.name == "execute_tool home__lights"
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "home__lights",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
        "caal.tool.tier": "mcp",
        "caal.tool.source": "home",
        "caal.tool.outcome": "ok",
    }
    assert span.status.status_code is StatusCode.UNSET


async def test_livekits_own_span_of_the_call_is_used(spans: RecordedSpans) -> None:
    with tracer.start_as_current_span("function_tool") as theirs:
        theirs.set_attribute("gen_ai.tool.call.id", "c1")
        await pipeline().run(entry(), "c1", {}, lit)
        await pipeline().run(entry(), "c2", {}, lit)
    inner, outer = spans.all
    assert (inner.name, outer.name) == ("execute_tool home__lights", "function_tool")
    assert (of(outer, "caal.tool.tier"), of(outer, "caal.tool.outcome")) == ("mcp", "ok")
    assert of(inner, "gen_ai.tool.call.id") == "c2"


@pytest.mark.parametrize(
    ("error", "kind", "outcome"),
    [
        (ToolBroke("why"), "tool_error", "error"),
        (ToolTimeout("why"), "timeout", "timeout"),
        (ToolRefused("why"), "refused", "refused"),
        (ToolUnavailable("why"), "unavailable", "error"),
        (ToolError("why"), "tool_error", "error"),
        (ValueError("why"), "tool_error", "error"),
        (asyncio.CancelledError("why"), "CancelledError", "cancelled"),
    ],
)
async def test_a_failure_has_its_kind_and_not_its_words(
    error: BaseException, kind: str, outcome: str, spans: RecordedSpans
) -> None:
    async def fail() -> None:
        raise error

    with pytest.raises(BaseException, match=r"why|home__lights failed"):
        await pipeline().run(entry(), "c1", {}, fail)
    (span,) = spans.all
    assert (of(span, "error.type"), of(span, "caal.tool.outcome")) == (kind, outcome)
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
    assert not span.events
    assert "why" not in span.to_json()


async def test_arguments_that_do_not_fit_are_an_error_of_that_kind(spans: RecordedSpans) -> None:
    with pytest.raises(InvalidArguments):
        await pipeline().run(entry(), "c1", {"city": 3}, lit)
    assert of(spans.all[0], "error.type") == "invalid_arguments"


async def test_a_tool_that_wants_silence_has_not_failed(spans: RecordedSpans) -> None:
    async def quiet() -> None:
        raise StopResponse

    with pytest.raises(StopResponse):
        await pipeline().run(entry(), "c1", {}, quiet)
    assert of(spans.all[0], "error.type") is None
    assert spans.all[0].status.status_code is StatusCode.UNSET


@pytest.mark.parametrize("verdict", ["allowed", "confirmed", "dry_run", "doubted"])
async def test_the_last_decision_is_the_calls_disposition(
    verdict: Verdict, spans: RecordedSpans
) -> None:
    async def decide(call: ToolCallRequest) -> None:
        call.note("policy", "allowed", "caal.toml, line 1", time.perf_counter())
        call.note("limits", verdict, "caal.toml, line 2", time.perf_counter())

    await pipeline(gates=Gates([BeforeCall(decide)])).run(entry(), "c1", {}, lit)
    assert of(spans.all[0], "caal.tool.disposition") == verdict


async def test_a_refused_call_says_so(spans: RecordedSpans) -> None:
    async def refuse(call: ToolCallRequest) -> None:
        call.note("policy", "refused", "caal.toml, line 1", time.perf_counter())
        raise ToolRefused("not at night")

    with pytest.raises(ToolRefused):
        await pipeline(gates=Gates([BeforeCall(refuse)])).run(entry(), "c1", {}, lit)
    assert of(spans.all[0], "caal.tool.disposition") == "refused"
    assert of(spans.all[0], "error.type") == "refused"


async def test_arguments_are_there_on_request_and_redacted(
    spans: RecordedSpans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAPTURE_CONTENT, "true")
    with tracer.start_as_current_span("function_tool") as theirs:
        theirs.set_attribute("gen_ai.tool.call.id", "c1")
        theirs.set_attribute("gen_ai.tool.call.arguments", KEY)
        theirs.set_attribute("lk.pii.function_tool.arguments", KEY)
        await pipeline().run(entry(), "c1", {"city": f"Paris {KEY}"}, lit)
    (span,) = spans.all
    shown = json.loads(of(span, "gen_ai.tool.call.arguments"))
    assert shown["city"].startswith("Paris ")
    assert KEY not in span.to_json()


async def test_without_a_redaction_nothing_is_shown_even_on_request(
    spans: RecordedSpans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAPTURE_CONTENT, "true")
    await Pipeline(ToolDataCache()).run(entry(), "c1", {"city": "Paris"}, lit)
    assert "Paris" not in spans.all[0].to_json()


async def test_an_mcp_call_is_written_on_the_calls_span(spans: RecordedSpans) -> None:
    async def over_http() -> str:
        note_mcp_call("http", "2025-06-18", "session-1")
        return "done"

    await pipeline().run(entry(), "c1", {}, over_http)
    (span,) = spans.all
    names = ("mcp.method.name", "network.transport", "mcp.protocol.version", "mcp.session.id")
    assert [of(span, name) for name in names] == ["tools/call", "tcp", "2025-06-18", "session-1"]


async def test_headers_name_the_current_span_only_where_one_is_recorded(
    spans: RecordedSpans,
) -> None:
    assert trace_headers() == {}
    with tracer.start_as_current_span("function_tool") as span:
        context = span.get_span_context()
        assert trace_headers() == {
            "traceparent": f"00-{context.trace_id:032x}-{context.span_id:016x}-"
            f"{context.trace_flags:02x}"
        }
    elsewhere = trace.NonRecordingSpan(context)
    with trace.use_span(elsewhere):
        assert trace_headers() == {}


def test_without_a_provider_a_turn_costs_next_to_nothing() -> None:
    """Two calls and two requests have 0.2 ms together. The best of several runs is free of what
    else the machine does."""
    report, ended = CallReport("ok"), ModelRequestEnded(1, 1, "ok", 10, 0, 2)

    def turn() -> None:
        for _ in range(2):
            end_chat(begin_chat("m", "ollama", stream=True), ended, None)
            with tool_span(SPEC, "home__lights", "c1", None) as span:
                span.begin(SPEC, {})
                note_mcp_call("stdio", None, None)
                assert trace_headers() == {}
                span.end(report, None)

    assert min(timeit.repeat(turn, timer=time.thread_time, number=50, repeat=8)) / 50 < 0.0002
