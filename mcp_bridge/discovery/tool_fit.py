"""The rule by which tools are told for a person's words: which ones, and how many.

It goes by how far the scores lie apart. Where one tool is far ahead it is told alone, where several
are close together all of them are, and where none scores well, none is. A request for two things is
judged part by part, so that the better match of one part does not hide the other's.

The numbers were chosen on the household's requests and on the tuning set of those that need no tool
(`tests/bench/discovery.py`); the other sets there were only measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

import numpy as np
from numpy.typing import NDArray

MAX_TOLD: Final = 12
"""Tools that are told with one request at most."""
_MAX_A_PART: Final = 10
"""Tools for one part of it. So many are told where many tools are nearly alike; the household's
requests have three or four with 6 as with 10."""
_MAX_PARTS: Final = 3
_SECOND_SHARE: Final = 0.4
"""The second best is told from this share of the best one's score on. Most requests that the best
tool is not for are for the second."""
_FURTHER_SHARE: Final = 0.5
_PART_WORDS: Final = 2
"""A part with fewer words is a list's last item ("tea and sugar"), and nothing to do."""
_PART_LEAST: Final = 0.45
"""The score by words from which a tool fits a part."""
LEAST_BY_WORDS: Final = 0.3
LEAST_BY_MEANING: Final = 0.85
"""Scores of the best tool below which none is told, by words and with vectors. A word that stands
in the description of a single tool brings a third; nothing can bring more than 1 by one word."""


def fitting(scores: NDArray[np.float64], least: float) -> list[int]:
    """Gives the numbers of the tools to tell, best first; none where the best has under `least`."""
    order = np.argsort(-scores, kind="stable")[:_MAX_A_PART]
    if not len(order) or (best := float(scores[order[0]])) < least:
        return []
    shares = [0.0, _SECOND_SHARE, *[_FURTHER_SHARE] * _MAX_A_PART]
    return [
        int(number)
        for number, share in zip(order, shares, strict=False)
        if scores[number] >= share * best
    ]


def taken_in_turn(lists: Sequence[Sequence[int]]) -> list[int]:
    """Gives the numbers of all lists, each once: the first of each, then the second, and so on."""
    turns = zip_longest(*lists, fillvalue=-1)
    numbers = dict.fromkeys(number for turn in turns for number in turn)
    numbers.pop(-1, None)
    return list(numbers)


@dataclass(slots=True)
class _Part:
    text: str
    best: int


def parts_of(
    pieces: Sequence[str], scores_of: Callable[[str], NDArray[np.float64]]
) -> tuple[str, ...]:
    """Gives the parts of a request that ask for different things; none where it asks for one.

    Args:
        pieces: What stands between its joining words, in order.
        scores_of: Gives the tools' scores by words.

    A piece that no tool fits by itself, or the same tool as another one, belongs to the one before.
    """
    parts: list[_Part] = []
    for piece in pieces if len(pieces) > 1 else ():
        scores = scores_of(piece)
        best = int(scores.argmax()) if len(scores) else -1
        asks = len(piece.split()) >= _PART_WORDS and best >= 0 and scores[best] >= _PART_LEAST
        if asks and all(part.best != best for part in parts):
            parts.append(_Part(piece, best))
        elif parts:
            parts[-1].text += f" {piece}"
    return tuple(part.text for part in parts[:_MAX_PARTS]) if len(parts) > 1 else ()
