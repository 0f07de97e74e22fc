"""Whether a model that is asked by text may still call in a turn, and the reader that holds it to
that. The limits are those of the question, see `TextLimits`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from caal_node.core.items import Item, Turn, UserItem
from caal_node.models.question import Question
from caal_node.models.reply_limits import of_allowed_size
from caal_node.models.strategies.base import ReplyReader, only_speech
from caal_node.models.strategies.call_judge import CallJudge
from caal_node.reply_parser import Event, TextDelta


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


class LimitedReader(ReplyReader):
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
        super().__init__(question, in_thinking=in_thinking)
        self._may_call = may_call(question) and not speech_only
        self._speech_only = question.speech_only
        self._said = False
        self._payload = question.limits.payload
        self._judge = CallJudge(question, as_said=as_said, trusted=not question.small_model)

    def _allowed(self, events: list[Event]) -> list[Event]:
        # What is too long is not looked at any closer.
        if not self._may_call:
            if self._speech_only:
                self._judge.judged([of_allowed_size(event, self._payload) for event in events])
            events = only_speech(events)
            self._said |= any(isinstance(e, TextDelta) and e.text.strip() for e in events)
            return events
        sized = [of_allowed_size(event, self._payload) for event in events]
        judged = self._judge.judged(sized)
        self.doubt = self.doubt or self._judge.doubt
        self.unwanted = frozenset(self._judge.unwanted)
        return judged

    def finish(self) -> list[Event]:
        events = super().finish()
        if not self._speech_only:
            events += self._judge.closing()
        elif not self._said:
            events += self._judge.instead()  # It called again.
        return events
