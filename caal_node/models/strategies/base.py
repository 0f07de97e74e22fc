"""What a call strategy is: how a question becomes a request, and how its reply is read."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from caal_node.models.backends.base import BackendRequest
from caal_node.models.question import Question
from caal_node.models.strategies.reply_reader import ReplyReader

StrategyName: TypeAlias = Literal["native", "json_reply", "text_protocol", "plain"]


class CallStrategy(Protocol):
    """A strategy has no state, so one object serves every reply."""

    name: StrategyName

    def request(self, question: Question) -> BackendRequest:
        """Write the request that asks `question`."""
        ...

    def reader(self, question: Question) -> ReplyReader:
        """Make a reader for one reply to that request."""
        ...
