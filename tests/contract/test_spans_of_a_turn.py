"""What the tools of others are given of a turn: one tree of spans by the names that they know,
which goes on at an MCP server and in n8n."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from livekit.agents import AgentSession, TurnHandlingOptions, function_tool
from livekit.agents.telemetry import trace_types, tracer
from livekit.plugins import openai
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.semconv._incubating.attributes import (
    error_attributes,
    gen_ai_attributes,
    mcp_attributes,
    network_attributes,
)
from opentelemetry.trace import SpanKind, StatusCode

from caal_node.agent import CaalAgent
from caal_node.models.llm import LLM
from caal_node.tools.sources.mcp import McpToolSource
from caal_node.tools.sources.n8n import N8nToolSource
from tests.recorded_n8n import RecordedN8n
from tests.recorded_n8n.loopback import (
    LoopbackRequest,
    LoopbackResponse,
    LoopbackServer,
    json_response,
)
from tests.stand_ins.conversation import Conversation, conversation
from tests.stand_ins.mcp_conversation import McpAgent, mcp_conversation
from tests.stand_ins.recorded_spans import RecordedSpans, of, recorded_spans
from tests.stand_ins.stand_in_model import Call, Refuse, StandInModel

SERVER = Path(__file__).parents[1] / "stand_ins" / "meta_mcp_server.py"
CALLS = [Call("double", {"number": 4}, id="c1"), Call("meta__seen", {}, id="c2")]


class Doubling(McpAgent):
    @function_tool
    async def double(self, number: int) -> int:
        """Double a number."""
        return 2 * number


@asynccontextmanager
async def talking(model: StandInModel, folder: Path) -> AsyncGenerator[Conversation]:
    config = folder / "mcp_servers.json"
    entry = {"command": sys.executable, "args": [str(SERVER)]}
    config.write_text(json.dumps({"mcpServers": {"meta": entry}}), encoding="utf-8")
    tier: Any = McpToolSource(config, call_timeout_s=20.0, ready_s=20.0)
    async with conversation(model, agent=Doubling, tier=tier) as talk:
        yield talk


def results(model: StandInModel, request: int = 1) -> list[str]:
    messages = model.chats[request].json["messages"]
    return [message["content"] for message in messages if message["role"] == "tool"]


def parent_of(span: ReadableSpan) -> str:
    """The `traceparent` that names this span."""
    context = span.context
    return f"00-{context.trace_id:032x}-{context.span_id:016x}"


async def test_a_turn_with_two_calls_is_one_tree(tmp_path: Path) -> None:
    with recorded_spans() as spans:
        async with (
            StandInModel(CALLS, ["Eight."]) as model,
            talking(model, tmp_path) as talk,
        ):
            assert await talk.ask("double four, and what do you see?") == "Eight."
    asked, answered = spans.of("chat")
    for chat in (asked, answered):
        assert (chat.name, chat.kind) == (f"chat {model.model}", SpanKind.CLIENT)
        above = ["llm_request_run", "llm_request", "llm_node", "agent_turn", "agent_session"]
        assert spans.above(chat) == above
        assert of(chat, "gen_ai.request.model") == model.model
        assert of(chat, "gen_ai.provider.name") == "ollama"
        assert of(chat, "gen_ai.usage.input_tokens") > 0
        assert of(chat, "gen_ai.usage.output_tokens") > 0
        assert of(chat, "gen_ai.response.time_to_first_chunk") >= 0
        assert of(chat, "error.type") is None
    own, remote = spans.of("execute_tool")
    for call in (own, remote):
        assert spans.above(call) == ["agent_turn", "agent_session"]
        assert of(call, "gen_ai.tool.type") == "function"
        assert of(call, "caal.tool.disposition") == "allowed"
        assert of(call, "caal.tool.outcome") == "ok"
    assert of(own, "gen_ai.tool.name") == "double"
    assert (of(own, "caal.tool.tier"), of(own, "caal.tool.source")) == ("agent", "Doubling")
    assert of(own, "mcp.method.name") is None
    assert of(remote, "gen_ai.tool.name") == "meta__seen"
    assert (of(remote, "caal.tool.tier"), of(remote, "caal.tool.source")) == ("mcp", "meta")
    assert of(remote, "mcp.method.name") == "tools/call"
    assert of(remote, "network.transport") == "pipe"
    made = [json.loads(call)["id"] for call in calls_of(model)]
    assert [of(call, "gen_ai.tool.call.id") for call in (own, remote)] == made
    times = [asked.end_time, own.start_time, own.end_time, answered.start_time]
    assert times == sorted(times, key=lambda ns: ns or 0)


def calls_of(model: StandInModel) -> list[str]:
    (message,) = (m for m in model.chats[1].json["messages"] if m.get("tool_calls"))
    return [json.dumps(call) for call in message["tool_calls"]]


async def test_every_name_is_one_of_the_conventions(tmp_path: Path) -> None:
    """Compared with the registry, as OpenTelemetry's package has it in code."""
    places = (gen_ai_attributes, mcp_attributes, network_attributes, error_attributes)
    known = {value for place in places for name, value in vars(place).items() if name.isupper()}
    operations = {each.value for each in gen_ai_attributes.GenAiOperationNameValues}
    with recorded_spans() as spans:
        async with StandInModel(CALLS, ["Eight."]) as model, talking(model, tmp_path) as talk:
            await talk.ask("double four, and what do you see?")
    ours = [*spans.of("chat"), *spans.of("execute_tool")]
    used = {name for span in ours for name in span.attributes or {}}
    prefixes = ("gen_ai.", "mcp.", "network.", "error.")
    assert {name for name in used if name.startswith(prefixes)} <= known
    assert {of(span, "gen_ai.operation.name") for span in ours} <= operations
    transports = {each.value for each in network_attributes.NetworkTransportValues}
    assert {of(span, "network.transport") for span in ours} - {None} <= transports
    methods = {each.value for each in mcp_attributes.McpMethodNameValues}
    assert {of(span, "mcp.method.name") for span in ours} - {None} <= methods


async def test_tokens_and_calls_are_counted_once(tmp_path: Path) -> None:
    """Readers add up the spans of an operation, whoever opened them."""
    with recorded_spans() as spans:
        async with StandInModel(CALLS, ["Eight."]) as model, talking(model, tmp_path) as talk:
            await talk.ask("double four, and what do you see?")
    with_tokens = [span for span in spans.all if of(span, "gen_ai.usage.input_tokens")]
    assert len(with_tokens) == len(spans.of("chat")) == len(model.chats) == 2
    assert len(spans.of("execute_tool")) == 2


async def test_the_call_at_the_mcp_server_belongs_to_the_calls_span(tmp_path: Path) -> None:
    """Also in later turns, and where the connection was opened in another span."""
    turns = ([Call("meta__seen", {})], ["One."], [Call("meta__seen", {})], ["Two."])
    with recorded_spans() as spans:
        async with StandInModel(*turns) as model, talking(model, tmp_path) as talk:
            await talk.ask("what do you see?")
            await talk.ask("and now?")
        seen = [json.loads(line)["result"] for line in results(model, 3)]
    told = [meta["traceparent"].rpartition("-")[0] for meta in seen]
    assert told == [parent_of(call) for call in spans.of("execute_tool")]


async def test_without_a_provider_nothing_goes_out_and_nothing_breaks(tmp_path: Path) -> None:
    async with (
        StandInModel(CALLS, ["Eight."]) as model,
        talking(model, tmp_path) as talk,
    ):
        assert await talk.ask("double four, and what do you see?") == "Eight."
        assert "traceparent" not in str(results(model))


async def test_by_default_no_span_of_a_guarded_process_has_content(tmp_path: Path) -> None:
    """`guard_process` leaves LiveKit's own contents out; `allow_pii=False` does the same."""
    turns = ([Call("double", {"number": 43210987})], ["It is 86421974."])
    with recorded_spans(allow_pii=False) as spans:
        async with StandInModel(*turns) as model, talking(model, tmp_path) as talk:
            await talk.ask("double 43210987 please")
    for span in spans.all:
        shown = json.dumps([dict(span.attributes or {}), [str(e.attributes) for e in span.events]])
        assert "86421974" not in shown, span.name
        assert "43210987" not in shown, span.name
    assert len(spans.of("execute_tool")) == 1


async def test_ours_have_no_content_even_where_livekits_may(tmp_path: Path) -> None:
    with recorded_spans() as spans:
        async with StandInModel(CALLS, ["Eight."]) as model, talking(model, tmp_path) as talk:
            await talk.ask("double four, and what do you see?")
    known = {value for name, value in vars(trace_types).items() if name.startswith("ATTR_")}
    theirs = {"lk.function_tool.id", "lk.function_tool.name"}
    for chat in spans.of("chat"):
        assert not {name for name in chat.attributes or {} if "messages" in name or "pii" in name}
    for call in spans.of("execute_tool"):
        ours = set(call.attributes or {}) - known - theirs
        assert ours <= {
            "caal.tool.tier",
            "caal.tool.source",
            "caal.tool.outcome",
            "caal.tool.disposition",
            "mcp.method.name",
            "mcp.protocol.version",
            "network.transport",
        }


async def test_a_call_that_fails_at_its_server_is_an_error(tmp_path: Path) -> None:
    turns = ([Call("meta__fails", {})], ["It did not work."])
    with recorded_spans() as spans:
        async with StandInModel(*turns) as model, talking(model, tmp_path) as talk:
            await talk.ask("fail")
    (call,) = spans.of("execute_tool")
    assert of(call, "error.type") == "tool_error"
    assert of(call, "caal.tool.outcome") == "error"
    assert call.status.status_code is StatusCode.ERROR


async def test_a_request_that_the_server_refuses_is_an_error(tmp_path: Path) -> None:
    with recorded_spans() as spans:
        async with StandInModel([Refuse(500)]) as model, talking(model, tmp_path) as talk:
            await talk.ask("hello")
    (chat, *_) = spans.of("chat")
    assert of(chat, "error.type").startswith("model")
    assert chat.status.status_code is StatusCode.ERROR
    assert not chat.events


async def test_each_request_of_a_reply_has_its_span(tmp_path: Path) -> None:
    """A reply that the model cut off is asked for again, in the same reply of LiveKit's."""
    async with StandInModel(["<think>Well"], ["Hello."]) as model:
        with recorded_spans() as spans:
            async with talking(model, tmp_path) as talk:
                await talk.ask("hello")
        assert len(spans.of("chat")) == len(model.chats) == 2


async def test_a_model_of_another_plugin_is_not_counted_twice(tmp_path: Path) -> None:
    async with StandInModel(["Hello."]) as server:
        other = openai.LLM(model=server.model, base_url=server.openai_url, api_key="none")
        model = LLM.over(other)
        with recorded_spans() as spans:
            session: AgentSession[None] = AgentSession(
                llm=model, vad=None, turn_handling=TurnHandlingOptions(turn_detection=None)
            )
            await session.start(CaalAgent(tiers={}, warm=False))
            try:
                await session.run(user_input="hello")
            finally:
                await session.aclose()
                await model.aclose()
                await other.aclose()
    (chat,) = spans.of("chat")
    assert chat.name == "llm_request"
    assert of(chat, "gen_ai.usage.input_tokens") > 0


async def test_a_workflow_is_sent_the_calls_span() -> None:
    with recorded_spans() as spans:
        await one_workflow_call(spans, expected=True)


async def test_a_workflow_is_sent_nothing_without_a_span() -> None:
    await one_workflow_call(None, expected=False)


async def one_workflow_call(spans: RecordedSpans | None, *, expected: bool) -> None:
    turns = ([Call("get_weather", {"city": "Paris"})], ["Sunny."])
    async with RecordedN8n(active=["get_weather"]) as recorded, StandInModel(*turns) as model:
        tier: Any = N8nToolSource(
            recorded.base_url, mcp_token=None, api_key=recorded.api_key, call_timeout_s=10
        )
        async with conversation(model, tier=tier) as talk:
            await talk.ask("weather in Paris?")
        (call,) = (each for each in recorded.requests if each.path == "/webhook/get_weather")
    assert ("traceparent" in call.headers) == expected
    for other in recorded.requests:
        if other is not call:
            assert "traceparent" not in other.headers
    if spans is not None:
        (span,) = spans.of("execute_tool")
        assert call.headers["traceparent"].startswith(parent_of(span))
        assert of(span, "caal.tool.tier") == "n8n"


async def old_mcp(request: LoopbackRequest) -> LoopbackResponse:
    """A streamable HTTP server of 2025-06-18 with a session."""
    if request.method != "POST":
        return LoopbackResponse(405)
    message = json.loads(request.body)
    session = ("mcp-session-id", "session-1")
    match message:
        case {"method": "initialize", "id": number}:
            result: dict[str, Any] = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "old", "version": "1"},
            }
        case {"method": "tools/list", "id": number}:
            result = {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}
        case {"method": "tools/call", "id": number}:
            result = {"content": [{"type": "text", "text": "looked"}]}
        case {"id": number}:
            error = {"code": -32601, "message": "unknown method"}
            return json_response(200, {"jsonrpc": "2.0", "id": number, "error": error})
        case _:
            return LoopbackResponse(202, headers=(session,))
    return json_response(200, {"jsonrpc": "2.0", "id": number, "result": result}, session)


async def test_an_http_servers_session_is_on_the_span() -> None:
    server = LoopbackServer(old_mcp)
    url = f"http://127.0.0.1:{await server.start(0)}/mcp"
    turns = ([Call("old__look", {})], ["Looked."])
    try:
        with recorded_spans() as spans:
            async with (
                StandInModel(*turns) as model,
                mcp_conversation(model, {"mcpServers": {"old": {"url": url}}}) as talk,
            ):
                assert await talk.ask("look") == "Looked."
        (call,) = spans.of("execute_tool")
        assert of(call, "mcp.session.id") == "session-1"
        assert of(call, "network.transport") == "tcp"
        assert of(call, "mcp.protocol.version") == "2025-06-18"
    finally:
        await server.aclose()


def test_livekits_tracer_is_the_one_in_use() -> None:
    """It follows whatever provider it is given last, so the tests above change nothing for good."""
    with recorded_spans() as spans, tracer.start_as_current_span("one"):
        pass
    with tracer.start_as_current_span("two"):
        pass
    assert [span.name for span in spans.all] == ["one"]
