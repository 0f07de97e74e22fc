"""How sure a model is that a request needs a tool, read off the odds of its reply's first key.

A reply begins with `{"calls"` or `{"say"`. The log probabilities of the two, as the model had them
before the grammar, part requests with a tool from those without at AUC 0.95 on a 0.5B.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from caal_node.models.backends.base import GeneratedToken

TOP_CANDIDATES: Final = 10
"""Candidates that are asked for each token. Both keys are nearly always among them."""
_CALLS: Final = '{"calls"'
_SAY: Final = '{"say"'


class LogprobGate:
    """Takes a reply's tokens as they come, and decides at the one that tells the two keys apart."""

    def __init__(self) -> None:
        self.margin: float | None = None
        """log P("calls") - log P("say"). None until the key is seen, or without odds."""
        self.decided: Literal["calls", "say"] | None = None
        """The key that the reply has. None until it is seen."""
        self._text = ""
        self._open = True

    def see(self, tokens: Iterable[GeneratedToken]) -> None:
        """Take the next tokens of the reply."""
        for token in tokens:
            if not self._open:
                return
            self._decide(token)
            self._text = _without_blanks(self._text + token.text)

    def _decide(self, token: GeneratedToken) -> None:
        whole = _without_blanks(self._text + token.text)
        if len(whole) <= 2:  # `{"` is common to both keys
            return
        self._open = False
        self.decided = "calls" if whole[2:3] == "c" else "say"
        calls = _logprobs_of(self._text, token, _CALLS)
        say = _logprobs_of(self._text, token, _SAY)
        if token.top and (calls or say):
            floor = min(logprob for _, logprob in token.top)
            self.margin = _sum(calls, floor) - _sum(say, floor)


def _without_blanks(text: str) -> str:
    return text.replace(" ", "").replace("\n", "")


def _logprobs_of(before: str, token: GeneratedToken, key: str) -> list[float]:
    """Return the log probabilities of the candidates that begin, or go on with, `key`."""
    found: list[float] = []
    for text, logprob in token.top:
        whole = _without_blanks(before + text)
        if len(whole) > 2 and (key.startswith(whole) or whole.startswith(key)):
            found.append(logprob)
    return found


def _sum(logprobs: Sequence[float], floor: float) -> float:
    """Return the logarithm of the summed probabilities; `floor` where there is none."""
    if not logprobs:
        return floor
    best = max(logprobs)
    return best + math.log(sum(math.exp(one - best) for one in logprobs))
