"""One request of one way, its events passed on as soon as they are certain."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from caal_node.models.backends.base import (
    Backend,
    NativeCall,
    ReplyDone,
    ServerCall,
    ServerResult,
    Usage,
)
from caal_node.models.failure_signals import FailureSignal, read_signs
from caal_node.models.question import Question
from caal_node.models.strategies import CallStrategy
from caal_node.models.strategies.speech_filter import only_speech, without_thinking
from caal_node.replies import (
    BrokenCall,
    Event,
    TextDelta,
    TextWasThinking,
    ToolCallEnd,
    ToolCallStart,
    UnknownCall,
)

_UNCERTAIN = (UnknownCall, BrokenCall, ToolCallStart)
"""Kept back while the stream runs: another attempt may make a call of it."""


class ReplyAttempt:
    """`sign`, `spoke` and what follows are there once `run` has ended, also by an error."""

    def __init__(self, backend: Backend, way: CallStrategy, question: Question) -> None:
        self.way = way
        self.request = way.request(question)
        self.sign: FailureSignal | None = None
        self.spoke = False
        """Something of the reply has been passed on: it is the reply."""
        self.asked_back = False
        """A call was not made, as nobody said what it needs; the person may have been asked."""
        self.dropped = False
        """A call was written where none may be made: it is neither run nor told."""
        self.unclosed = False
        """It was to begin in thinking, and was none."""
        self.usage = Usage()
        self._backend = backend
        self._question = question
        self._events: list[Event] = []
        self._structured = 0

    @property
    def held(self) -> list[Event]:
        """What cannot be called, and was kept back."""
        return [event for event in self._events if isinstance(event, _UNCERTAIN)]

    @property
    def leaked(self) -> bool:
        """Calls were made, and none of them came as the structured call it should have been."""
        calls = any(isinstance(event, ToolCallEnd) for event in self._events)
        return self.way.name == "native" and calls and not self._structured

    @property
    def thought_aloud(self) -> bool:
        """Text was thinking, as the closer behind it showed."""
        return any(isinstance(event, TextWasThinking) for event in self._events)

    async def run(self) -> AsyncGenerator[Event | ServerCall | ServerResult]:
        """Events of the reply: while it comes, or, for a complete one, once it is understood.

        Raises:
            ModelError: as `Backend.ask`.
        """
        reader = self.way.reader(self._question)
        done: ReplyDone | None = None
        async with aclosing(self._backend.ask(self.request)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, ReplyDone):
                    done, self.usage = chunk, chunk.usage
                    continue
                if isinstance(chunk, ServerCall | ServerResult):
                    self.spoke = True  # to ask again would run it again
                    yield chunk
                    continue
                self._structured += isinstance(chunk, NativeCall)
                events = reader.feed(chunk)
                if reader.doubt in ("unsure", "too_shy"):
                    self.sign = reader.doubt
                    return  # which ends the request
                for event in self._read(events):
                    yield event
        for event in self._read(reader.finish()):
            yield event
        self.sign = read_signs(self._events, done)
        self.asked_back = reader.doubt == "unsaid"
        self.unclosed = reader.unclosed

    def whole(self) -> list[Event]:
        """The events of a reply that was not to be streamed."""
        if self._question.stream:
            return []
        return [self._passed(event) for event in without_thinking(self._events)]

    def _read(self, events: list[Event]) -> list[Event]:
        if not self._question.may_call:
            # Models that were trained on tools go on to write calls where none are offered.
            speech = only_speech(events)
            self.dropped |= len(speech) < len(events)
            events = speech
        self._events.extend(events)
        if not self._question.stream:
            return []
        return [self._passed(event) for event in events if not isinstance(event, _UNCERTAIN)]

    def _passed(self, event: Event) -> Event:
        self.spoke |= isinstance(event, TextDelta | ToolCallEnd)
        return event
