"""How long each request to a model took, as its connection tells it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from caal_node.core.errors import ModelReplyError
from caal_node.core.events import ModelRequestEnded
from caal_node.models.backends.base import (
    BackendRequest,
    Capabilities,
    Chunk,
    ReplyDone,
    TextChunk,
    Usage,
)
from caal_node.models.model_connection import TimedBackend


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class SlowBackend:
    """Each piece of its reply comes a second after the one before."""

    model = "m"
    address = "http://127.0.0.1"

    def __init__(self, clock: Clock, pieces: Sequence[Chunk | BaseException]) -> None:
        self._clock, self._pieces = clock, pieces

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        for piece in self._pieces:
            self._clock.now += 1.0
            if isinstance(piece, BaseException):
                raise piece
            yield piece

    async def capabilities(self) -> Capabilities:
        return Capabilities(tools=True)

    async def aclose(self) -> None:
        pass


DONE = ReplyDone("stop", Usage(100, 7, 60))
REPLY = (TextChunk("a"), TextChunk("b"), DONE)


def timed_backend(*pieces: Chunk | BaseException) -> tuple[TimedBackend, list[ModelRequestEnded]]:
    clock, told = Clock(), list[ModelRequestEnded]()
    return TimedBackend(SlowBackend(clock, pieces), told.append, clock), told


async def test_a_request_is_told_with_its_first_piece_its_end_and_the_servers_counts() -> None:
    backend, told = timed_backend(*REPLY)
    assert [chunk async for chunk in backend.ask(BackendRequest(()))] == list(REPLY)
    assert told == [ModelRequestEnded(3000, 1000, "ok", 100, 60, 7)]
    assert (backend.model, backend.address) == ("m", "http://127.0.0.1")
    assert (await backend.capabilities()).tools


async def test_counts_that_the_server_does_not_tell_are_unknown() -> None:
    backend, told = timed_backend(TextChunk("a"), ReplyDone("stop", Usage()))
    assert len([chunk async for chunk in backend.ask(BackendRequest(()))]) == 2
    assert told == [ModelRequestEnded(2000, 1000, "ok")]


async def test_a_request_that_nobody_reads_on_is_closed() -> None:
    backend, told = timed_backend(*REPLY)
    reply = backend.ask(BackendRequest(()))
    await anext(reply)
    await reply.aclose()
    assert told == [ModelRequestEnded(1000, 1000, "closed")]


async def test_a_cancelled_request_is_closed() -> None:
    backend, told = timed_backend(asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        await anext(backend.ask(BackendRequest(())))
    assert told == [ModelRequestEnded(1000, None, "closed")]


async def test_a_request_that_fails_is_an_error() -> None:
    backend, told = timed_backend(ModelReplyError("no"))
    with pytest.raises(ModelReplyError):
        await anext(backend.ask(BackendRequest(())))
    assert told == [ModelRequestEnded(1000, None, "error")]
