"""Finds the passages that answer a question, by its words and, where an embedding is on, by what it
means; and says where there are none.

A search by words alone finds something for every question that has a common word. So a passage
counts only if it has enough of what the question is about, or means nearly the same. The two limits
were chosen on labelled questions (`tests/data/documents/questions.json`).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from caal_node.toolsets.documents.passage_index import CANDIDATES, FoundPassage, PassageIndex
from mcp_bridge.core.errors import EmbeddingUnavailable
from mcp_bridge.embedding.base import Embedder, Vectors

# The words of a question that say what it is about.
#
# They are searched for as they were said: the index makes its own stems of them, and of the texts.

MAX_WORDS: Final = 24
"""Words of a question that are searched for, the first ones."""
MAX_CHARS: Final = 1_000
_WORD: Final = re.compile(r"[^\W_]+")
_APOSTROPHE: Final = re.compile(r"(?<=\w)['’](?:s|d|re|ll|ve|m|t)\b", re.IGNORECASE)
_SMALL_WORDS: Final = frozenset(
    """a about according all also am an and any are as at be been being but by can could did do does
    documents document file files find for from get give had has have he her here him his how i if
    in into is it its just know let like look lookup manual many may me mean mention mentions might
    much must my need note notes of on or our out paper papers please read say says search she
    should show so some something tell than that the their them then there these they thing things
    this those to told up us use used using want was we were what whats when where which who whose
    why will with would write written wrote you your""".split()  # noqa: SIM905 - a list of words reads better as words
)


def question_words(question: str) -> list[str]:
    """Return the words that matter, each once, in their order and in lower case.

    A question of nothing but small words ("what is in my notes?") has none.
    """
    text = _APOSTROPHE.sub("", question[:MAX_CHARS]).casefold()
    found = (word for word in _WORD.findall(text) if word not in _SMALL_WORDS)
    return [word for word in dict.fromkeys(found) if len(word) > 1 or word.isdigit()][:MAX_WORDS]


logger = logging.getLogger("caal_node.toolsets.documents")

MIN_COVERED: Final = 0.5
"""The share of a question's words, weighted by rarity, from which a passage is about it."""
MIN_COVERED_ALONE: Final = 0.37
"""The same where no vector says anything: so "what is our wifi called" is found by its one word."""
MIN_COSINE: Final = 0.36
"""The cosine to a question from which a passage is about it, whatever its words."""
EMBED_S: Final = 2.0
"""Seconds that a question's vector is waited for, behind a batch of passages that takes half a
second on a slow core. Without it the words decide."""


@dataclass(frozen=True, slots=True)
class PassageMatch:
    """A passage that is about a question."""

    found: FoundPassage
    score: float
    """More is better; only good for an order."""


class PassageSearch:
    """Searches one index. It holds the vectors in memory once they were needed."""

    def __init__(self, index: PassageIndex, embedder: Embedder | None) -> None:
        self._index: Final = index
        self._embedder: Final = embedder
        self._vectors: tuple[list[int], Vectors] | None = None

    def changed(self) -> None:
        """Take note that the index has changed, so that vectors are read again."""
        self._vectors = None

    async def search(self, question: str, limit: int) -> list[PassageMatch]:
        """Return at most `limit` passages, best first; none if nothing is about the question.

        Raises:
            OSError: The index cannot be read.
        """
        words = question_words(question)
        asked = await self._asked(question)
        return await asyncio.to_thread(self._matches, words, asked, limit)

    async def _asked(self, question: str) -> Vectors | None:
        if self._embedder is None:
            return None
        try:
            async with asyncio.timeout(EMBED_S):
                return (await self._embedder.embed([question]))[0]
        except (TimeoutError, EmbeddingUnavailable) as error:
            logger.info("documents are searched by words alone (%s)", type(error).__name__)
            return None

    def _matches(
        self, words: Sequence[str], asked: Vectors | None, limit: int
    ) -> list[PassageMatch]:
        found = {each.id: each for each in self._index.by_words(words)}
        cosines = self._cosines(asked)
        near = sorted(cosines, key=lambda one: -cosines[one])[:CANDIDATES]
        missing = [one for one in near if one not in found and cosines[one] >= MIN_COSINE]
        found |= {each.id: each for each in self._index.by_ids(missing, words)}
        best = max((each.bm25 for each in found.values()), default=0.0) or 1.0
        matches = [
            PassageMatch(
                each, each.covered + each.bm25 / best / 2 + max(0.0, cosines.get(each.id, 0.0))
            )
            for each in found.values()
            if _is_about(each.covered, cosines.get(each.id))
        ]
        return sorted(matches, key=lambda match: (-match.score, match.found.id))[:limit]

    def _cosines(self, asked: Vectors | None) -> dict[int, float]:
        if asked is None or self._embedder is None:
            return {}
        vectors = self._vectors
        if vectors is None:
            vectors = self._vectors = self._index.vectors(self._embedder.name)
        ids, rows = vectors
        if not ids or rows.shape[1] != len(asked):
            return {}
        products: Vectors = rows @ asked.astype(np.float32)
        return dict(zip(ids, products.tolist(), strict=True))


def _is_about(covered: float, cosine: float | None) -> bool:
    if cosine is None:
        return covered >= MIN_COVERED_ALONE
    return covered >= MIN_COVERED or cosine >= MIN_COSINE
