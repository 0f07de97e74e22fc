"""Without tools: the model may only speak. The last way tried, and the one where no tools are."""

from __future__ import annotations

from caal_node.models.port import Chunk, Reasoning, Request, Text
from caal_node.models.question import Question
from caal_node.models.ways.port import Reader, WayName
from caal_node.models.ways.speech import only_speech
from caal_node.replies import Event, ReasoningDelta, ReplyParser


class Plain:
    name: WayName = "plain"

    def request(self, question: Question) -> Request:
        return Request(question.items, stream=question.stream, max_tokens=question.max_tokens)

    def reader(self, question: Question) -> Reader:
        return _Reader(question)


class _Reader:
    def __init__(self, question: Question) -> None:
        self._parser = ReplyParser(question.tools)

    def feed(self, chunk: Chunk) -> list[Event]:
        if isinstance(chunk, Reasoning):
            return [ReasoningDelta(chunk.text)]
        return only_speech(self._parser.feed(chunk.text)) if isinstance(chunk, Text) else []

    def finish(self) -> list[Event]:
        return only_speech(self._parser.finish())
