"""Whether a server has read the whole prompt, by its own count of tokens.

Some drop the oldest messages of a prompt that is too long, and the person's own words can be among
them. The count then lies far below what the prompt is estimated at, or right at the context's end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from caal_node.context.token_estimate import items_tokens, tools_tokens
from caal_node.context.window import WindowLimits, cut
from caal_node.models.backends.base import BackendRequest
from caal_node.models.question import Question

_FIRST_SHARE: Final = 0.35
"""Of the estimate, before a count has shown how far the estimate is off: it errs by 2.3 at most
(Korean), see `caal_node.context.token_estimate`."""
_SHARE: Final = 0.6
"""Of what the counts so far lead one to expect: a conversation may change its language."""
_FULL_MARGIN: Final = 8
"""Tokens. A prompt that was cut to fit ends within these of the context's end."""
_SMALLEST: Final = 2_000
"""Estimated tokens. No server has so small a context that it would cut what is shorter."""
_TURNS: Final = 20


class TruncationDetector:
    def __init__(self) -> None:
        self.room: int | None = None
        """Tokens that the server has been seen to read of a prompt that it cut."""
        self._ratio: float | None = None
        self._largest = 0
        self._trusted = True

    def is_cut(self, request: BackendRequest, counted: int, context_tokens: int | None) -> bool:
        """Whether `counted` tokens are too few to be all of `request`, or fill the context."""
        if not self._trusted or counted <= 0:
            return False
        guess = estimate(request)
        full = context_tokens is not None and counted >= context_tokens - _FULL_MARGIN
        share = _FIRST_SHARE if self._ratio is None else _SHARE * self._ratio
        if not full and (guess < _SMALLEST or counted >= guess * share):
            self._ratio = counted / guess if guess else None
            if self.room is not None and counted > self.room:
                # More than the alleged limit: it counts what it evaluates, not what it reads.
                self._trusted, self.room = False, None
            self._largest = max(self._largest, counted)
            return False
        if not full and counted < self._largest // 2:
            # A cut leaves nearly a full context; so small a count leaves out what was cached.
            self._trusted = False
            return False
        self.room = min(counted, context_tokens or counted)
        return True

    def fitted(self, question: Question, request: BackendRequest) -> Question:
        """`question` less the oldest turns that do not fit; the newest one always stays."""
        if self.room is None:
            return question
        around = max(0, estimate(request) - items_tokens(question.items))
        window = cut(question.items, WindowLimits(_TURNS, self.room, around))
        return replace(question, items=(*window.head, *window.kept))


def estimate(request: BackendRequest) -> int:
    return items_tokens(request.items) + tools_tokens(request.tools)
