"""Ranking of tools by words and by meaning together.

A tool's score is what BM25 says, as a share of the most that one word could bring, plus its cosine
to the request. Two things make the cosines better: what all tools have in common is taken off every
vector, which spreads models that put every text near every other (Mu and Viswanath,
https://arxiv.org/abs/1702.01417); and the request is moved towards the tools that come first by
then, as these share words with others like them (Rocchio's feedback). The numbers here are among
the best by recall@10 on the spoken requests of `tests/bench`, chosen with BFCL's in sight
(`tests/bench/discovery.py`).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mcp_bridge.embedding.base import Vectors, unit

_COSINE_WEIGHT: Final = 2.5
"""The weight of a cosine beside BM25's share."""
_PRIOR_TOOLS: Final = 10
"""The common part is a mean over the tools and so many zero vectors: the mean of two or three tools
alone is what they are, and not what they have in common."""
_FEEDBACK_TOOLS: Final = 5
_FEEDBACK_WEIGHT: Final = 0.5
"""The request is moved towards so many tools, by this much."""
MIN_COSINE: Final = 0.08
"""From this cosine on, a tool matches that shares no word with the request. With more, the
household's requests lose right tools; with less, they gain only wrong ones. It lets three more
tools match each of them."""
MAX_SEMANTIC_MATCHES: Final = 10
"""At most so many tools match in this way: the nearest."""


class ToolVectors:
    """The vectors of a set of tools, without what they have in common. It is immutable.

    Args:
        rows: One vector for each tool, of unit length.
    """

    def __init__(self, rows: Vectors) -> None:
        self._common: Final[Vectors] = rows.sum(axis=0) / np.float32(len(rows) + _PRIOR_TOOLS)
        self.rows: Final = unit(rows - self._common)

    def hybrid_scores(
        self, word_scores: NDArray[np.float64], max_word_score: float, request: Vectors
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the tools' scores, and which tools match.

        Args:
            word_scores: BM25's score of each tool; a tool above 0 matches, whatever it means.
            max_word_score: The most that one word can bring in BM25.
            request: The request's vector.
        """
        shares = word_scores / max_word_score
        request = unit(request - self._common)
        cosines = self.rows @ request
        matches = word_scores > 0
        candidates = np.where(matches | (cosines < MIN_COSINE), -np.inf, cosines)
        nearest = np.argsort(-candidates, kind="stable")[:MAX_SEMANTIC_MATCHES]
        matches[nearest[np.isfinite(candidates[nearest])]] = True
        first = np.argsort(-(shares + _COSINE_WEIGHT * cosines), kind="stable")[:_FEEDBACK_TOOLS]
        moved = unit(request + np.float32(_FEEDBACK_WEIGHT) * self.rows[first].mean(axis=0))
        return shares + _COSINE_WEIGHT * (self.rows @ moved), matches
