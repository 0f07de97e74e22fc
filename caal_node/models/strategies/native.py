"""With the server's own tool calls; calls that leak into the text are understood all the same."""

from __future__ import annotations

from caal_node.core.items import Item, UserItem
from caal_node.core.prompt_files import read
from caal_node.models.backends.base import (
    BackendRequest,
    Chunk,
    NativeCall,
    ReasoningChunk,
    TextChunk,
)
from caal_node.models.question import Question
from caal_node.models.strategies.base import CallStrategy, Doubt, ReplyReader, StrategyName
from caal_node.models.strategies.reply_text import ReplyText
from caal_node.reply_parser import Event, ReasoningDelta
from caal_node.reply_parser.call_builder import CallBuilder, OpenCall
from caal_node.reply_parser.tool_index import ToolIndex


class NativeStrategy:
    name: StrategyName = "native"

    def request(self, question: Question) -> BackendRequest:
        items: tuple[Item, ...] = question.items
        if not question.may_call:
            # A person's turn, since templates move late instructions to the head of the prompt.
            items = (*items, UserItem(read("last_round.md")))
        return BackendRequest(
            items,
            tools=question.tools.schemas if question.may_call else (),
            stream=question.stream,
            max_tokens=question.max_tokens,
        )

    def reader(self, question: Question) -> ReplyReader:
        return _Reader(question)

    def doubted(self, doubt: Doubt) -> CallStrategy:
        return self


class _Reader:
    def __init__(self, question: Question) -> None:
        self.doubt: Doubt | None = None
        self._text = ReplyText(question.tools.schemas, in_thinking=question.in_thinking)
        self._events: list[Event] = []
        self._desk = CallBuilder(
            ToolIndex.from_schemas(question.tools.schemas), self._events.append, "native_"
        )

    @property
    def unclosed(self) -> bool:
        return self._text.unclosed

    def feed(self, chunk: Chunk) -> list[Event]:
        if isinstance(chunk, TextChunk):
            return self._text.feed(chunk.text)
        if isinstance(chunk, ReasoningChunk):
            self._text.begins_outside()
            return [ReasoningDelta(chunk.text)]
        if isinstance(chunk, NativeCall):
            self._text.led_to_call()
            OpenCall(self._desk, chunk.name).end_json(chunk.arguments or "{}")
        events = list(self._events)
        self._events.clear()
        return events

    def finish(self) -> list[Event]:
        return self._text.finish()
