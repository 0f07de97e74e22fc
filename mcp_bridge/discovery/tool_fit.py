"""The rule by which tools are told for a person's words: which ones, and how many.

It goes by how far the scores lie apart. Where one tool is far ahead of the others it is told alone,
where several are close together they are told all, and where none scores well, none is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

MAX_TOLD: Final = 6
"""Tools that are told with one request at most."""


@dataclass(frozen=True, slots=True)
class FitRule:
    """When a tool's score is good enough. Scores are shares of the most that one word can bring."""

    least: float
    """A request whose best tool has less asks for no tool."""
    share_of_best: float
    """A tool is told that has so much of the best one's score."""


BY_WORDS: Final = FitRule(least=0.6, share_of_best=0.6)
BY_MEANING: Final = FitRule(least=1.0, share_of_best=0.7)


def fitting(scores: NDArray[np.float64], rule: FitRule) -> list[int]:
    """Gives the numbers of the tools to tell, best first; none where none fits."""
    if not len(scores) or (best := float(scores.max())) < rule.least:
        return []
    good = np.flatnonzero(scores >= rule.share_of_best * best)
    order = good[np.argsort(-scores[good], kind="stable")]
    return [int(number) for number in order[:MAX_TOLD]]
