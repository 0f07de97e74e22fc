"""A reply as a stream of events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from caal_node.replies.events import (
    BrokenCall,
    Event,
    ReasoningDelta,
    Reply,
    TextDelta,
    ToolCall,
    ToolCallEnd,
    UnknownCall,
)


class ReplyParser:
    def __init__(
        self,
        tools: Sequence[Mapping[str, Any]],
        *,
        in_thinking: bool = False,
        id_prefix: str = "call_",
    ) -> None:
        self._tools = tools

    def feed(self, chunk: str) -> list[Event]:
        return [TextDelta(chunk)] if chunk else []

    def finish(self) -> list[Event]:
        return []


def summarise(events: Iterable[Event]) -> Reply:
    text: list[str] = []
    reasoning: list[str] = []
    calls: list[ToolCall] = []
    problems: list[BrokenCall | UnknownCall] = []
    for event in events:
        if isinstance(event, TextDelta):
            text.append(event.text)
        elif isinstance(event, ReasoningDelta):
            reasoning.append(event.text)
        elif isinstance(event, ToolCallEnd):
            calls.append(ToolCall(event.name, event.arguments))
        elif isinstance(event, BrokenCall | UnknownCall):
            problems.append(event)
    return Reply(calls, "".join(text), "".join(reasoning), problems)


def parse_reply(
    text: str, tools: Sequence[Mapping[str, Any]], *, in_thinking: bool = False
) -> Reply:
    parser = ReplyParser(tools, in_thinking=in_thinking)
    return summarise([*parser.feed(text), *parser.finish()])
