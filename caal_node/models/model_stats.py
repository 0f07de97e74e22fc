"""What has been learnt of a model: what its server can do, how it failed, and which strategy works.

It holds for as long as the process runs. `ModelConnection` keeps the lasting part of it from one
process to the next.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from typing import Final

from caal_node.context.token_estimate import items_tokens
from caal_node.context.window import WindowLimits, cut
from caal_node.models.backends.base import BackendRequest, Capabilities
from caal_node.models.question import Question
from caal_node.models.reply_attempt import FailureSignal
from caal_node.models.strategies import StrategyName
from caal_node.models.strategies.carried_call import CARRIER_TOKENS

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
        self._largest = 0
        self._trusted = True

    def is_cut(self, estimated: int, counted: int, context_tokens: int | None) -> bool:
        """Return whether the server cut a prompt of `estimated` tokens, of which it counted
        `counted`: these are too few to be all of it, or they fill the context."""
        if not self._trusted or counted <= 0:
            return False
        full = context_tokens is not None and counted >= context_tokens - _FULL_MARGIN
        share = _FIRST_SHARE if self._ratio is None else _SHARE * self._ratio
        if not full and (estimated < _SMALLEST or counted >= estimated * share):
            self._ratio = counted / estimated if estimated else None
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
