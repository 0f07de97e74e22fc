"""Spans of calls and of requests to a model, by the names of OpenTelemetry's GenAI conventions.

They are opened with LiveKit's tracer, so `livekit.agents.telemetry.set_tracer_provider` sends them
on together with LiveKit's own. Without a provider nothing is recorded and nothing is sent.

A call that LiveKit runs has its span already: `function_tool`, with `gen_ai.operation.name` =
`execute_tool`. Langfuse and Phoenix choose a span's type by that attribute and count one tool call
for each span that has it, so a second span would count every call twice; what LiveKit does not know
of the call is added to its span. The span keeps LiveKit's name, by which other readers find it.
Calls of the Tools API have no span of LiveKit's, and get `execute_tool {name}`.

A reply's span is LiveKit's `llm_request`, and one reply may take several requests. Readers add up
the tokens of all spans whose operation is `chat`. So `llm_request` gets no operation, as LiveKit
does it for its fallbacks, and each request has a span `chat {model}` inside. A model of another
LiveKit plugin opens such a span by itself.

Names: https://github.com/open-telemetry/semantic-conventions-genai (0.1.0); `caal.*` are our own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal

from livekit.agents import StopResponse, ToolError
from livekit.agents.telemetry import gen_ai, trace_types, tracer
from opentelemetry import propagate, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.util.types import AttributeValue

from caal_node.core.errors import CaalError
from caal_node.core.events import CallReport, CuePlayed, Event, ModelRequestEnded, ToolsTold
from caal_node.core.tool_spec import ToolSpec
from caal_node.redaction.outgoing import OutgoingRedaction

CAPTURE_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""OpenTelemetry's variable for contents in spans. Ours have none unless it is true."""


def trace_headers() -> dict[str, str]:
    """Return the headers that name the current span to another program, such as `traceparent`.

    There are none where no span is recorded.
    """
    headers = dict[str, str]()
    if trace.get_current_span().is_recording():
        propagate.inject(headers)
    return headers


class ToolSpan:
    """The span of one call. `redaction` is for its contents; None leaves them out always."""

    def __init__(self, span: Span, redaction: OutgoingRedaction | None) -> None:
        self._span: Final = span
        self._redaction: Final = redaction

    def begin(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
        """Write where the tool comes from."""
        if not self._span.is_recording():
            return
        self._span.set_attributes({"caal.tool.tier": spec.tier, "caal.tool.source": spec.source})
        if self._redaction is not None and _captures_content():
            shown = json.dumps(self._redaction.value(arguments), ensure_ascii=False, default=str)
            # LiveKit may have written both already, as the model gave them.
            self._span.set_attribute(trace_types.ATTR_GEN_AI_TOOL_CALL_ARGUMENTS, shown)
            self._span.set_attribute(trace_types.ATTR_FUNCTION_TOOL_ARGS, shown)

    def end(self, report: CallReport, error: BaseException | None) -> None:
        """Write how the call ended. LiveKit then calls every error that it is given `tool_error`;
        `caal.tool.outcome` stays."""
        if not self._span.is_recording():
            return
        self._span.set_attribute("caal.tool.outcome", report.outcome)
        if report.decisions:
            self._span.set_attribute("caal.tool.disposition", report.decisions[-1].verdict)
        _fail(self._span, error)


@contextmanager
def tool_span(
    spec: ToolSpec, exposed: str, call_id: str, redaction: OutgoingRedaction | None
) -> Generator[ToolSpan]:
    """Give LiveKit's span of the call, where that is the current one, else a new one."""
    current = trace.get_current_span()
    attributes: Mapping[str, AttributeValue] = getattr(current, "attributes", None) or {}
    if attributes.get(trace_types.ATTR_GEN_AI_TOOL_CALL_ID) == call_id:
        yield ToolSpan(current, redaction)
        return
    span = tracer.start_span(f"execute_tool {exposed}")
    if not span.is_recording():
        yield ToolSpan(span, redaction)
        return
    span.set_attributes(
        {
            trace_types.ATTR_GEN_AI_OPERATION_NAME: "execute_tool",
            trace_types.ATTR_GEN_AI_TOOL_NAME: exposed,
            trace_types.ATTR_GEN_AI_TOOL_CALL_ID: call_id,
            trace_types.ATTR_GEN_AI_TOOL_TYPE: "function",
        }
    )
    # Exceptions are left out, as their texts may hold anything.
    with trace.use_span(
        span, end_on_exit=True, record_exception=False, set_status_on_exception=False
    ):
        yield ToolSpan(span, redaction)


def note_mcp_call(
    transport: Literal["stdio", "http", "sse", "websocket"],
    protocol: str | None,
    session_id: str | None,
) -> None:
    """Write on the current call's span that it went to an MCP server, and how."""
    span = trace.get_current_span()
    if not span.is_recording():
        return
    span.set_attribute("mcp.method.name", "tools/call")
    span.set_attribute("network.transport", "pipe" if transport == "stdio" else "tcp")
    if protocol:
        span.set_attribute("mcp.protocol.version", protocol)
    if session_id:
        span.set_attribute("mcp.session.id", session_id)


def begin_chat(model: str, provider: str, *, stream: bool) -> Span:
    """Open the span of one request to a model. It is never the current one, since the reply is read
    by a generator, whose context belongs to its reader."""
    span = tracer.start_span(f"chat {model}", kind=SpanKind.CLIENT)
    if span.is_recording():
        gen_ai.set_request_attributes(
            span, operation="chat", provider=provider, model=model, stream=stream
        )
        if given := gen_ai.llm_request_attributes():
            span.set_attributes(given)
    return span


def end_chat(span: Span, ended: ModelRequestEnded, error: BaseException | None) -> None:
    """Write how a request ended, and close its span."""
    if span.is_recording():
        numbers = {
            trace_types.ATTR_GEN_AI_USAGE_INPUT_TOKENS: ended.prompt_tokens,
            trace_types.ATTR_GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: ended.cached_tokens or None,
            trace_types.ATTR_GEN_AI_USAGE_OUTPUT_TOKENS: ended.completion_tokens,
            trace_types.ATTR_GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: (
                None if ended.first_ms is None else ended.first_ms / 1000
            ),
        }
        span.set_attributes({name: n for name, n in numbers.items() if n is not None})
        span.set_attribute("caal.model.outcome", ended.outcome)
        _fail(span, error)
    span.end()


def write_cue(event: Event) -> None:
    """Write a cue as a span of no length: an event listener."""
    if isinstance(event, CuePlayed):
        tracer.start_span("cue", attributes={"caal.cue.kind": event.kind}).end()


def write_tools(told: ToolsTold) -> None:
    """Write on the current span which tools its request was told of, or its search has found."""
    span = trace.get_current_span()
    if span.is_recording():
        how = "told" if told.by == "words" else "found"
        span.set_attribute(f"caal.tools.{how}", ",".join(told.tools))
        span.set_attribute("caal.tools.tokens", told.tokens)


def _fail(span: Span, error: BaseException | None) -> None:
    """Write the kind of an error, never its text."""
    if error is None or isinstance(error, StopResponse):
        return
    if isinstance(error, CaalError):
        kind = error.kind
    else:
        kind = "tool_error" if isinstance(error, ToolError) else type(error).__qualname__
    span.set_attribute(trace_types.ATTR_ERROR_TYPE, kind)
    span.set_status(Status(StatusCode.ERROR))


def _captures_content() -> bool:
    return os.environ.get(CAPTURE_CONTENT, "").strip().lower() in ("1", "true", "yes", "on")
