"""Reading a reply of the text protocol: as any reply is read, within the protocol's limits."""

from __future__ import annotations

import json

from caal_node.models.backends.base import Chunk, ReasoningChunk, TextChunk
from caal_node.models.question import Question
from caal_node.models.strategies.base import Doubt
from caal_node.models.strategies.limits import DEFAULT, ProtocolLimits, calls_left
from caal_node.models.strategies.reply_text import ReplyText
from caal_node.models.strategies.speech_filter import only_speech
from caal_node.reply_parser import (
    BrokenCall,
    Event,
    ReasoningDelta,
    ToolCallEnd,
    ToolCallStart,
)


class TextReader:
    def __init__(
        self,
        question: Question,
        *,
        may_call: bool = True,
        limits: ProtocolLimits = DEFAULT,
        in_thinking: bool = False,
    ) -> None:
        self.doubt: Doubt | None = None
        self._text = ReplyText(question.tools.schemas, in_thinking=in_thinking)
        self._may_call = may_call
        self._limits = limits
        self._left = calls_left(question.items, limits)
        self._beyond = False

    @property
    def unclosed(self) -> bool:
        return self._text.unclosed

    def feed(self, chunk: Chunk) -> list[Event]:
        if isinstance(chunk, ReasoningChunk):
            self._text.begins_outside()
            return [ReasoningDelta(chunk.text)]
        return self._allowed(self._text.feed(chunk.text)) if isinstance(chunk, TextChunk) else []

    def finish(self) -> list[Event]:
        return self._allowed(self._text.finish())

    def _allowed(self, events: list[Event]) -> list[Event]:
        if not self._may_call:
            return only_speech(events)
        kept: list[Event] = []
        for event in events:
            if isinstance(event, ToolCallStart):
                self._beyond = self._left <= 0
                self._left -= 1
            if self._beyond and isinstance(event, ToolCallStart | ToolCallEnd | BrokenCall):
                continue
            kept.append(self._bounded(event) if isinstance(event, ToolCallEnd) else event)
        return kept

    def _bounded(self, call: ToolCallEnd) -> Event:
        written = json.dumps(call.arguments, ensure_ascii=False, default=str)
        size = len(written.encode(errors="replace"))
        if size <= self._limits.payload_bytes:
            return call
        problem = f"The arguments have {size} bytes; {self._limits.payload_bytes} are allowed."
        return BrokenCall(call.id, call.name, problem)
