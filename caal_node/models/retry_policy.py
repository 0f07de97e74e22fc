"""From a question to events, going on to another way of asking where one fails.

Once more (with a note on what was wrong, where there is something to say), the text protocol, a
plain reply, an apology. Nothing is said twice: once a piece of speech is out, the reply it belongs
to is the reply. What a model has shown is remembered, so that its next turn begins on the way that
works: here for as long as the process runs, and by `Engine` from one process to the next.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from caal_node.core.errors import ModelContextFull, ModelError, ModelSilent
from caal_node.core.prompt_files import sentence
from caal_node.models.reply_attempt import ReplyAttempt
from caal_node.models.backends.base import (
    Backend,
    Capabilities,
    ReplyDone,
    ServerCall,
    ServerResult,
)
from caal_node.models.call_repair import repaired
from caal_node.models.failure_signals import FailureSignal, sign_of
from caal_node.models.model_stats import DOUBTS, ModelStats
from caal_node.models.question import Question
from caal_node.models.strategies import (
    CallStrategy,
    CallThresholds,
    JsonReplyStrategy,
    NativeStrategy,
    PlainStrategy,
    StyleName,
    TextProtocolStrategy,
)
from caal_node.models.strategy_status import StrategyStatus
from caal_node.models.truncation_detector import TruncationDetector
from caal_node.replies import Event, TextDelta, TextWasThinking

PolicyEvent: TypeAlias = Event | ServerCall | ServerResult | ReplyDone
TextStyle: TypeAlias = Literal["auto"] | StyleName
"""`auto`: one constrained reply where the server can hold one to a schema, else JSONL."""


@dataclass(frozen=True, slots=True)
class _Step:
    way: CallStrategy
    question: Question
    again: bool = False
    """The same has been asked once more already."""
    shortened: bool = False


class RetryPolicy:
    """The ways for one model on one server, and where it stands on them."""

    def __init__(self, backend: Backend, text: TextStyle = "auto") -> None:
        self._backend = backend
        self._text: TextStyle = text
        self._record = ModelStats(backend.model)
        self._told: Capabilities | None = None
        self._gauge = TruncationDetector()
        self.thresholds = CallThresholds()
        """Of one constrained reply: how sure of a call the model has to be."""
        self._server_runs = False
        self.signals: Final = self._record.signals
        """How often each sign was seen, for whoever looks after the model."""
        self.steps: Final = self._record.steps
        """How often each step was taken."""

    @property
    def model(self) -> str:
        return self._backend.model

    @property
    def native(self) -> bool:
        """Whether the model is asked with its server's own tool calls."""
        return self._record.native

    @property
    def thinks_aloud(self) -> bool:
        """Whether replies begin in thinking, so that streamed ones are held back to its end."""
        return self._record.thinks_aloud

    def thought_aloud(self) -> None:
        """It was seen elsewhere: by a sample request, or in an earlier session."""
        self._record.thought_aloud()

    @property
    def status(self) -> StrategyStatus:
        return StrategyStatus(
            self.model,
            self._backend.address,
            "native" if self.native else self._by_text().name,
            self._record.reason,
            {str(sign): count for sign, count in self.signals.items()},
            dict(self.steps),
        )

    def leave_native(self, reason: str) -> None:
        self._record.leave_native(reason)

    async def learn(self) -> None:
        """Ask the server, once, what it can do; `best` then knows how to ask by text.

        Raises:
            ModelError: it does not answer.
        """
        if self._told is None:
            self._told = await self._backend.capabilities()

    def best(self, question: Question) -> CallStrategy:
        """The way that `question` is asked first."""
        if not question.tools or self._record.plain_first:
            return PlainStrategy(as_text=not self.native)
        return NativeStrategy() if self.native else self._by_text()

    def _by_text(self) -> CallStrategy:
        can = (
            self._told is not None and self._told.schema is True and not self._record.refuses_schema
        )
        if self._text == "auto":
            return JsonReplyStrategy(thresholds=self.thresholds) if can else TextProtocolStrategy()
        return TextProtocolStrategy(self._text, constrain=can)

    async def ask(self, question: Question) -> AsyncGenerator[PolicyEvent]:
        """Yield the events of the reply, and a `ReplyDone` with its usage after each request.

        Calls that the server runs itself are told as they come.

        Raises:
            ModelError: no way gave a reply.
        """
        if not self.native:
            await self.learn()
        step = self._first(question)
        began = step.way.name
        while True:
            attempt = ReplyAttempt(self._backend, step.way, step.question)
            failed: ModelError | None = None
            try:
                async with aclosing(attempt.run()) as events:
                    async for event in events:
                        self._server_runs |= isinstance(event, ServerCall)
                        if isinstance(event, TextWasThinking):
                            self._record.thought_aloud()  # now: whoever hears it may cut it short
                        yield event
            except ModelError as error:
                attempt.sign, failed = sign_of(error), error
                if attempt.sign is None or attempt.spoke:
                    raise
            yield ReplyDone("stop", attempt.usage)
            self._weigh(attempt, step.question)
            if attempt.sign is None or attempt.spoke:
                for event in attempt.held if attempt.spoke and attempt.sign else attempt.whole():
                    yield event
                if attempt.dropped and attempt.spoke:
                    # What was said may have announced the call.
                    yield TextDelta(" " + sentence("not_all_done"))
                if attempt.sign is None and question.may_call:
                    self._record.worked(step.way, began)
                return
            following = await self._next(step, attempt)
            if following is None:
                self._record.step("apology")
                raise failed or ModelSilent(f"{self.model} gave no reply in any way of asking")
            step = following

    def _first(self, question: Question) -> _Step:
        way = self.best(question)
        if question.tools:
            self._record.begin()
        if self._server_runs:
            # A whole reply would tell of a tool only when all is over.
            question = replace(question, stream=True)
        if self._gauge.room is not None:
            question = self._gauge.fitted(question, way.request(question))
        if question.stream and self.thinks_aloud:
            question = replace(question, in_thinking=True)
        return _Step(way, question)

    def _weigh(self, attempt: ReplyAttempt, question: Question) -> None:
        """Note what the attempt has shown."""
        may_call = question.may_call
        if question.in_thinking:
            self._record.began_in_thinking(unclosed=attempt.unclosed)
        if attempt.thought_aloud:
            self._record.thought_aloud()
        if attempt.leaked:
            self._record.note("leaked_call", attempt.way, may_call=may_call)
        if attempt.asked_back:
            self._record.note("unsaid", attempt.way, may_call=may_call)
        context = self._told.context_tokens if self._told else None
        counted = attempt.usage.prompt
        if attempt.sign is None and self._gauge.is_cut(attempt.request, counted, context):
            attempt.sign = "context_cut"
        if attempt.sign is not None:
            self._record.note(attempt.sign, attempt.way, may_call=may_call)

    async def _next(self, step: _Step, attempt: ReplyAttempt) -> _Step | None:
        """The step after one that gave a sign; None: it was the last.

        Raises:
            ModelContextFull: what is left when all else was left out is still too long.
        """
        taken = await self._step_after(step, attempt)
        if taken is not None:
            name = taken.way.name if taken.way.name != step.way.name else "once_more"
            if attempt.sign == "context_cut":
                name = "shorter" if taken.way.name == step.way.name else "plain"
            elif attempt.sign in DOUBTS:
                name = attempt.sign or name
            self._record.step(name)
        return taken

    async def _step_after(self, step: _Step, attempt: ReplyAttempt) -> _Step | None:
        sign, way, question = attempt.sign, step.way, step.question
        if sign == "unsure" or sign == "too_shy":
            return replace(step, way=way.doubted(sign))
        if sign == "context_cut":
            shorter = self._gauge.fitted(question, attempt.request)
            if not step.shortened:
                return replace(step, question=shorter, shortened=True)
            if way.name != "plain":
                return replace(step, way=PlainStrategy(as_text=not self.native), question=shorter)
            raise ModelContextFull(f"{self.model}: the server reads {self._gauge.room} tokens only")
        # The same words would bring the same call that may not be made.
        if sign != "refused" and not step.again and not attempt.dropped:
            return replace(step, question=repaired(question, attempt.held), again=True)
        lower = await self._below(way, sign, question)
        return None if lower is None else replace(step, way=lower)

    async def _below(
        self, way: CallStrategy, sign: FailureSignal | None, question: Question
    ) -> CallStrategy | None:
        if isinstance(way, NativeStrategy):
            if not question.may_call:
                # Without calls to go by, and without the text protocol's head, which is long.
                return PlainStrategy(as_text=True)
            await self.learn()
            return self._by_text()
        if isinstance(way, JsonReplyStrategy) and sign == "refused":
            return TextProtocolStrategy()
        if isinstance(way, TextProtocolStrategy) and sign == "refused" and way.constrain:
            return TextProtocolStrategy(way.style)
        return None if isinstance(way, PlainStrategy) else PlainStrategy(as_text=not self.native)
