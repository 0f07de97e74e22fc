"""What a call strategy is: how a question becomes a request, and how its reply becomes events.

`ReplyReader` reads a reply that is only text. The strategies subclass it where their replies hold
structured calls, or where some of the events may not be passed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from caal_node.core.tool_spec import ToolSchema
from caal_node.models.backends.base import BackendRequest, Chunk, ReasoningChunk, TextChunk
from caal_node.models.question import Question
from caal_node.replies import (
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

    `in_thinking` says that the prompt left a think block open, so the text begins inside it.
    """

    def __init__(self, question: Question, *, in_thinking: bool) -> None:
        self.doubt: Doubt | None = None
        """Why the reply should not be taken as it is. At "unsure" the request may be ended."""
        self._text = _ReplyText(question.tools.schemas, in_thinking=in_thinking)

    @property
    def never_was_thinking(self) -> bool:
        """Whether the reply should have begun in thinking, but was speech without any closer."""
        return self._text.never_was_thinking

    def feed(self, chunk: Chunk) -> list[Event]:
        """Return the events that `chunk` makes certain."""
        if isinstance(chunk, ReasoningChunk):
            self._text.begins_outside()
            return [ReasoningDelta(chunk.text)]
        return self._allowed(self._text.feed(chunk.text)) if isinstance(chunk, TextChunk) else []

    def finish(self) -> list[Event]:
        """Return the events that were held back until the reply's end."""
        return self._allowed(self._text.finish())

    def _allowed(self, events: list[Event]) -> list[Event]:
        """Return those of `events` that this kind of reply may hold. Subclasses narrow it."""
        return events


class CallStrategy(Protocol):
    """A strategy has no state, so one object serves every reply."""

    name: StrategyName

    def request(self, question: Question) -> BackendRequest:
        """Write the request that asks `question`."""
        ...

    def reader(self, question: Question) -> ReplyReader:
        """Make a reader for one reply to that request."""
        ...


class _ReplyText:
    """The text of a reply that may begin in the middle of thinking.

    Some chat templates write the opener of a think block themselves (R1, Qwen3-Thinking), so the
    reply has the closer alone, and what stands before it would be spoken by the time it comes. A
    reply without any closer was no thinking after all: it is parsed anew at its end, so that it is
    not lost.
    """

    def __init__(self, tools: Sequence[ToolSchema], *, in_thinking: bool) -> None:
        self.never_was_thinking = False
        self._tools = tools
        self._parser = ReplyParser(tools, in_thinking=in_thinking)
        self._inside = in_thinking
        self._thought: list[str] = []

    def feed(self, text: str) -> list[Event]:
        if self._inside:
            self._thought.append(text)
        return self._parsed(self._parser.feed(text))

    def begins_outside(self) -> None:
        """Note that the server keeps thinking apart, so the text begins as speech."""
        if self._inside and not self._thought:
            self._parser = ReplyParser(self._tools)
            self._inside = False

    def led_to_call(self) -> None:
        """Note a structured call: it is the reply, and the text before it stays unspoken."""
        self._inside = False
        self._thought.clear()

    def finish(self) -> list[Event]:
        events = self._parsed(self._parser.finish())
        if not self._inside or not "".join(self._thought).strip():
            return events
        self._inside = False
        anew = ReplyParser(self._tools)
        events = [*anew.feed("".join(self._thought)), *anew.finish()]
        closed = any(isinstance(event, TextWasThinking) for event in events)
        self.never_was_thinking = not closed and any(isinstance(e, TextDelta) for e in events)
        return without_thinking(events)

    def _parsed(self, events: list[Event]) -> list[Event]:
        if any(not isinstance(event, ReasoningDelta) for event in events):
            self._inside = False
            self._thought.clear()
        return events
