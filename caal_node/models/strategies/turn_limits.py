"""What a model that is asked by text may do in one turn, and the reader that holds it to that.

A model that goes round in circles ends here: nothing else counts the calls of a text protocol.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from caal_node.core.items import CallItem, Item, ResultItem, UserItem
from caal_node.models.question import Question
from caal_node.models.strategies.reply_reader import ReplyReader, only_speech
from caal_node.replies import BrokenCall, Event, ToolCallEnd, ToolCallStart


@dataclass(frozen=True, slots=True)
class ProtocolLimits:
    """The limits of one turn in which calls are written as text."""

    iterations: int = 8
    """Replies with calls in one turn. The next reply can only be speech."""
    calls_per_reply: int = 6
    """Calls in one reply: more is a list that never ends. Those beyond are not run; the results
    that the model then reads show which were."""
    calls_per_turn: int = 16
    """Calls in all replies of one turn."""
    payload_bytes: int = 8_192
    """Bytes of one call's arguments as JSON. A person speaks some 900 bytes a minute."""
    observation_chars: int = 3_000
    """Characters of one result that the model reads, about 1,000 tokens. Of a longer result it
    reads the structure and the ids."""


DEFAULT: Final = ProtocolLimits()


def may_call(question: Question, limits: ProtocolLimits = DEFAULT) -> bool:
    """Return whether the reply to `question` may hold calls."""
    return question.may_call and not turn_is_over(question.items, limits)


def turn_is_over(items: Sequence[Item], limits: ProtocolLimits = DEFAULT) -> bool:
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
    return replies >= limits.iterations or calls >= limits.calls_per_turn


def calls_left(items: Sequence[Item], limits: ProtocolLimits = DEFAULT) -> int:
    """Return how many calls the next reply may have."""
    made = 0
    for item in reversed(items):
        if isinstance(item, UserItem):
            break
        made += isinstance(item, ResultItem)
    return max(0, min(limits.calls_per_reply, limits.calls_per_turn - made))


class LimitedReader(ReplyReader):
    """Reads a reply whose calls are text, and drops or marks the calls beyond the limits."""

    def __init__(
        self,
        question: Question,
        *,
        may_call: bool,
        limits: ProtocolLimits,
        in_thinking: bool = False,
    ) -> None:
        super().__init__(question, in_thinking=in_thinking)
        self._may_call = may_call
        self._limits = limits
        self._calls_left = calls_left(question.items, limits)
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
            kept.append(self._of_allowed_size(event) if isinstance(event, ToolCallEnd) else event)
        return kept

    def _of_allowed_size(self, call: ToolCallEnd) -> Event:
        written = json.dumps(call.arguments, ensure_ascii=False, default=str)
        size = len(written.encode(errors="replace"))
        if size <= self._limits.payload_bytes:
            return call
        problem = f"The arguments have {size} bytes; {self._limits.payload_bytes} are allowed."
        return BrokenCall(call.id, call.name, problem)
