"""Which strategy a question is asked with, and what is tried where one fails.

The steps after a failure are: the same once more (with a note on what was wrong, where there is
something to say), asking by text, a plain reply, and an apology. Nothing is said twice: once a
piece of speech is out, the reply that it belongs to is the reply. What a model has shown is
remembered, so that its next turn begins with the strategy that works.

Nothing here sends a request: `ModelConnection.ask` carries out the steps.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from caal_node.context.token_estimate import items_tokens
from caal_node.context.window import WindowLimits, cut
from caal_node.core.errors import ModelContextFull
from caal_node.core.items import AssistantItem, CallItem, Item, ResultItem
from caal_node.models.backends.base import BackendRequest, Capabilities
from caal_node.models.question import Question
from caal_node.models.reply_attempt import FailureSignal, ReplyAttempt
from caal_node.models.strategies import (
    CallStrategy,
    JsonReplyStrategy,
    NativeStrategy,
    PlainStrategy,
    StrategyName,
    StyleName,
    TextProtocolStrategy,
)
from caal_node.models.strategies.carried_call import CARRIER_TOKENS
from caal_node.reply_parser import BrokenCall, Event, UnknownCall, UnspokenData

# What has been learnt of a model: what its server can do, how it failed, and which strategy works.
#
# It holds for as long as the process runs. `ModelConnection` keeps the lasting part of it from one
# process to the next.

logger = logging.getLogger("caal_node.models")

_FIRST_SHARE: Final = 0.35
"""Least share of the estimate that is believed before any count has shown how far the estimate is
off. It errs by 2.3 at most (Korean), see `caal_node.context.token_estimate`."""
_SHARE: Final = 0.6
"""Least share of what the counts so far lead one to expect: a conversation may change language."""
_FULL_MARGIN: Final = 8
"""Tokens. A prompt that was cut to fit ends within these of the context's end."""
_SMALLEST: Final = 2_000
"""Estimated tokens. No server has so small a context that it would cut what is shorter."""
_LEAST_ROOM: Final = int(_SMALLEST * _FIRST_SHARE)
"""Tokens. A server that reads fewer than these of a prompt would cut shorter ones."""
_TURNS: Final = 20
"""Turns that are kept at most when a question is shortened."""
_NATIVE_FAILURES_MAX: Final = 3
"""Times that asking once more may fix one kind of failure before the model is no longer asked
natively. Each time costs a request; asking by text costs a cold prompt, once."""
_PLAIN_AFTER: Final = 2
"""Turns in a row that only a plain reply could end, after which plain replies come first."""
_PLAIN_TURNS: Final = 5
"""Turns in which plain replies come first. Then tools are tried again, since whoever asks for one
should get it some day."""
_NOT_THINKING_MAX: Final = 3
"""Replies in a row without any thinking, after which it is no longer waited for: one stray closer
would otherwise cost every answer its streaming."""
DOUBTS: Final = frozenset({"unsure", "missing_argument", "unwanted", "needless", "repeated"})
"""Signals that belong to a strategy that works."""


class TruncationDetector:
    """Judges by a server's own count of tokens whether it has read the whole prompt.

    Some servers drop the oldest messages of a prompt that is too long, and the person's own words
    can be among them. The count then lies far below the estimate, or right at the context's end.
    """

    def __init__(self) -> None:
        self.room: int | None = None
        """Tokens that the server was seen to read of a prompt that it cut. None: it cut none."""
        self._ratio: float | None = None
        self._most = 0.0
        self._largest = 0
        self._trusted = True

    @property
    def most(self) -> float | None:
        """Tokens that the server has counted for each estimated one, at most; None: it has counted
        nothing, or something else."""
        return self._most or None if self._trusted else None

    def is_cut(self, estimated: int, counted: int, context_tokens: int | None) -> bool:
        """Return whether the server cut a prompt of `estimated` tokens, of which it counted
        `counted`: these are too few to be all of it, or they fill the context."""
        if not self._trusted or counted <= 0:
            return False
        full = context_tokens is not None and counted >= context_tokens - _FULL_MARGIN
        share = _FIRST_SHARE if self._ratio is None else _SHARE * self._ratio
        if not full and (estimated < _SMALLEST or counted >= estimated * share):
            self._ratio = counted / estimated if estimated else None
            self._most = max(self._most, self._ratio or 0.0)
            if self.room is not None and counted >= self.room:
                # A prompt that was made to fit is below the limit: this counts something else.
                self._trusted, self.room = False, None
            self._largest = max(self._largest, counted)
            return False
        if not full and counted < max(self._largest // 2, _LEAST_ROOM):
            # A cut leaves nearly a full context; so small a count leaves out what was cached.
            self._trusted, self.room = False, None
            return False
        self.room = min(counted, context_tokens or counted)
        return True

    def shortened(self, question: Question, estimated: int) -> Question:
        """Return `question` without the oldest turns that do not fit. The newest always stays.

        `estimated` is the size in tokens of its whole prompt.
        """
        if self.room is None:
            return question
        around = max(0, estimated - items_tokens(question.items))
        window = cut(question.items, WindowLimits(_TURNS, self.room, around))
        return replace(question, items=(*window.head, *window.kept))


def prompt_tokens(question: Question, request: BackendRequest) -> int:
    """Estimate the tokens of `request`, which asks `question`."""
    tools = question.front.schema_tokens if request.tools else 0
    carrier = CARRIER_TOKENS if request.tools and question.head is not None else 0
    return items_tokens(request.items) + tools + carrier


class ModelStats:
    """What one model on one server has shown."""

    def __init__(self, model: str) -> None:
        self._model = model
        self.native = True
        """Whether the model is asked with its server's own tool calls."""
        self.reason = ""
        """Why it is not asked natively. Empty while it is."""
        self.capabilities: Capabilities | None = None
        """What the server says that it can do. None until it has been asked."""
        self.refuses_schema = False
        """Whether the server refused to hold a reply to a schema, whatever it says."""
        self.call_threshold = 0.0
        """How sure of a call the model has to be, see `JsonReplyStrategy`."""
        self.thinks_aloud = False
        """Whether its replies begin inside a think block that the prompt has opened."""
        self.server_runs_tools = False
        """Whether the server was seen to run tools by itself."""
        self.truncation: Final = TruncationDetector()
        self.signals: Final[Counter[FailureSignal]] = Counter()
        """How often each signal of failure was seen."""
        self.steps: Final[Counter[str]] = Counter()
        """How often each step was taken after a failure: once_more, shorter, apology, the name of
        the next strategy, or the doubt that led to the step."""
        self._native_failures: Final[Counter[FailureSignal]] = Counter()
        self._plain_ends = 0
        self._plain_turns_left = 0
        self._not_thinking = 0

    def note_thinking_aloud(self) -> None:
        """Note a reply that had the closer of a think block which it had not opened."""
        if not self.thinks_aloud:
            logger.info("%s: its replies begin in thinking", self._model)
        self.thinks_aloud, self._not_thinking = True, 0

    def note_read_as_thinking(self, *, in_vain: bool) -> None:
        """Note a reply that was read as one that begins in thinking.

        `in_vain` says that it was speech all the same, and had to be held back for nothing.
        """
        self._not_thinking = self._not_thinking + 1 if in_vain else 0
        if self._not_thinking >= _NOT_THINKING_MAX:
            self.thinks_aloud = False

    def leave_native(self, reason: str) -> None:
        """Ask for tools by text from now on."""
        if self.native:
            logger.info("%s: tools are asked for by text from now on: %s", self._model, reason)
            self.native, self.reason = False, reason

    @property
    def plain_first(self) -> bool:
        """Whether a question with tools is asked plainly for now."""
        return self._plain_turns_left > 0

    def note_question(self) -> None:
        """Note that a question with tools is asked."""
        self._plain_turns_left = max(0, self._plain_turns_left - 1)

    def note_signal(
        self, signal: FailureSignal, strategy: StrategyName, *, may_call: bool = True
    ) -> None:
        """Note a signal in a reply to `strategy`.

        Where `may_call` is false no tools were offered, so nothing is learnt of how a model calls.
        """
        self.signals[signal] += 1
        level = logging.INFO if signal in DOUBTS or signal == "no_call" else logging.WARNING
        logger.log(level, "%s: %s with the %s strategy", self._model, signal, strategy)
        if signal in DOUBTS or signal in ("context_cut", "no_call", "cut"):
            return
        if strategy == "native":
            self._native_failures[signal] += may_call
            most = 1 if signal == "refused" else _NATIVE_FAILURES_MAX
            if self._native_failures[signal] >= most:
                self.leave_native(signal)
        elif signal == "refused" and strategy in ("json_reply", "text_protocol"):
            self.refuses_schema = True

    def note_step(self, name: str) -> None:
        """Note what is tried after a failure."""
        self.steps[name] += 1
        logger.info("%s: next step: %s", self._model, name)

    def note_success(self, strategy: StrategyName, first: StrategyName) -> None:
        """Remember the strategy that gave a reply, if it is not the one that was asked `first`."""
        if strategy != "plain":
            self._plain_ends = 0
            if first == "native" != strategy:
                self.leave_native("its own tool calls failed, and asking by text worked")
        elif first != "plain":
            self._plain_ends += 1
            if self._plain_ends >= _PLAIN_AFTER:
                self._plain_turns_left = _PLAIN_TURNS


TextStyle: TypeAlias = Literal["auto"] | StyleName
"""How calls are asked for by text. `auto` is one JSON reply where the server can hold one to a
schema, else JSONL."""

SMALL_BILLIONS: Final = 4.0
"""Billions of weights below which a model calls tools for small talk (a 3B still does)."""
_BILLIONS: Final = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d+)?)(b|m)(?![a-z])", re.IGNORECASE)
"""How names say a size: `llama3.2:1b`, `Qwen2.5-0.5B-Instruct`, `smollm:360m`."""
REPAIRS_MAX: Final = 3
"""Calls of one reply that the model is told of: a reply with more was noise."""
_ONLY_ASKED: Final = "The person only asks. Call a tool that finds it out, or answer."
_PROBLEM_CHARS: Final = 200
"""Characters of what was wrong with one call."""


@dataclass(frozen=True, slots=True)
class RetryStep:
    """One attempt to be made."""

    strategy: CallStrategy
    question: Question
    repeated: bool = False
    """Whether the same has been asked once more already."""
    shortened: bool = False
    """Whether the question has been shortened already."""
    roomier: bool = False
    """Whether the reply has been given more room already."""


class RetryPolicy:
    """Decides for one model on one server, by what `stats` has learnt of it."""

    def __init__(self, model: str, text_style: TextStyle = "auto") -> None:
        self.stats: Final = ModelStats(model)
        self._model = model
        self._text_style: TextStyle = text_style

    @property
    def native(self) -> bool:
        """Whether the model is asked with its server's own tool calls."""
        return self.stats.native

    @property
    def thinks_aloud(self) -> bool:
        """Whether replies begin in thinking, so that streamed ones are held back to its end."""
        return self.stats.thinks_aloud

    def first_strategy(self, question: Question) -> CallStrategy:
        """Return the strategy with which `question` is asked first."""
        if not question.tools or (self.stats.plain_first and not question.must_call):
            return PlainStrategy(as_text=not self.native)
        return NativeStrategy() if self.native else self._by_text()

    def _by_text(self) -> CallStrategy:
        capabilities = self.stats.capabilities
        holds_schema = capabilities is not None and capabilities.schema is True
        constrain = holds_schema and not self.stats.refuses_schema
        if self._text_style != "auto":
            return TextProtocolStrategy(self._text_style, constrain=constrain)
        if constrain:
            return JsonReplyStrategy(call_threshold=self.stats.call_threshold)
        return TextProtocolStrategy()

    def first_step(self, question: Question) -> RetryStep:
        """Return the attempt that `question` begins with."""
        strategy = self.first_strategy(question)
        if question.tools:
            self.stats.note_question()
        known = self.stats.capabilities
        if is_small(self._model, known and known.parameters):
            question = replace(question, small_model=True)
        if question.must_call:
            # What is said in place of a call must not be heard.
            question = replace(question, stream=False)
        elif self.stats.server_runs_tools:
            # A whole reply would tell of a tool only when all is over.
            question = replace(question, stream=True)
        if self.stats.truncation.room is not None:
            size = prompt_tokens(question, strategy.request(question))
            question = self.stats.truncation.shortened(question, size)
        if question.stream and self.thinks_aloud:
            question = replace(question, in_thinking=True)
        return RetryStep(strategy, question)

    def goes_on(self, step: RetryStep, attempt: ReplyAttempt) -> bool:
        """Return whether a reply whose speech is out already was cut in its first call, so that the
        model can go on behind that speech."""
        said = attempt.spoke and attempt.said is not None
        return attempt.signal == "cut" and said and not step.question.once

    def learn_from(self, step: RetryStep, attempt: ReplyAttempt) -> None:
        """Note what an attempt has shown. It may turn out that its prompt was cut."""
        stats, question, strategy = self.stats, step.question, step.strategy.name
        may_call = question.may_call
        if attempt.signal == "refused" and (question.must_call or question.parallel is not None):
            may_call = False  # It may have refused that, which says nothing of tools as such.
        if question.in_thinking:
            stats.note_read_as_thinking(in_vain=attempt.never_was_thinking)
        if attempt.thought_aloud:
            stats.note_thinking_aloud()
        if attempt.leaked_call:
            stats.note_signal("leaked_call", strategy, may_call=may_call)
        if attempt.lacked_argument:
            stats.note_signal("missing_argument", strategy, may_call=may_call)
        if attempt.signal is None:
            size = prompt_tokens(question, attempt.request)
            context = stats.capabilities.context_tokens if stats.capabilities else None
            if stats.truncation.is_cut(size, attempt.usage.prompt, context):
                attempt.signal = "context_cut"
        if attempt.signal is not None:
            stats.note_signal(attempt.signal, strategy, may_call=may_call)

    def next_step(self, step: RetryStep, attempt: ReplyAttempt) -> RetryStep | None:
        """Return what to try after an attempt that failed; None if there is nothing left.

        Raises:
            ModelContextFull: the prompt is too long even when all else was left out.
        """
        following = self._following(step, attempt)
        if following is None:
            self.stats.note_step("apology")
            return None
        same_strategy = following.strategy.name == step.strategy.name
        name = "once_more" if same_strategy else following.strategy.name
        if attempt.signal == "cut":
            name = "more_room"
        elif attempt.signal == "context_cut":
            name = "shorter" if same_strategy else "plain"
        elif attempt.signal in DOUBTS:
            name = attempt.signal or name
        self.stats.note_step(name)
        return following

    def _following(self, step: RetryStep, attempt: ReplyAttempt) -> RetryStep | None:
        signal, strategy, question = attempt.signal, step.strategy, step.question
        if (
            signal == "unwanted"
            and not step.repeated
            and not attempt.unwanted.issuperset(question.tools.names)
        ):
            if not isinstance(strategy, JsonReplyStrategy):
                told = told_unwanted(question, attempt.unwanted)
                return replace(step, question=told, repeated=True)
            others = JsonReplyStrategy(
                call_threshold=strategy.call_threshold, without=attempt.unwanted
            )
            return replace(step, strategy=others, repeated=True)
        if signal in ("unsure", "needless", "unwanted"):
            if isinstance(strategy, JsonReplyStrategy):
                return replace(step, strategy=JsonReplyStrategy(speech_only=True))
            return replace(step, question=replace(question, speech_only=True), repeated=True)
        if signal == "repeated":
            known = frozenset(each.tool for each in question.references)
            # What it calls now is believed, so that no third request follows.
            believed = replace(question, judges_calls=False)
            return replace(step, strategy=JsonReplyStrategy(without=known), question=believed)
        if signal == "context_cut":
            size = prompt_tokens(question, attempt.request)
            shorter = self.stats.truncation.shortened(question, size)
            if not step.shortened:
                return replace(step, question=shorter, shortened=True)
            if strategy.name != "plain":
                plain = PlainStrategy(as_text=not self.native)
                return replace(step, strategy=plain, question=shorter)
            room = self.stats.truncation.room
            raise ModelContextFull(f"{self._model}: the server reads {room} tokens only")
        if signal == "cut":
            room = None if step.roomier else self._more_room(question, attempt)
            if room is None:
                return None
            if attempt.spoke and (said := (attempt.said or "").strip()):
                question = replace(question, items=(*question.items, AssistantItem(said)))
                question = repaired(question, attempt.uncertain)
            return replace(step, question=replace(question, max_tokens=room), roomier=True)
        if signal == "no_call":
            # Where a schema leaves no room for speech, that is the end of it; a word may help else.
            again = not isinstance(strategy, NativeStrategy)
            if again and step.repeated:
                return None
            return replace(step, strategy=strategy if again else self._by_text(), repeated=again)
        if signal == "data" and step.repeated:
            return None
        # After a call that may not be made, the same words would bring the same call.
        if signal != "refused" and not step.repeated and not attempt.dropped_call:
            return replace(step, question=repaired(question, attempt.uncertain), repeated=True)
        weaker = self._weaker_strategy(strategy, signal, question)
        return None if weaker is None else replace(step, strategy=weaker)

    def _more_room(self, question: Question, attempt: ReplyAttempt) -> int | None:
        """Return twice the tokens that a reply had, as far as the context has them; None if these
        are no more."""
        made = attempt.usage.completion
        had = question.max_tokens or made
        capabilities = self.stats.capabilities
        context = capabilities.context_tokens if capabilities is not None else None
        room = 2 * had
        if context is not None:
            prompt = attempt.usage.prompt or prompt_tokens(question, attempt.request)
            room = min(room, context - prompt)
        return room if room > (made or had) else None

    def _weaker_strategy(
        self, strategy: CallStrategy, signal: FailureSignal | None, question: Question
    ) -> CallStrategy | None:
        """Return the strategy that asks less of a model than `strategy`; None below the last."""
        if isinstance(strategy, NativeStrategy):
            if not question.may_call:
                # There are no calls to ask for, and the text protocol's prefix is long.
                return PlainStrategy(as_text=True)
            return self._by_text()
        if isinstance(strategy, JsonReplyStrategy) and signal == "refused":
            return TextProtocolStrategy()
        if (
            isinstance(strategy, TextProtocolStrategy)
            and strategy.constrain
            and signal == "refused"
        ):
            return TextProtocolStrategy(strategy.style)
        if isinstance(strategy, PlainStrategy) or question.must_call:
            return None
        return PlainStrategy(as_text=not self.native)


def is_small(model: str, parameters: int | None = None) -> bool:
    """Return whether a model is small, by the number of its weights, else by what its name says.

    Most of those whose name says nothing are not.
    """
    if parameters is not None:
        return parameters < SMALL_BILLIONS * 1e9
    if (found := _BILLIONS.search(model)) is None:
        return False
    billions = float(found[1]) / (1_000 if found[2].lower() == "m" else 1)
    return billions < SMALL_BILLIONS


def told_unwanted(question: Question, names: Iterable[str]) -> Question:
    """Return `question` followed by calls of these tools, and that nobody wants anything changed.

    As in `repaired`, nothing of it stands in a history.
    """
    problem = {"error": "not_asked_for", "message": _ONLY_ASKED}
    return _followed(question, [(name, problem) for name in sorted(names)])


def repaired(question: Question, events: Iterable[Event]) -> Question:
    """Return `question` followed by the calls of `events` that cannot be made, and what is valid.

    They stand at the prompt's end, in the form of any call and its result, so that the model can
    fix them. They stand in no history: the next turn does not see them.
    """
    found: list[tuple[str, Mapping[str, Any]]] = []
    for event in events:
        if isinstance(event, UnknownCall):
            problem = {"error": "unknown_tool", "valid": list(event.nearest)}
        elif isinstance(event, BrokenCall):
            problem = {"error": "invalid_call", "message": event.problem[:_PROBLEM_CHARS]}
        elif isinstance(event, UnspokenData):
            problem = {"error": "not_speech", "message": event.problem}
        else:
            continue
        name = ("" if isinstance(event, UnspokenData) else event.name) or "unnamed"
        found.append((name, problem))
    return _followed(question, found) if found else question


def _followed(question: Question, failed: Sequence[tuple[str, Mapping[str, Any]]]) -> Question:
    calls: list[Item] = []
    results: list[Item] = []
    for number, (name, problem) in enumerate(failed[:REPAIRS_MAX]):
        call_id = f"repair_{number}"
        calls.append(CallItem(call_id, name, "{}"))
        output = json.dumps(problem, ensure_ascii=False)
        results.append(ResultItem(call_id, name, output, is_error=True))
    return replace(question, items=(*question.items, *calls, *results))
