"""The plain strategy: no tools, so the model may only speak.

It is used where a conversation has no tools, and it is the last one that is tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from caal_node.core.items import CallItem, Item, ResultItem, ToolsItem, UserItem
from caal_node.models.backends.base import BackendRequest
from caal_node.models.question import Question
from caal_node.models.strategies.base import ReplyReader, StrategyName, only_speech
from caal_node.reply_parser import Event


class PlainStrategy:
    """Asks for speech. `as_text` writes results as words, for models whose chat template has no
    place for calls and their results."""

    name: StrategyName = "plain"

    def __init__(self, *, as_text: bool = False) -> None:
        self._as_text = as_text

    def request(self, question: Question) -> BackendRequest:
        shown = [item for item in question.shown_items if not isinstance(item, ToolsItem)]
        items = tuple(_results_as_text(shown) if self._as_text else shown)
        return BackendRequest(items, stream=question.stream, max_tokens=question.max_tokens)

    def reader(self, question: Question) -> ReplyReader:
        return _PlainReader(question, in_thinking=question.in_thinking)


class _PlainReader(ReplyReader):
    def _allowed(self, events: list[Event]) -> list[Event]:
        return only_speech(events)


def _results_as_text(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        if isinstance(item, ResultItem):
            yield UserItem(f"({item.name}: {item.output})", item.id)
        elif not isinstance(item, CallItem):
            yield item
