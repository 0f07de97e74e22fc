"""One question, asked in one way, with the means of a real turn: ladder, way, reader, backend."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import jsonschema

from caal_node.core.errors import ModelTimeout
from caal_node.models.backends.base import (
    Backend,
    BackendRequest,
    Capabilities,
    Chunk,
    NativeCall,
    ReplyDone,
    TextChunk,
    Usage,
)
from caal_node.models.call_threshold import calibrate
from caal_node.models.question import Question
from caal_node.models.retry_policy import RetryPolicy
from caal_node.models.strategies import CallThresholds, JsonReplyStrategy
from caal_node.models.warm_up import warm
from caal_node.reply_parser import Event, Reply, TextDelta, summarise

Asking: TypeAlias = Literal["native", "text"]
"""With the server's own tool calls, or by the text protocol."""
WAYS: Final[tuple[Asking, ...]] = ("native", "text")

CASE_S: Final = 300.0
"""Seconds for one case. A cold model on two cores needs two minutes for its first reply; a reply of
full length at two tokens a second needs more than this, and is no use to anybody who waits."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What came back, and what it took."""

    reply: Reply
    pieces: int
    """Parts in which its speech came."""
    requests: int
    strayed: bool
    """The ladder had to go on to another way, or (natively) to ask once more."""
    structured: bool
    """Its calls came as structured calls of the server's, if there were any."""
    off_form: bool
    """A reply that was to fit a schema did not."""
    usage: Usage
    seconds: float


async def warm_up(backend: Backend, asking: Asking, question: Question) -> CallThresholds:
    """Have the model loaded, the prompt's head read and its odds weighed, as a session does before
    its first turn.

    Raises:
        ModelError: it could not be done.
    """
    ladder = RetryPolicy(backend)
    if asking == "text":
        ladder.leave_native("this is to be tried")
        await ladder.learn()
    way = ladder.best(question)
    await warm(backend, way.request(question))
    return (
        await calibrate(backend, question)
        if isinstance(way, JsonReplyStrategy)
        else CallThresholds()
    )


async def ask(
    backend: Backend, asking: Asking, question: Question, thresholds: CallThresholds | None = None
) -> ModelAnswer:
    """Ask as a session would that stands on `asking`, with what `warm_up` found.

    Raises:
        ModelError: no way of asking gave a reply, or not in time.
    """
    overheard = OverheardBackend(backend)
    ladder = RetryPolicy(overheard)
    ladder.thresholds = thresholds or ladder.thresholds
    if asking == "text":
        ladder.leave_native("this is to be tried")
    events: list[Event] = []
    began = time.perf_counter()
    try:
        async with asyncio.timeout(CASE_S), aclosing(ladder.ask(question)) as parts:
            async for part in parts:
                if isinstance(part, Event):
                    events.append(part)
    except TimeoutError as error:
        raise ModelTimeout(f"{backend.address} gave no whole reply in {CASE_S:g} s") from error
    first = overheard.exchanges[0]
    return ModelAnswer(
        summarise(events),
        pieces=sum(isinstance(event, TextDelta) for event in events),
        requests=len(overheard.exchanges),
        # By text, a second question may be part of the way; natively it is a repair.
        strayed=ladder.steps["plain"] > 0 or (asking == "native" and len(overheard.exchanges) > 1),
        structured=first.structured,
        off_form=first.off_form,
        usage=overheard.usage,
        seconds=time.perf_counter() - began,
    )


@dataclass(slots=True)
class _Exchange:
    request: BackendRequest
    text: list[str] = field(default_factory=list[str])
    structured: bool = False

    @property
    def off_form(self) -> bool:
        if self.request.schema is None:
            return False
        try:
            jsonschema.validate(json.loads("".join(self.text)), self.request.schema)
        except (ValueError, RecursionError, jsonschema.ValidationError):
            return True
        return False


class OverheardBackend:
    """A backend that notes what goes through it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.exchanges: list[_Exchange] = []
        self.usage = Usage()

    @property
    def model(self) -> str:
        return self._backend.model

    @property
    def address(self) -> str:
        return self._backend.address

    async def capabilities(self) -> Capabilities:
        return await self._backend.capabilities()

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        exchange = _Exchange(request)
        self.exchanges.append(exchange)
        async with aclosing(self._backend.ask(request)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case TextChunk():
                        exchange.text.append(chunk.text)
                    case NativeCall():
                        exchange.structured = True
                    case ReplyDone():
                        self.usage = _added(self.usage, chunk.usage)
                    case _:
                        pass
                yield chunk

    async def aclose(self) -> None:
        """The backend is its owner's to close."""


def _added(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.prompt + other.prompt, one.completion + other.completion, one.cached + other.cached
    )
