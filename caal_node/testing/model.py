"""A model that says what a test wrote down, one reply a request."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from caal_node.models.backends.base import (
    BackendRequest,
    Capabilities,
    Chunk,
    NativeCall,
    ReplyDone,
    TextChunk,
    Usage,
)
from caal_node.models.llm import LLM


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A structured call, as a server with tool calls sends it."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


ScriptedReply: TypeAlias = str | Exception | Sequence[str | ScriptedCall]
"""A text, an error that the model's server answers with, or texts and calls in their order.

A call that the model writes as text, as small models do, is a text like any other: the reply is
understood as a real one's is.
"""


class ScriptedModel(LLM):
    """A `caal_node.LLM` whose server answers with `replies`, one a request.

    Args:
        replies: What the model says, in order. A request beyond the last one fails the test.
        native_tools: Whether tools are asked for by the server's own tool calls; False asks by
            text, so that a reply writes its calls in the text protocol.
    """

    def __init__(self, *replies: ScriptedReply, native_tools: bool = True) -> None:
        self._script: Final = _ScriptedBackend(replies)
        super().__init__("scripted", backend=self._script, native_tools=native_tools)

    @property
    def requests(self) -> Sequence[BackendRequest]:
        """Every request as it would have gone to the model's server, the oldest first."""
        return tuple(self._script.requests)

    @property
    def replies_left(self) -> int:
        """How many replies nobody has asked for yet."""
        return len(self._script.replies)


class _ScriptedBackend:
    """The server of a `ScriptedModel`."""

    model = "scripted"
    address = "scripted://"

    def __init__(self, replies: Sequence[ScriptedReply]) -> None:
        self.replies = list(replies)
        self.requests: list[BackendRequest] = []

    async def capabilities(self) -> Capabilities:
        return Capabilities(tools=True, thinking=False, schema=True)

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        self.requests.append(request)
        if not self.replies:
            raise AssertionError("the model was asked once more than replies were written for it")
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        for number, part in enumerate([reply] if isinstance(reply, str) else reply):
            if isinstance(part, str):
                yield TextChunk(part)
            else:
                yield NativeCall(f"scripted_{number}", part.name, json.dumps(dict(part.arguments)))
        yield ReplyDone("stop", Usage())

    async def aclose(self) -> None:
        """Do nothing, as nothing is open."""
