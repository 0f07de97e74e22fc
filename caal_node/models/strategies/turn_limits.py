"""Whether a model that is asked by text may still call in a turn, and the reader that holds it to
that. How many calls a reply may have is the same for all strategies, see `reply_limits`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from caal_node.core.items import CallItem, Item, UserItem
from caal_node.models.question import Question
from caal_node.models.reply_limits import of_allowed_size
from caal_node.models.strategies.base import ReplyReader, only_speech
from caal_node.reply_parser import Event

ITERATIONS_MAX: Final = 8
"""Replies with calls in one turn. The next reply can only be speech."""


def may_call(question: Question) -> bool:
    """Return whether the reply to `question` may hold calls."""
    return question.may_call and not turn_is_over(question.items)


def turn_is_over(items: Sequence[Item]) -> bool:
    """Return whether the turn at the end of `items` has used up its replies with calls."""
    replies = 0
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if isinstance(item, UserItem):
            break
        if isinstance(item, CallItem):
            # Calls that stand side by side are one reply.
            replies += index == 0 or not isinstance(items[index - 1], CallItem)
    return replies >= ITERATIONS_MAX


class LimitedReader(ReplyReader):
    """Reads a reply whose calls are text, and leaves the calls out where none may be made."""

    def __init__(
        self, question: Question, *, speech_only: bool = False, in_thinking: bool = False
    ) -> None:
        super().__init__(question, in_thinking=in_thinking)
        self._may_call = may_call(question) and not speech_only

    def _allowed(self, events: list[Event]) -> list[Event]:
        # What is too long is not looked at any closer, by the readers that subclass this one.
        return list(map(of_allowed_size, events)) if self._may_call else only_speech(events)
