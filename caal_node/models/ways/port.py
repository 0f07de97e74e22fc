"""A way of asking: how a question becomes a request, and how its reply is read."""

from __future__ import annotations

import typing
from typing import Literal, TypeAlias

from caal_node.models.port import Chunk, Request
from caal_node.models.question import Question
from caal_node.replies import Event

WayName: TypeAlias = Literal["native", "protocol", "plain"]


class Reader(typing.Protocol):
    """Reads one reply, chunk by chunk."""

    def feed(self, chunk: Chunk) -> list[Event]: ...

    def finish(self) -> list[Event]: ...


class Way(typing.Protocol):
    """Stateless: one object serves every reply."""

    name: WayName

    def request(self, question: Question) -> Request: ...

    def reader(self, question: Question) -> Reader: ...
