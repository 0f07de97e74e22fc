"""When a person and the agent spoke, and how long each request took: told, and told exactly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

import pytest
from livekit import rtc
from livekit.agents import AgentStateChangedEvent, ConversationItemAddedEvent, llm
from livekit.agents.metrics import LLMMetrics

from caal_node.core.errors import ModelReplyError
from caal_node.core.events import AgentVoice, ModelRequestEnded, PersonSpoke, Timing
from caal_node.models.backends.base import (
    BackendRequest,
    Capabilities,
    Chunk,
    ReplyDone,
    TextChunk,
    Usage,
)
from caal_node.models.model_connection import TimedBackend
from caal_node.room.trace_file import TurnTiming


class Output:
    audio: object | None = object()
    audio_enabled = True


class Session(rtc.EventEmitter[str]):
    """What the timing needs of LiveKit's session."""

    def __init__(self) -> None:
        super().__init__()
        self.output = Output()


class Other(llm.LLM[str]):
    """A model of another plugin, which nobody asks."""

    def chat(self, **_: Any) -> llm.LLMStream:
        raise NotImplementedError


class Timed:
    def __init__(self) -> None:
        self.told: list[Timing] = []
        self.session = Session()
        self.timing = TurnTiming(cast(Any, self.session), self.told.append, now=lambda: 1_000.0)

    def said(self, role: Any = "user", **metrics: float) -> None:
        message = llm.ChatMessage(role=role, content=["hello"], metrics=cast(Any, metrics))
        self.session.emit("conversation_item_added", ConversationItemAddedEvent(item=message))

    def state(self, old: Any, new: Any) -> None:
        changed = AgentStateChangedEvent(old_state=old, new_state=new)
        self.session.emit("agent_state_changed", changed)


def test_the_end_of_speech_is_told_with_the_words() -> None:
    timed = Timed()
    timed.said(started_speaking_at=996.5, stopped_speaking_at=999.25, transcription_delay=0.5)
    assert timed.told == [PersonSpoke(spoke_ms=2750, silent_ms=750, transcribed_ms=500)]


def test_typed_words_and_the_agents_own_have_no_speech() -> None:
    timed = Timed()
    timed.said()
    timed.said("assistant", started_speaking_at=1.0, stopped_speaking_at=2.0)
    assert timed.told == []


def test_a_wall_clock_that_was_set_back_gives_no_negative_time() -> None:
    timed = Timed()
    timed.said(started_speaking_at=1_005.0, stopped_speaking_at=1_004.0)
    assert timed.told == [PersonSpoke(spoke_ms=0, silent_ms=0, transcribed_ms=None)]


def test_the_voice_begins_and_ends_with_the_agents_state() -> None:
    timed = Timed()
    timed.state("listening", "thinking")
    timed.state("thinking", "speaking")
    timed.session.output.audio = None
    timed.state("speaking", "listening")
    assert timed.told == [
        AgentVoice(sounding=True, heard=True),
        AgentVoice(sounding=False, heard=False),
    ]


def test_a_model_of_another_plugin_is_told_by_its_metrics() -> None:
    timed, model = Timed(), Other()
    metrics = LLMMetrics(
        label="x", request_id="r", timestamp=1.0, duration=1.5, ttft=0.4, cancelled=False,
        completion_tokens=5, prompt_tokens=50, prompt_cached_tokens=10, total_tokens=55,
        tokens_per_second=1.0,
    )  # fmt: skip
    timed.timing.follow(model)
    model.emit("metrics_collected", metrics)
    model.emit("metrics_collected", metrics.model_copy(update={"ttft": -1, "cancelled": True}))
    assert timed.told == [
        ModelRequestEnded(1500, 400, "ok", 50, 10, 5),
        ModelRequestEnded(1500, None, "closed", 50, 10, 5),
    ]
    timed.timing.close()
    model.emit("metrics_collected", metrics)
    timed.state("thinking", "speaking")
    timed.said(started_speaking_at=1.0, stopped_speaking_at=2.0)
    assert len(timed.told) == 2


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
