"""What a model that is asked by text may do in one turn, and the reader that holds it to that.

A model that goes round in circles ends here: nothing else counts the calls of a text protocol.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from caal_node.core.items import CallItem, Item, ResultItem, UserItem
from caal_node.models.question import Question
from caal_node.models.strategies.base import ReplyReader, only_speech
from caal_node.reply_parser import BrokenCall, Event, ToolCallEnd, ToolCallStart

ITERATIONS_MAX: Final = 8
"""Replies with calls in one turn. The next reply can only be speech."""
CALLS_PER_REPLY_MAX: Final = 6
"""Calls in one reply: more is a list that never ends. Those beyond are not run; the results that
the model then reads show which were."""
CALLS_PER_TURN_MAX: Final = 16
"""Calls in all replies of one turn."""
ARGUMENTS_MAX_BYTES: Final = 8_192
"""Bytes of one call's arguments as JSON. A person speaks some 900 bytes a minute."""


def may_call(question: Question) -> bool:
    """Return whether the reply to `question` may hold calls."""
    return question.may_call and not turn_is_over(question.items)


def turn_is_over(items: Sequence[Item]) -> bool:
    """Return whether the turn at the end of `items` has used up its replies or its calls."""
    replies = calls = 0
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if isinstance(item, UserItem):
            break
        if isinstance(item, CallItem):
            calls += 1
            # Calls that stand side by side are one reply.
            replies += index == 0 or not isinstance(items[index - 1], CallItem)
    return replies >= ITERATIONS_MAX or calls >= CALLS_PER_TURN_MAX


def calls_left(items: Sequence[Item]) -> int:
    """Return how many calls the next reply may have."""
    made = 0
    for item in reversed(items):
        if isinstance(item, UserItem):
            break
        made += isinstance(item, ResultItem)
    return max(0, min(CALLS_PER_REPLY_MAX, CALLS_PER_TURN_MAX - made))


class LimitedReader(ReplyReader):
    """Reads a reply whose calls are text, and drops or marks the calls beyond the limits."""

    def __init__(
        self, question: Question, *, speech_only: bool = False, in_thinking: bool = False
    ) -> None:
        super().__init__(question, in_thinking=in_thinking)
        self._may_call = may_call(question) and not speech_only
        self._calls_left = calls_left(question.items)
        self._beyond_limit = False

    def _allowed(self, events: list[Event]) -> list[Event]:
        if not self._may_call:
            return only_speech(events)
        kept: list[Event] = []
        for event in events:
            if isinstance(event, ToolCallStart):
                self._beyond_limit = self._calls_left <= 0
                self._calls_left -= 1
            if self._beyond_limit and isinstance(event, ToolCallStart | ToolCallEnd | BrokenCall):
                continue
            kept.append(_of_allowed_size(event) if isinstance(event, ToolCallEnd) else event)
        return kept


def _of_allowed_size(call: ToolCallEnd) -> Event:
    written = json.dumps(call.arguments, ensure_ascii=False, default=str)
    size = len(written.encode(errors="replace"))
    if size <= ARGUMENTS_MAX_BYTES:
        return call
    problem = f"The arguments have {size} bytes; {ARGUMENTS_MAX_BYTES} are allowed."
    return BrokenCall(call.id, call.name, problem)
