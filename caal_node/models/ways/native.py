"""With the server's own tool calls; calls that leak into the text are understood all the same."""

from __future__ import annotations

from caal_node.context.items import Item, User
from caal_node.models.port import Chunk, NativeCall, Reasoning, Request, Text
from caal_node.models.question import Question
from caal_node.models.ways.port import Doubt, Reader, Way, WayName
from caal_node.models.ways.reply_text import ReplyText
from caal_node.prompting import read
from caal_node.reply_parser import Event, ReasoningDelta
from caal_node.reply_parser.call_builder import CallBuilder, OpenCall
from caal_node.reply_parser.tool_index import ToolIndex


class Native:
    name: WayName = "native"

    def request(self, question: Question) -> Request:
        items: tuple[Item, ...] = question.items
        if not question.may_call:
            # A person's turn, since templates move late instructions to the head of the prompt.
            items = (*items, User(read("last_round.md")))
        return Request(
            items,
            tools=question.tools if question.may_call else (),
            stream=question.stream,
            max_tokens=question.max_tokens,
        )

    def reader(self, question: Question) -> Reader:
        return _Reader(question)

    def doubted(self, doubt: Doubt) -> Way:
        return self


class _Reader:
    def __init__(self, question: Question) -> None:
        self.doubt: Doubt | None = None
        self._text = ReplyText(question.tools, in_thinking=question.in_thinking)
        self._events: list[Event] = []
        self._desk = CallBuilder(
            ToolIndex.from_schemas(question.tools), self._events.append, "native_"
        )

    @property
    def unclosed(self) -> bool:
        return self._text.unclosed

    def feed(self, chunk: Chunk) -> list[Event]:
        if isinstance(chunk, Text):
            return self._text.feed(chunk.text)
        if isinstance(chunk, Reasoning):
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
