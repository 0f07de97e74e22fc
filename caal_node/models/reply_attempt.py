"""One attempt at a reply: one request of one strategy, whose events are passed on once certain.

A `FailureSignal`, read off the reply or the error, says that the strategy does not work for the
model.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from caal_node.core.errors import (
    ModelContextFull,
    ModelError,
    ModelLacksTools,
    ModelReplyError,
    ModelTimeout,
)
from caal_node.core.prompt_files import sentence
from caal_node.grounding.meanings import at_said_time, meant_arguments
from caal_node.grounding.quantities import in_own_units
from caal_node.http_client import STEP_S
from caal_node.models.backends.base import (
    Backend,
    BackendRequest,
    Chunk,
    NativeCall,
    ReplyDone,
    ServerCall,
    ServerResult,
    TextChunk,
    Usage,
)
from caal_node.models.question import Question
from caal_node.models.reply_limits import AS_NATIVE, SLICE_CHARS, ReplyLimits, calls_left
from caal_node.models.strategies import CallStrategy
from caal_node.models.strategies.base import Doubt, only_speech, without_thinking
from caal_node.reply_parser import (
    BrokenCall,
    Event,
    TextDelta,
    TextWasThinking,
    ToolCallEnd,
    UnknownCall,
    UnspokenData,
)
from caal_node.reply_parser.events import joined

FailureSignal: TypeAlias = (
    Literal[
        "empty",  # Tokens were generated, and neither speech nor a call came of them.
        "broken_call",  # A call cannot be read.
        "data",  # An object, a list or a tag stood where speech belongs, and there was no call.
        "cut",  # The token limit ended the reply in a call, or before it held anything.
        "unknown_tool",  # A call has a name that is in no table.
        "leaked_call",  # A good call came as text where the server has structured calls.
        "refused",  # The server does not take what was asked: tools, or a schema.
        "grammar",  # The server's own grammar for calls did not fit what the model wrote.
        "broke_off",  # A stream had no end, or an error in its middle.
        "context_cut",  # The server dropped a part of the prompt, perhaps the person's own words.
        "no_call",  # The reply had to hold a call, and is speech.
    ]
    | Doubt
)

_REFUSED: Final = frozenset({400, 422})
"""HTTP statuses about what was asked: parameters that a server does not take."""
_GRAMMAR_WORDS: Final = ("does not match the expected", "grammar", "parse tool call", "tool parser")
"""Words of llama.cpp and Ollama, which come with HTTP 500."""


def signal_of_error(error: ModelError) -> FailureSignal | None:
    """Return what `error` shows of the strategy; None if no other strategy would do better.

    A wrong key, a missing model and a prompt too long stay what they are, however one asks.
    """
    if isinstance(error, ModelLacksTools):
        return "refused"
    if isinstance(error, ModelContextFull) or not isinstance(error, ModelReplyError):
        return None
    if error.status is None:
        return "broke_off"
    if error.status == 500:
        return "grammar" if any(w in str(error).lower() for w in _GRAMMAR_WORDS) else "broke_off"
    return "refused" if error.status in _REFUSED else None


def signal_of_reply(events: Sequence[Event], done: ReplyDone | None) -> FailureSignal | None:
    """Return the worst signal in a finished reply; None if it is speech, or calls that can run."""
    signal = _signal_of_events(events, done)
    return "cut" if signal and done is not None and done.reason == "length" else signal


def _signal_of_events(events: Sequence[Event], done: ReplyDone | None) -> FailureSignal | None:
    if any(isinstance(event, UnknownCall) for event in events):
        return "unknown_tool"
    if any(isinstance(event, BrokenCall) for event in events):
        return "broken_call"
    if any(isinstance(event, ToolCallEnd) for event in events):
        return None
    if any(isinstance(event, UnspokenData) for event in events):
        return "data"
    spoken = "".join(e.text for e in without_thinking(events) if isinstance(e, TextDelta))
    return None if spoken.strip() or done is None else "empty"


_UNCERTAIN = (UnknownCall, BrokenCall, UnspokenData)
"""Events that are kept back while the stream runs: another attempt may make a call or speech of
them."""


class ReplyAttempt:
    """Asks once. What it has shown is known once `run` has ended, also if by an error."""

    def __init__(self, backend: Backend, strategy: CallStrategy, question: Question) -> None:
        limits = AS_NATIVE if strategy.name == "native" else question.limits
        calls = calls_left(question.turn, limits)
        if question.may_call and not calls:
            question = replace(question, may_call=False, must_call=False)
        if question.parallel is False:
            calls = min(calls, 1)
        self.strategy = strategy
        self.request = _as_asked(strategy.request(question), question)
        self.signal: FailureSignal | None = None
        """How the attempt failed. None if it did not."""
        self.spoke = False
        """Whether something of the reply has been passed on, so that it is the reply."""
        self.lacked_argument = False
        """Whether a call was not made because nobody said what it needs."""
        self.unwanted: frozenset[str] = frozenset()
        """The tools of calls that lack an argument, and that were not meant."""
        self.dropped_call = False
        """Whether a call was written where none may be made. It is neither run nor told."""
        self.never_was_thinking = False
        """Whether the reply should have begun in thinking, and had none."""
        self.usage = Usage()
        self._backend = backend
        self._question = question
        self._events: list[Event] = []
        self._passes_on = question.stream
        """Whether what comes is passed on at once: it was asked for, or no call comes any more."""
        self._limits = ReplyLimits(calls, limits.payload)
        self._structured = False
        self._server_ran = False

    @property
    def uncertain(self) -> list[Event]:
        """The calls that cannot be made, which were kept back."""
        return [event for event in self._events if isinstance(event, _UNCERTAIN)]

    @property
    def leaked_call(self) -> bool:
        """Whether calls were made, and none of them came as the structured call it should be."""
        return self.strategy.name == "native" and self._calls and not self._structured

    @property
    def said(self) -> str | None:
        """What was passed on, if that is speech alone: the reply can go on behind it. Else None."""
        if self._calls or self._server_ran:
            return None
        said = without_thinking(self._events)
        return "".join(event.text for event in said if isinstance(event, TextDelta))

    @property
    def _calls(self) -> bool:
        return any(isinstance(event, ToolCallEnd) for event in self._events)

    @property
    def thought_aloud(self) -> bool:
        """Whether text was thinking, as the closer behind it showed."""
        return any(isinstance(event, TextWasThinking) for event in self._events)

    def _meant(self, events: Sequence[Event]) -> list[Event]:
        """Return `events` with what a reference means where a call's argument repeats it, with
        lengths of time in the units of the parameters, and with the time that was said."""
        return [self._call_as_meant(e) if isinstance(e, ToolCallEnd) else e for e in events]

    def _call_as_meant(self, call: ToolCallEnd) -> ToolCallEnd:
        question = self._question
        arguments = meant_arguments(call.arguments, question.references)
        if question.small_model:
            arguments = at_said_time(arguments, question.request)
        schemas = (tool["function"] for tool in question.tools.schemas)
        schema = next((f.get("parameters") for f in schemas if f["name"] == call.name), None)
        return replace(
            call, arguments=dict(in_own_units(schema or {}, arguments, question.request))
        )

    async def run(self) -> AsyncGenerator[Event | ServerCall | ServerResult]:
        """Ask, and yield events of a streamed reply while it comes.

        The request is closed as soon as a limit of `ReplyLimits` is reached.

        Raises:
            ModelError: the same as `Backend.ask`, and where there was nothing but thinking.
        """
        reader = self.strategy.reader(self._question)
        done: ReplyDone | None = None
        async with aclosing(self._backend.ask(self.request)) as chunks:
            worked_s = 0.0
            async for chunk in self._in_time(chunks):
                began = time.perf_counter()
                if isinstance(chunk, ReplyDone):
                    done, self.usage = chunk, chunk.usage
                    continue
                if isinstance(chunk, ServerCall | ServerResult):
                    self.spoke = self._server_ran = True  # To ask again would run it again.
                    yield chunk
                    continue
                self._structured |= isinstance(chunk, NativeCall)
                for part in _slices(chunk):
                    size = len(part.text) if isinstance(part, TextChunk) else 0
                    events = self._meant(self._limits.admit(reader.feed(part), read=size))
                    self._passes_on |= reader.is_speech
                    if reader.doubt == "unsure":
                        self.signal = "unsure"
                        return  # This ends the request.
                    for event in self._certain(events):
                        yield event
                    # A whole reply, or what one packet holds of a stream, comes all at once.
                    worked_s += time.perf_counter() - began
                    if worked_s > STEP_S:
                        await asyncio.sleep(0)
                        worked_s = 0.0
                    began = time.perf_counter()
                    if reader.invented_result:
                        self._limits.end_behind_call()
                    if self._limits.reached:
                        break
                if self._limits.reached:
                    break
        if self._limits.reached in (None, "size"):
            for event in self._certain(self._meant(self._limits.admit(reader.finish()))):
                yield event
        self.signal = signal_of_reply(self._events, done)
        if self.signal in (None, "empty") and self._question.must_call and not self._calls:
            cut = done is not None and done.reason == "length"
            self.signal = "cut" if cut else "no_call"
        doubt = reader.doubt if reader.doubt in ("needless", "repeated", "unwanted") else None
        if self.signal in (None, "empty") and doubt and not self._calls:
            self.signal = doubt
        if self._limits.reached == "thinking" and not self._holds_a_reply:
            raise ModelError(f"{self._backend.model} thought on and on, and said nothing")
        self.lacked_argument = reader.doubt == "missing_argument"
        self.unwanted = reader.unwanted
        self.never_was_thinking = reader.never_was_thinking

    def rest(self) -> list[Event]:
        """Return what of the reply is still to be passed on, now that it is the reply."""
        if self.spoke and self.signal:
            events = self.uncertain
        else:
            events = [] if self._passes_on else joined(without_thinking(self._events))
            self._note_spoken(events)
        # Who asked for one call at a time has the model ask for the next one itself.
        one_each = self._question.parallel is False
        if self._limits.note is not None and self._question.may_call and not one_each:
            events = [*events, self._limits.note]
        if self.dropped_call and self.spoke:
            # What was said may have announced the call.
            events = [*events, TextDelta(" " + sentence("not_all_done"))]
        return events

    @property
    def _holds_a_reply(self) -> bool:
        return any(
            isinstance(event, ToolCallEnd) or (isinstance(event, TextDelta) and event.text.strip())
            for event in self._events
        )

    async def _in_time(self, chunks: AsyncGenerator[Chunk]) -> AsyncGenerator[Chunk]:
        """Yield `chunks`, each within the question's `timeout_s`.

        Raises:
            ModelTimeout: one took longer.
        """
        timeout_s = self._question.timeout_s
        if timeout_s is None:
            async for chunk in chunks:
                yield chunk
            return
        while True:
            try:
                async with asyncio.timeout(timeout_s):
                    chunk = await anext(chunks, None)
            except TimeoutError:
                raise ModelTimeout(
                    f"{self._backend.address} did not go on within {timeout_s} s"
                ) from None
            if chunk is None:
                return
            yield chunk

    def _certain(self, events: list[Event]) -> list[Event]:
        """Keep `events`, and return those that can be passed on now."""
        if not self._question.may_call:
            # Models that were trained on tools go on to write calls where none are offered.
            speech = only_speech(events)
            self.dropped_call |= len(speech) < len(events)
            events = speech
        self._events.extend(events)
        if not self._passes_on:
            return []
        certain: list[Event] = [event for event in events if not isinstance(event, _UNCERTAIN)]
        self._note_spoken(certain)
        return certain

    def _note_spoken(self, events: list[Event]) -> None:
        self.spoke |= any(isinstance(event, TextDelta | ToolCallEnd) for event in events)


def _as_asked(request: BackendRequest, question: Question) -> BackendRequest:
    """Return `request` with what `question` wants of any way of asking."""
    return replace(
        request,
        # A reply that is held back only for its call comes in pieces where they have to be in time.
        stream=request.stream or (question.must_call and question.timeout_s is not None),
        must_call=question.must_call and bool(request.tools),
        parallel=question.parallel if request.tools else None,
        fields=question.fields,
    )


def _slices(chunk: Chunk) -> Iterator[Chunk]:
    """Yield `chunk` in pieces that are read in a few milliseconds each."""
    if not isinstance(chunk, TextChunk) or len(chunk.text) <= SLICE_CHARS:
        yield chunk
        return
    tokens = chunk.tokens
    for start in range(0, len(chunk.text), SLICE_CHARS):
        yield TextChunk(chunk.text[start : start + SLICE_CHARS], tokens)
        tokens = ()
