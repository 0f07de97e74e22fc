"""Without tools: the model may only speak. The last way tried, and the one where no tools are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from caal_node.core.items import CallItem, Item, ResultItem, UserItem
from caal_node.models.backends.base import BackendRequest, Chunk, ReasoningChunk, TextChunk
from caal_node.models.question import Question
from caal_node.models.strategies.base import CallStrategy, Doubt, ReplyReader, StrategyName
from caal_node.models.strategies.reply_text import ReplyText
from caal_node.models.strategies.speech_filter import only_speech
from caal_node.reply_parser import Event, ReasoningDelta


class PlainStrategy:
    """`as_text`: for models whose template has no place for calls and their results."""

    name: StrategyName = "plain"

    def __init__(self, *, as_text: bool = False) -> None:
        self._as_text = as_text

    def request(self, question: Question) -> BackendRequest:
        items = tuple(_told(question.items)) if self._as_text else question.items
        return BackendRequest(items, stream=question.stream, max_tokens=question.max_tokens)

    def reader(self, question: Question) -> ReplyReader:
        return _Reader(question)

    def doubted(self, doubt: Doubt) -> CallStrategy:
        return self


def _told(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        if isinstance(item, ResultItem):
            yield UserItem(f"({item.name}: {item.output})", item.id)
        elif not isinstance(item, CallItem):
            yield item


class _Reader:
    def __init__(self, question: Question) -> None:
        self.doubt: Doubt | None = None
        self._text = ReplyText(question.tools.schemas, in_thinking=question.in_thinking)

    @property
    def unclosed(self) -> bool:
        return self._text.unclosed

    def feed(self, chunk: Chunk) -> list[Event]:
        if isinstance(chunk, ReasoningChunk):
            self._text.begins_outside()
            return [ReasoningDelta(chunk.text)]
        return only_speech(self._text.feed(chunk.text)) if isinstance(chunk, TextChunk) else []

    def finish(self) -> list[Event]:
        return only_speech(self._text.finish())
