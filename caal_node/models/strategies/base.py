"""What a call strategy is: how a question becomes a request, and how its reply becomes events.

`ReplyReader` reads a reply that is only text. The strategies subclass it where their replies hold
structured calls, or where some of the events may not be passed on. `NativeStrategy`, which most
models are asked with, stands here too, and so does the reader for replies whose calls are text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Literal, Protocol, TypeAlias

from caal_node.core.items import Item, Turn, UserItem
from caal_node.core.prompt_files import fill, read
from caal_node.core.tool_spec import ToolSchema
from caal_node.grounding.meanings import answer_in
from caal_node.grounding.references import Reference
from caal_node.models.backends.base import (
    BackendRequest,
    Chunk,
    NativeCall,
    ReasoningChunk,
    TextChunk,
)
from caal_node.models.question import Question
from caal_node.models.reply_limits import (
    ARGUMENTS_CHARS_MAX,
    NAME_CHARS_MAX,
    of_allowed_size,
    too_long,
)
from caal_node.models.strategies.call_judge import CallJudge
from caal_node.models.strategies.carried_call import (
    CarriedCalls,
    carried,
    is_carrier,
    with_carrier,
)
from caal_node.reply_parser import (
    BrokenCall,
    Event,
    ReasoningDelta,
    SpokenReplyParser,
    TextDelta,
    TextWasThinking,
    ToolCallEnd,
    UnknownCall,
)
from caal_node.reply_parser.escaping import escape_markers
from caal_node.reply_parser.events import CallBuilder, OpenCall
from caal_node.reply_parser.tool_index import ToolIndex

StrategyName: TypeAlias = Literal["native", "json_reply", "text_protocol", "plain"]
Doubt: TypeAlias = Literal[
    "unsure",  # The model began a call that it holds for unlikely itself.
    "missing_argument",  # A call needs an argument that nobody said.
    "unwanted",  # A call lacks an argument, and was not meant.
    "needless",  # A call stands on nothing that was said, or finds out what is known.
    "repeated",  # A call lists once more what the person has chosen from.
]


def only_speech(events: Sequence[Event]) -> list[Event]:
    """Return `events` without their calls, which are then neither run nor spoken."""
    kept = (TextDelta, ReasoningDelta, TextWasThinking)
    return [event for event in events if isinstance(event, kept)]


def asked_for_speech(
    items: Sequence[Item], references: Sequence[Reference] = ()
) -> tuple[Item, ...]:
    """Return `items` with a note behind the person's words that no tool is for them, or with what
    they ask for, where an earlier result has it.

    It stands in their turn, as some templates refuse a second one of the same person.
    """
    facts = escape_markers(answer_in(references))
    note = fill("answer_with.md", facts=facts) if facts else read("answer_in_words.md")
    *before, last = items
    if not isinstance(last, UserItem):
        return (*items, UserItem(note))
    return (*before, replace(last, text=f"{last.text}\n\n{note}"))


def without_thinking(events: Sequence[Event]) -> list[Event]:
    """Return `events` without the text that turned out to be thinking once its closer came."""
    kept: list[Event] = []
    open_from = 0  # Where the text begins that a closer would turn into thinking.
    for event in events:
        if isinstance(event, TextWasThinking):
            kept[open_from:] = [e for e in kept[open_from:] if not isinstance(e, TextDelta)]
            open_from = len(kept)
            continue
        kept.append(event)
        if isinstance(event, ToolCallEnd | UnknownCall | BrokenCall):
            open_from = len(kept)
    return kept


class ReplyReader:
    """Reads one reply, chunk by chunk.

    `in_thinking` says that the prompt left a think block open, as some chat templates do (R1,
    Qwen3-Thinking): the reply has the closer alone, and what stands before it would be spoken by
    the time it comes. A reply without any closer was no thinking after all. It is parsed anew at
    its end, so that it is not lost.
    """

    def __init__(
        self, question: Question, *, in_thinking: bool, tools: tuple[ToolSchema, ...] | None = None
    ) -> None:
        """`tools` are those that a reply may name; None: those that can be called."""
        self.doubt: Doubt | None = None
        """Why the reply should not be taken as it is. At "unsure" the request may be ended."""
        self.unwanted: frozenset[str] = frozenset()
        """The tools of the calls that are "unwanted"."""
        self.never_was_thinking = False
        """Whether the reply should have begun in thinking, but was speech without any closer."""
        self._tools = question.tools.schemas if tools is None else tools
        self._parser = SpokenReplyParser(self._tools, in_thinking=in_thinking)
        self._inside = in_thinking
        self._as_speech = SpokenReplyParser(self._tools) if in_thinking else None
        """Reads the same reply as one without thinking, in case that it turns out to be that."""
        self._speech_events: list[Event] = []
        self.invented_result = False
        """Whether the model goes on behind its call with what it makes up that the call gave."""
        self.is_speech = False
        """Whether it is certain that no call comes any more, so that people may hear the reply
        while it is still being written."""

    def feed(self, chunk: Chunk) -> list[Event]:
        """Return the events that `chunk` makes certain."""
        if isinstance(chunk, ReasoningChunk):
            if self._inside and not self._speech_events:
                # The server keeps thinking apart, so the text begins as speech.
                self._parser = SpokenReplyParser(self._tools)
                self._inside = False
            return [ReasoningDelta(chunk.text)]
        if not isinstance(chunk, TextChunk):
            return []
        if self._inside and self._as_speech is not None:
            self._speech_events += self._as_speech.feed(chunk.text)
        events = self._parser.feed(chunk.text)
        self.invented_result = self._parser.invented_result
        return self._allowed(self._parsed(events))

    def finish(self) -> list[Event]:
        """Return the events that were held back until the reply's end."""
        events = self._parsed(self._parser.finish())
        as_speech = self._as_speech if self._inside else None
        if as_speech and (anew := [*self._speech_events, *as_speech.finish()]):
            # Where a closer came it was thinking, and so were the calls in it.
            if not any(isinstance(event, TextWasThinking) for event in anew):
                events = anew
                self.never_was_thinking = any(isinstance(e, TextDelta) for e in events)
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
        self._speech_events.clear()


class CallStrategy(Protocol):
    """A strategy has no state, so one object serves every reply."""

    name: StrategyName

    def request(self, question: Question) -> BackendRequest:
        """Write the request that asks `question`."""
        ...

    def reader(self, question: Question) -> ReplyReader:
        """Make a reader for one reply to that request."""
        ...


class NativeStrategy:
    """Sends the tools' schemas to the server, and takes the structured calls that come back.

    Calls that leak into text are read as well.
    """

    name: StrategyName = "native"

    def request(self, question: Question) -> BackendRequest:
        items: tuple[Item, ...] = carried(question.shown_items, question.head)
        if not question.may_call:
            # It is a person's turn, since templates move late instructions to the prompt's prefix.
            items = (*items, UserItem(read("last_round.md")))
        elif question.speech_only:
            items = asked_for_speech(items, question.references)
        return BackendRequest(
            items,
            tools=_in_request(question) if question.may_call else (),
            stream=question.stream,
            max_tokens=question.max_tokens,
        )

    def reader(self, question: Question) -> ReplyReader:
        return _NativeReader(question)


def _in_request(question: Question) -> tuple[ToolSchema, ...]:
    """Return the schemas that the server is sent, the same for a whole conversation."""
    return question.tools.schemas if question.head is None else with_carrier(question.head)


_WORDS: Final = (TextDelta, ReasoningDelta)


class _JudgedReader(ReplyReader):
    """Reads a reply whose calls are judged, and left out where it may only speak."""

    def __init__(
        self,
        question: Question,
        *,
        in_thinking: bool = False,
        as_said: bool = False,
        tools: tuple[ToolSchema, ...] | None = None,
    ) -> None:
        super().__init__(question, in_thinking=in_thinking, tools=tools)
        self._speech_only = question.speech_only
        self._said = False
        self._judge = CallJudge(question, as_said=as_said, trusted=not question.small_model)

    def finish(self) -> list[Event]:
        events = super().finish()
        if not self._speech_only:
            events += self._judge.closing()
        elif not self._said:
            events += self._judge.instead()  # It called again.
        return events

    def _judged(self, events: list[Event]) -> list[Event]:
        judged = self._judge.judged(events)
        self.doubt = self.doubt or self._judge.doubt
        self.unwanted = frozenset(self._judge.unwanted)
        return judged

    def _speech_of(self, events: list[Event]) -> list[Event]:
        speech = only_speech(events)
        self._said |= any(isinstance(e, TextDelta) and e.text.strip() for e in speech)
        return speech


class _NativeReader(_JudgedReader):
    def __init__(self, question: Question) -> None:
        is_carried = question.head is not None
        tools = with_carrier(question.tools) if is_carried else None
        super().__init__(question, in_thinking=question.in_thinking, tools=tools)
        self._carried = CarriedCalls(question.tools.schemas) if is_carried else None
        self._events: list[Event] = []
        self._calls = CallBuilder(
            ToolIndex.from_schemas(question.tools.schemas), self._events.append, "native_"
        )

    def feed(self, chunk: Chunk) -> list[Event]:
        if not isinstance(chunk, NativeCall):
            return super().feed(chunk)
        self._leave_thinking()  # The call is the reply, and the text before it stays unspoken.
        if (
            self._carried is not None
            and len(chunk.arguments) <= ARGUMENTS_CHARS_MAX
            and is_carrier(chunk.name[:NAME_CHARS_MAX])
        ):
            return self._allowed(self._carried.read(chunk.arguments))
        call = OpenCall(self._calls, chunk.name[: 2 * NAME_CHARS_MAX])
        if len(chunk.arguments) > ARGUMENTS_CHARS_MAX:
            call.fail(too_long(len(chunk.arguments)))
        else:
            call.end_json(chunk.arguments)
        events = list(self._events)
        self._events.clear()
        return self._allowed(events)

    def _allowed(self, events: list[Event]) -> list[Event]:
        if not self._speech_only and all(isinstance(event, _WORDS) for event in events):
            return events
        if self._carried is not None:
            events = self._carried.unwrapped(events)
        if self._speech_only:
            self._judge.judged(events)
            return self._speech_of(events)
        return self._judged(events)


# Whether a model that is asked by text may still call in a turn, and the reader that holds it to
# that. The limits are those of the question, see `TextLimits`.


class TurnClock:
    """How long ago the turn began that is asked for: at the first request with its words."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now: Final = now
        self._words: UserItem | None = None
        self._began = 0.0

    def lasts(self, items: Sequence[Item]) -> float:
        """Return the seconds since the first call with the newest words of `items`."""
        words = Turn(items).words
        if words is None or words != self._words:
            self._words, self._began = words, self._now()
        return self._now() - self._began


def may_call(question: Question) -> bool:
    """Return whether the reply to `question` may hold calls."""
    if question.must_call:
        return True
    limits = question.limits
    over = question.turn.adjacent_rounds >= limits.replies or question.lasts_s > limits.seconds
    return question.may_call and not over


class LimitedReader(_JudgedReader):
    """Reads a reply whose calls are text, and leaves the calls out where none may be made.

    `as_said` leaves out arguments that nobody said, as a schema makes a model write some. Elsewhere
    a call that lacks them is asked for again.
    """

    def __init__(
        self,
        question: Question,
        *,
        speech_only: bool = False,
        in_thinking: bool = False,
        as_said: bool = False,
    ) -> None:
        super().__init__(question, in_thinking=in_thinking, as_said=as_said)
        self._may_call = may_call(question) and not speech_only
        self._payload = question.limits.payload

    def _allowed(self, events: list[Event]) -> list[Event]:
        # What is too long is not looked at any closer.
        if not self._may_call:
            if self._speech_only:
                self._judge.judged([of_allowed_size(event, self._payload) for event in events])
            return self._speech_of(events)
        return self._judged([of_allowed_size(event, self._payload) for event in events])
