"""The text protocol: the prompt lists the tools, and each reply is either calls or speech.

It is for servers without tool calls, whatever they speak, and for servers that cannot hold a reply
to a schema; where they can, `JsonReplyStrategy` does better. Examples written as chat turns are
what helped small models most: a 1.5B rose from 17 to 37 of 40 requests right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from caal_node.core.items import CallItem, Item, ResultItem, ToolsItem, UserItem
from caal_node.models.backends.base import BackendRequest
from caal_node.models.question import Question
from caal_node.models.strategies.base import (
    ReplyReader,
    StrategyName,
    asked_for_speech,
    only_speech,
)
from caal_node.models.strategies.json_reply import line_schema
from caal_node.models.strategies.prompt import STYLES, StyleName, protocol_prompt
from caal_node.models.strategies.turn_limits import LimitedReader, may_call
from caal_node.reply_parser import Event

# The plain strategy: no tools, so the model may only speak.
#
# It is used where a conversation has no tools, and it is the last one that is tried.


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


class TextProtocolStrategy:
    """Asks for calls in one of the written styles.

    `constrain` holds the reply to a schema, which fits one line of the JSONL style only.
    """

    name: StrategyName = "text_protocol"

    def __init__(self, style: StyleName = "jsonl", *, constrain: bool = False) -> None:
        self.style: StyleName = style
        self.constrain = constrain and style == "jsonl"

    def request(self, question: Question) -> BackendRequest:
        allowed = may_call(question)
        style = STYLES[self.style]
        items = protocol_prompt(question, style, may_call=allowed, with_dialogues=self.constrain)
        if question.speech_only:
            items = asked_for_speech(items, question.references)
        tools = question.tools.schemas if allowed and not question.speech_only else ()
        return BackendRequest(
            items,
            # So that it ends at its call, whatever the model would write behind it.
            stream=True,
            schema=line_schema(tools, must_call=question.must_call) if self.constrain else None,
            max_tokens=question.max_tokens,
        )

    def reader(self, question: Question) -> ReplyReader:
        # A reply that is held to a schema has no place for thinking.
        in_thinking = question.in_thinking and not self.constrain
        return LimitedReader(question, speech_only=question.speech_only, in_thinking=in_thinking)
