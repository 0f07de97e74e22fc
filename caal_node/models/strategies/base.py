"""A way of asking: how a question becomes a request, and how its reply is read."""

from __future__ import annotations

import typing
from typing import Literal, TypeAlias

from caal_node.models.backends.base import BackendRequest, Chunk
from caal_node.models.question import Question
from caal_node.reply_parser import Event

StrategyName: TypeAlias = Literal["native", "one_reply", "protocol", "plain"]
Doubt: TypeAlias = Literal[
    "unsure",  # a call was begun that the model itself holds for unlikely
    "too_shy",  # speech was begun where the request fits a tool, and the odds were even
    "unsaid",  # a call lacks what nobody said
]


class ReplyReader(typing.Protocol):
    """Reads one reply, chunk by chunk."""

    doubt: Doubt | None
    """Why the reply is not to be used; the request may be ended as soon as it is set."""

    @property
    def unclosed(self) -> bool:
        """The reply was to begin in thinking, and has ended as speech without any closer."""
        ...

    def feed(self, chunk: Chunk) -> list[Event]: ...

    def finish(self) -> list[Event]: ...


class CallStrategy(typing.Protocol):
    """Stateless: one object serves every reply."""

    name: StrategyName

    def request(self, question: Question) -> BackendRequest: ...

    def reader(self, question: Question) -> ReplyReader: ...

    def doubted(self, doubt: Doubt) -> CallStrategy:
        """The way to ask again after `doubt`."""
        ...
