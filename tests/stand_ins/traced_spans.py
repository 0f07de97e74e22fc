"""Spans of a turn as a trace file has them, with the names and the nesting of LiveKit's."""

from __future__ import annotations

from typing import Any

NOON_S = 1_795_867_200
CHAT = {"gen_ai.operation.name": "chat", "caal.model.outcome": "ok"}
TOOL = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "get_weather",
    "caal.tool.outcome": "ok",
}


def value(given: object) -> dict[str, Any]:
    if isinstance(given, bool):
        return {"boolValue": given}
    if isinstance(given, int):
        return {"intValue": str(given)}
    return {"doubleValue" if isinstance(given, float) else "stringValue": given}


def span(
    begin_s: float,
    end_s: float,
    name: str,
    above: str = "session",
    *,
    id: str | None = None,
    trace: str = "t1",
    **attributes: object,
) -> dict[str, Any]:
    """A span as OTLP writes it; its times are seconds after noon."""
    number = f"{trace}-{name}-{begin_s}" if id is None else f"{trace}-{id}"
    return {
        "traceId": trace,
        "spanId": number,
        "parentSpanId": f"{trace}-{above}",
        "name": name,
        "startTimeUnixNano": str(round((NOON_S + begin_s) * 1e9)),
        "endTimeUnixNano": str(round((NOON_S + end_s) * 1e9)),
        "attributes": [{"key": key, "value": value(each)} for key, each in attributes.items()],
    }


def spoken(trace: str = "t1", later_s: float = 0.0) -> dict[str, Any]:
    """Speech from -2 s to 0 s, whose turn is decided a second later."""
    delays = {"lk.end_of_turn_delay": 1.0, "lk.transcription_delay": 0.6}
    return span(later_s - 2.0, later_s + 1.0, "user_turn", trace=trace, **delays)


def answered(trace: str = "t1", later_s: float = 0.0) -> list[dict[str, Any]]:
    """A turn with two requests and a call, as LiveKit nests their spans. They are written as they
    end."""

    def at(begin_s: float, end_s: float, name: str, above: str, **more: Any) -> dict[str, Any]:
        return span(later_s + begin_s, later_s + end_s, name, above, trace=trace, **more)

    turn, tokens = f"turn-{later_s}", "gen_ai.usage.input_tokens"
    read = {tokens: 1400, "gen_ai.usage.cache_read.input_tokens": 1360}
    first = {"gen_ai.response.time_to_first_chunk": 0.3, **read}
    second = {"gen_ai.response.time_to_first_chunk": 0.2}
    inner, outer = f"run-{later_s}", f"node-{later_s}"
    return [
        at(0.9, 1.8, "chat m", inner, **CHAT, **first),
        at(0.9, 1.8, "llm_request_run", outer, id=inner),
        at(0.9, 1.8, "llm_node", turn, id=outer),
        at(1.8, 1.8, "cue", turn, **{"caal.cue.kind": "tool"}),
        at(1.8, 2.3, "function_tool", turn, **TOOL),
        at(2.3, 3.0, "chat m", turn, **CHAT, **second),
        at(2.8, 3.3, "tts_request", turn),
        at(3.1, 5.0, "agent_speaking", turn),
        at(0.9, 5.0, "agent_turn", "session", id=turn),
    ]


def traced(*spans: dict[str, Any]) -> dict[str, Any]:
    """A line of a trace file, before it is written."""
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": list(spans)}]}]}
