"""Whether a server has read the whole prompt, judged by its own count of tokens.

Some servers drop the oldest messages of a prompt that is too long, and the person's own words can
be among them. The count then lies far below the estimate, or right at the context's end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from caal_node.context.builder import WindowLimits, cut
from caal_node.context.token_estimate import items_tokens
from caal_node.models.backends.base import BackendRequest
from caal_node.models.question import Question

_FIRST_SHARE: Final = 0.35
"""Least share of the estimate that is believed before any count has shown how far the estimate is
off. It errs by 2.3 at most (Korean), see `caal_node.context.token_estimate`."""
_SHARE: Final = 0.6
"""Least share of what the counts so far lead one to expect: a conversation may change language."""
_FULL_MARGIN: Final = 8
"""Tokens. A prompt that was cut to fit ends within these of the context's end."""
_SMALLEST: Final = 2_000
"""Estimated tokens. No server has so small a context that it would cut what is shorter."""
_TURNS: Final = 20
"""Turns that are kept at most when a question is shortened."""


class TruncationDetector:
    """Watches the token counts of one server."""

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
            if self.room is not None and counted > self.room:
                # That is more than the alleged limit: it counts what it evaluates, not reads.
                self._trusted, self.room = False, None
            self._largest = max(self._largest, counted)
            return False
        if not full and counted < self._largest // 2:
            # A cut leaves nearly a full context; so small a count leaves out what was cached.
            self._trusted = False
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
    tools = question.tools.schema_tokens if request.tools else 0
    return items_tokens(request.items) + tools
