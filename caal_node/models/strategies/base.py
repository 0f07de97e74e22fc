"""What a call strategy is: how a question becomes a request, and how its reply becomes events.

`ReplyReader` reads a reply that is only text. The strategies subclass it where their replies hold
structured calls, or where some of the events may not be passed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from caal_node.models.backends.base import BackendRequest, Chunk, ReasoningChunk, TextChunk
from caal_node.models.question import Question
from caal_node.reply_parser import (
    BrokenCall,
    Event,
    ReasoningDelta,
    ReplyParser,
    TextDelta,
    TextWasThinking,
    ToolCallEnd,
    UnknownCall,
)

StrategyName: TypeAlias = Literal["native", "json_reply", "text_protocol", "plain"]
Doubt: TypeAlias = Literal[
    "unsure",  # The model began a call that it holds for unlikely itself.
    "missing_argument",  # A call needs an argument that nobody said.
]


def only_speech(events: Sequence[Event]) -> list[Event]:
    """Return `events` without their calls, which are then neither run nor spoken."""
    kept = (TextDelta, ReasoningDelta, TextWasThinking)
    return [event for event in events if isinstance(event, kept)]


def without_thinking(events: Sequence[Event]) -> list[Event]:
    """Return `events` without the text that turned out to be thinking once its closer came."""
    kept: list[Event] = []
    after_call = 0
    for event in events:
        if isinstance(event, TextWasThinking):
            kept[after_call:] = [e for e in kept[after_call:] if not isinstance(e, TextDelta)]
            continue
        kept.append(event)
        if isinstance(event, ToolCallEnd | UnknownCall | BrokenCall):
            after_call = len(kept)
    return kept


class ReplyReader:
    """Reads one reply, chunk by chunk.

    `in_thinking` says that the prompt left a think block open, as some chat templates do (R1,
    Qwen3-Thinking): the reply has the closer alone, and what stands before it would be spoken by
    the time it comes. A reply without any closer was no thinking after all. It is parsed anew at
    its end, so that it is not lost.
    """

    def __init__(self, question: Question, *, in_thinking: bool) -> None:
        self.doubt: Doubt | None = None
        """Why the reply should not be taken as it is. At "unsure" the request may be ended."""
        self.never_was_thinking = False
        """Whether the reply should have begun in thinking, but was speech without any closer."""
        self._tools = question.tools.schemas
        self._parser = ReplyParser(self._tools, in_thinking=in_thinking)
        self._inside = in_thinking
        self._thought: list[str] = []

    def feed(self, chunk: Chunk) -> list[Event]:
        """Return the events that `chunk` makes certain."""
        if isinstance(chunk, ReasoningChunk):
            if self._inside and not self._thought:
                # The server keeps thinking apart, so the text begins as speech.
                self._parser = ReplyParser(self._tools)
                self._inside = False
            return [ReasoningDelta(chunk.text)]
        if not isinstance(chunk, TextChunk):
            return []
        if self._inside:
            self._thought.append(chunk.text)
        return self._allowed(self._parsed(self._parser.feed(chunk.text)))

    def finish(self) -> list[Event]:
        """Return the events that were held back until the reply's end."""
        events = self._parsed(self._parser.finish())
        if self._inside and "".join(self._thought).strip():
            anew = ReplyParser(self._tools)
            events = [*anew.feed("".join(self._thought)), *anew.finish()]
            closed = any(isinstance(event, TextWasThinking) for event in events)
            self.never_was_thinking = not closed and any(isinstance(e, TextDelta) for e in events)
            events = without_thinking(events)
            self._leave_thinking()
        return self._allowed(events)

    def _allowed(self, events: list[Event]) -> list[Event]:
        """Return those of `events` that this kind of reply may hold. Subclasses narrow it."""
        return events

    def _parsed(self, events: list[Event]) -> list[Event]:
        if any(not isinstance(event, ReasoningDelta) for event in events):
            self._leave_thinking()
        return events

    def _leave_thinking(self) -> None:
        """Note that the reply is no longer in the thinking that it began in."""
        self._inside = False
        self._thought.clear()


class CallStrategy(Protocol):
    """A strategy has no state, so one object serves every reply."""

    name: StrategyName

    def request(self, question: Question) -> BackendRequest:
        """Write the request that asks `question`."""
        ...

    def reader(self, question: Question) -> ReplyReader:
        """Make a reader for one reply to that request."""
        ...
