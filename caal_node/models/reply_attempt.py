"""One attempt at a reply: one request of one strategy, whose events are passed on once certain."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from caal_node.core.prompt_files import sentence
from caal_node.models.backends.base import (
    Backend,
    NativeCall,
    ReplyDone,
    ServerCall,
    ServerResult,
    Usage,
)
from caal_node.models.failure_signals import FailureSignal, signal_of_reply
from caal_node.models.question import Question
from caal_node.models.strategies import CallStrategy
from caal_node.models.strategies.base import only_speech, without_thinking
from caal_node.reply_parser import (
    BrokenCall,
    Event,
    TextDelta,
    TextWasThinking,
    ToolCallEnd,
    ToolCallStart,
    UnknownCall,
)

_UNCERTAIN = (UnknownCall, BrokenCall, ToolCallStart)
"""Events that are kept back while the stream runs: another attempt may make a call of them."""


class ReplyAttempt:
    """Asks once. What it has shown is known once `run` has ended, also if by an error."""

    def __init__(self, backend: Backend, strategy: CallStrategy, question: Question) -> None:
        self.strategy = strategy
        self.request = strategy.request(question)
        self.signal: FailureSignal | None = None
        """How the attempt failed. None if it did not."""
        self.spoke = False
        """Whether something of the reply has been passed on, so that it is the reply."""
        self.lacked_argument = False
        """Whether a call was not made because nobody said what it needs."""
        self.dropped_call = False
        """Whether a call was written where none may be made. It is neither run nor told."""
        self.never_was_thinking = False
        """Whether the reply should have begun in thinking, and had none."""
        self.usage = Usage()
        self._backend = backend
        self._question = question
        self._events: list[Event] = []
        self._structured = False

    @property
    def uncertain(self) -> list[Event]:
        """The calls that cannot be made, which were kept back."""
        return [event for event in self._events if isinstance(event, _UNCERTAIN)]

    @property
    def leaked_call(self) -> bool:
        """Whether calls were made, and none of them came as the structured call it should be."""
        calls = any(isinstance(event, ToolCallEnd) for event in self._events)
        return self.strategy.name == "native" and calls and not self._structured

    @property
    def thought_aloud(self) -> bool:
        """Whether text was thinking, as the closer behind it showed."""
        return any(isinstance(event, TextWasThinking) for event in self._events)

    async def run(self) -> AsyncGenerator[Event | ServerCall | ServerResult]:
        """Ask, and yield events of a streamed reply while it comes.

        Raises:
            ModelError: the same as `Backend.ask`.
        """
        reader = self.strategy.reader(self._question)
        done: ReplyDone | None = None
        async with aclosing(self._backend.ask(self.request)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, ReplyDone):
                    done, self.usage = chunk, chunk.usage
                    continue
                if isinstance(chunk, ServerCall | ServerResult):
                    self.spoke = True  # To ask again would run it again.
                    yield chunk
                    continue
                self._structured |= isinstance(chunk, NativeCall)
                events = reader.feed(chunk)
                if reader.doubt == "unsure":
                    self.signal = "unsure"
                    return  # This ends the request.
                for event in self._certain(events):
                    yield event
        for event in self._certain(reader.finish()):
            yield event
        self.signal = signal_of_reply(self._events, done)
        self.lacked_argument = reader.doubt == "missing_argument"
        self.never_was_thinking = reader.never_was_thinking

    def rest(self) -> list[Event]:
        """Return what of the reply is still to be passed on, now that it is the reply."""
        if self.spoke and self.signal:
            events = self.uncertain
        else:
            events = [] if self._question.stream else without_thinking(self._events)
            self._note_spoken(events)
        if self.dropped_call and self.spoke:
            # What was said may have announced the call.
            events = [*events, TextDelta(" " + sentence("not_all_done"))]
        return events

    def _certain(self, events: list[Event]) -> list[Event]:
        """Keep `events`, and return those that can be passed on now."""
        if not self._question.may_call:
            # Models that were trained on tools go on to write calls where none are offered.
            speech = only_speech(events)
            self.dropped_call |= len(speech) < len(events)
            events = speech
        self._events.extend(events)
        if not self._question.stream:
            return []
        certain: list[Event] = [event for event in events if not isinstance(event, _UNCERTAIN)]
        self._note_spoken(certain)
        return certain

    def _note_spoken(self, events: list[Event]) -> None:
        self.spoke |= any(isinstance(event, TextDelta | ToolCallEnd) for event in events)
