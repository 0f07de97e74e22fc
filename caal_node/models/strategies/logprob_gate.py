"""How sure a model is that a request needs a tool, read off the odds of its reply's first key.

A reply begins with `{"calls"` or `{"say"`. The log probabilities of the two, as the model had them
before the grammar, part requests with a tool from those without at AUC 0.95 on a 0.5B.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from caal_node.models.backends.base import GeneratedToken

TOP: Final = 10
"""Candidates asked for. Both keys are nearly always among them."""
_CALLS: Final = '{"calls"'
_SAY: Final = '{"say"'


class LogprobGate:
    """Takes a reply's tokens as they come. `margin` is log P("calls") - log P("say")."""

    def __init__(self) -> None:
        self.margin: float | None = None
        """None: not seen yet, or the server tells no odds."""
        self.decided: Literal["calls", "say"] | None = None
        """The key that the reply has."""
        self._text = ""
        self._open = True

    def see(self, tokens: Iterable[GeneratedToken]) -> None:
        for token in tokens:
            if not self._open:
                return
            self._decide(token)
            self._text = (self._text + token.text).replace(" ", "").replace("\n", "")

    def _decide(self, token: GeneratedToken) -> None:
        whole = (self._text + token.text).replace(" ", "").replace("\n", "")
        if len(whole) <= 2:  # `{"` is common to both keys
            return
        self._open = False
        self.decided = "calls" if whole[2:3] == "c" else "say"
        calls = _mass(self._text, token, _CALLS)
        say = _mass(self._text, token, _SAY)
        if token.top and (calls or say):
            floor = min(logprob for _, logprob in token.top)
            self.margin = _sum(calls, floor) - _sum(say, floor)


def _mass(before: str, token: GeneratedToken, key: str) -> list[float]:
    found: list[float] = []
    for text, logprob in token.top:
        whole = (before + text).replace(" ", "").replace("\n", "")
        if len(whole) > 2 and (key.startswith(whole) or whole.startswith(key)):
            found.append(logprob)
    return found


def _sum(logprobs: Sequence[float], floor: float) -> float:
    """The logarithm of the summed probabilities; `floor` where none was among the candidates."""
    if not logprobs:
        return floor
    best = max(logprobs)
    return best + math.log(sum(math.exp(one - best) for one in logprobs))
