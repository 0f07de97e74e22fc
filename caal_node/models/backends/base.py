"""The interface to any model's server: one request in, a stream of chunks out.

A backend knows one wire format, and nothing of LiveKit, of strategies or of what a reply means.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias, runtime_checkable

from caal_node.core.items import Item
from caal_node.core.tool_spec import ToolSchema
from caal_node.models.backends.dialect import Dialect

Think: TypeAlias = bool | Literal["low", "medium", "high", "max"]
"""Whether a model thinks before it answers, and how hard."""


_CUT_REASONS: Final = frozenset({"length", "max_tokens", "model_length"})
"""OpenAI's and Ollama's word for a reply that was cut off, Anthropic's and Mistral's."""


@dataclass(frozen=True, slots=True)
class BackendRequest:
    """What to ask a server. The same request always gives the same bytes on the wire."""

    items: tuple[Item, ...]
    tools: tuple[ToolSchema, ...] = ()
    stream: bool = True
    """If false, the reply comes complete, in as few chunks as the server gives."""
    schema: Mapping[str, Any] | None = None
    """A JSON schema that the reply's text must match, if the server can hold it to one."""
    max_tokens: int | None = None
    top_logprobs: int = 0
    """How many candidates of each token to report, if the server can. Streamed replies only."""
    first_s: float | None = None
    """Seconds until the reply's first piece, in place of the backend's own deadline."""
    must_call: bool = False
    """The reply has to hold a call of `tools`, if the server can see to that."""
    parallel: bool | None = None
    """False: one call at most, if the server can see to that. None says nothing of it."""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """Further fields by OpenAI's names, such as `temperature` or `seed`. They win."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the server says that the model can do. None means that it does not say."""

    tools: bool | None = None
    thinking: bool | None = None
    schema: bool | None = None
    context_tokens: int | None = None
    parameters: int | None = None
    """How many weights the model has."""


@dataclass(frozen=True, slots=True)
class GeneratedToken:
    """One generated token, and what the model could have written in its place.

    `top` holds texts with their natural log probabilities, best first, before any grammar has
    taken its choice away.
    """

    text: str
    top: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class TextChunk:
    text: str
    tokens: tuple[GeneratedToken, ...] = ()
    """The tokens of `text`, if `BackendRequest.top_logprobs` asked and the server tells them."""


@dataclass(frozen=True, slots=True)
class ReasoningChunk:
    """Thinking that the server keeps apart from the reply. It is never spoken."""

    text: str


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A structured call. `id` may be empty; `arguments` is JSON text as it came. If the
    reply was cut, that may be a part of it, or nothing."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ServerCall:
    """A call that the server has begun to run by itself. It is told, and never run here."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ServerResult:
    """The end of the `ServerCall` of the same id. What came of it is the server's own business."""

    id: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as the server gives them. `prompt` is the whole prompt, cached or not."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached + other.cached,
        )


@dataclass(frozen=True, slots=True)
class ReplyDone:
    """The last chunk of a reply. `length` means that a token limit cut it off."""

    reason: Literal["stop", "length"]
    usage: Usage

    @classmethod
    def of(cls, reason: str | None, usage: Usage, request: BackendRequest) -> ReplyDone:
        """Return the end of the reply to `request`, for which its server gave `reason`.

        Some servers say "stop" or "tool_calls" whatever ended it, so the tokens are counted, too.
        """
        most = request.max_tokens
        cut = reason in _CUT_REASONS or (most is not None and usage.completion >= most)
        return cls("length" if cut else "stop", usage)


Chunk: TypeAlias = TextChunk | ReasoningChunk | NativeCall | ServerCall | ServerResult | ReplyDone


class Backend(Protocol):
    """One server and one model."""

    @property
    def model(self) -> str: ...

    @property
    def address(self) -> str:
        """Where requests go (scheme, host and port), for messages to people."""
        ...

    async def capabilities(self) -> Capabilities:
        """Ask the server what the model can do.

        Raises:
            ModelUnreachable, ModelTimeout: the server did not answer.
            ModelMissing: it does not have the model.
        """
        ...

    def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        """Send `request`; the last chunk is always a `ReplyDone`.

        Closing the iterator closes the connection, which stops the server's work.

        Raises:
            ModelError: one of its kinds, before or between chunks.
        """
        ...

    async def aclose(self) -> None: ...


@runtime_checkable
class LearnsDialect(Protocol):
    """A backend of an API that its servers speak with differences."""

    dialect: Dialect


@runtime_checkable
class KeepsSlots(Protocol):
    """A backend whose servers may keep a prompt for each room."""

    async def take_slot(self) -> None:
        """Have the requests of this backend go to one slot that no other room's go to.

        Nothing happens, and nothing is raised, where the server has one alone, does not keep what
        is in it, or would refuse to be asked for it.
        """
        ...
