"""Words and meaning as one score.

A tool's score is what BM25 says, as a share of the most that one word could bring, plus its
cosine to the request. Two things make the cosines better: what all tools have in common is taken
off every vector, which spreads models alike that put every text near every other (Mu and
Viswanath, https://arxiv.org/abs/1702.01417); and the request is moved towards the tools that come
first by then, as these share words with others like them (Rocchio's feedback). The numbers here
are among the best by recall@10 on the spoken requests of `tests/bench`, chosen with BFCL's in
sight (`tests/bench/discovery.py`).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mcp_bridge.embedding.base import Vectors, unit

_MEANING: Final = 2.5
"""Weight of a cosine beside BM25's share."""
_COMMON: Final = 10
"""So many further tools at no place in particular are taken into the mean: of two or three tools,
the mean is what they are, and not what they have in common."""
_FIRST: Final = 5
_TOWARDS: Final = 0.5
"""Tools that the request is moved towards, and how far."""
NEAR: Final = 0.08
"""Cosine from which a tool matches that shares no word with the request: with more, the household's
requests lose right tools; with less, they gain wrong ones alone. They match three tools more each
for it."""
NEAR_MAX: Final = 10
"""Tools that match in this way, at most: the nearest."""


class ToolVectors:
    """Immutable: the vectors of a set of tools, without what they have in common.

    Args:
        rows: One for each tool, of unit length.
    """

    def __init__(self, rows: Vectors) -> None:
        self._common: Final[Vectors] = rows.sum(axis=0) / np.float32(len(rows) + _COMMON)
        self.rows: Final = unit(rows - self._common)

    def mixed(
        self, words: NDArray[np.float64], most: float, asked: Vectors
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Scores of the tools, and which of them match.

        Args:
            words: BM25's score of each tool; one above 0 matches, whatever it means.
            most: The most that one word can bring in BM25.
            asked: The request's vector.
        """
        shares = words / most
        toward = unit(asked - self._common)
        near = self.rows @ toward
        matching = words > 0
        far = np.where(matching | (near < NEAR), -np.inf, near)
        nearest = np.argsort(-far, kind="stable")[:NEAR_MAX]
        matching[nearest[np.isfinite(far[nearest])]] = True
        first = np.argsort(-(shares + _MEANING * near), kind="stable")[:_FIRST]
        moved = unit(toward + np.float32(_TOWARDS) * self.rows[first].mean(axis=0))
        return shares + _MEANING * (self.rows @ moved), matching
