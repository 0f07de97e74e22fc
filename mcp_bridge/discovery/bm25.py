"""Ranks documents by the words of a query: BM25F, with names taken apart and words stemmed.

BM25 with fields (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009, 3.6): a
term's counts in the fields of a document are weighted and set against the field's usual length,
then summed and saturated.

`getForecast`, `get_forecasts` and "the forecasts" share the term `forecast`: names are taken apart
at marks and at capitals, words that say nothing are left out, and the rest is cut to its stem
(Porter's algorithm, https://snowballstem.org/algorithms/porter/stemmer.html; what is not English
loses an ending by chance at most, the same on both sides).
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# snowballstemmer has no types.

from __future__ import annotations

import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from snowballstemmer.porter_stemmer import PorterStemmer

# What a search knows of a language: everyday words for what tools are called, and more.
#
# "It is freezing in here" shares no word with `set_thermostat`; a list says that one stands for the
# other. "Dim the light and play some jazz" is for two tools, and each is found best by its own
# part. "Thank you, that is much better" is for none. The lists are the caller's, as they belong to
# a language and to tools of some kinds.

Meanings: TypeAlias = Sequence[tuple[Sequence[str], Sequence[str]]]
"""Pairs of what is said, words or phrases, and the words of tools that it stands for. A `*` in a
phrase stands for one to three words."""
MAX_PIECES: Final = 8
"""Pieces of one request. Somebody who asks for more tells a story."""
MAX_REPLY_CHARS: Final = 200
"""Whoever says more than this says something."""
_MAX_GAP: Final = 3
_ANY: Final = "*"
_WORD: Final = re.compile(r"\*|[^\W_]+(?:'[^\W_]+)*")
_SENTENCE_END: Final = r"(?:(?<!\s)\s++)?[;.!?]\s+"


class Vocabulary:
    """The words of a language that say what a request is for. It is immutable.

    Args:
        meanings: Everyday words, and what tools for them are called.
        joiners: Words between two requests, such as "and then".
        replies: What people say that ask for nothing, such as "thank you".
    """

    def __init__(
        self,
        meanings: Meanings = (),
        joiners: Sequence[str] = (),
        replies: Sequence[str] = (),
    ) -> None:
        self._terms: Final = [
            tuple(dict.fromkeys(term for word in means for term in split_terms(word)))
            for _, means in meanings
        ]
        phrases: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        for number, (said, _) in enumerate(meanings):
            for phrase in said:
                if stems := tuple(_stems(phrase)):
                    phrases.setdefault(stems[0], []).append((stems[1:], number))
        self._phrases: Final = phrases
        self._replies: Final = frozenset(tuple(_stems(reply)) for reply in replies)
        self._longest_reply: Final = max(map(len, self._replies), default=0)
        longest_first = sorted(map(re.escape, joiners), key=len, reverse=True)
        before = r"(?:(?:(?<!\s)\s++)?[,;.]\s*+|(?<!\s)\s++)"
        joined = rf"{before}(?:{'|'.join(longest_first)})\s+|" if joiners else ""
        self._joint: Final = re.compile(joined + _SENTENCE_END, re.IGNORECASE)

    def meant(self, request: str) -> list[tuple[str, ...]]:
        """Gives for each thing that may be meant the terms of tools, any of which stands for it."""
        stems = tuple(_stems(request))
        met = {
            number: None
            for at, first in enumerate(stems, 1)
            for rest, number in self._phrases.get(first, ())
            if _stands(rest, stems, at)
        }
        return [self._terms[number] for number in met]

    def asks_nothing(self, request: str) -> bool:
        """Says whether `request` is made of replies alone: "all right, thank you"."""
        stems = tuple(_stems(request[:MAX_REPLY_CHARS]))
        reached = {0}  # the places up to which there are replies alone
        for end in range(1, len(stems) + 1):
            starts = range(max(0, end - self._longest_reply), end)
            if any(start in reached and stems[start:end] in self._replies for start in starts):
                reached.add(end)
        return len(request) <= MAX_REPLY_CHARS and len(stems) in reached

    def pieces(self, request: str) -> list[str]:
        """Gives the pieces between sentences and joining words, at most `MAX_PIECES`."""
        pieces = self._joint.split(request.strip(), maxsplit=MAX_PIECES - 1)
        return [piece for piece in pieces if piece.strip()]


def _stands(phrase: Sequence[str], stems: Sequence[str], at: int) -> bool:
    """Says whether `phrase` stands in `stems` from the place `at` on."""
    for index, wanted in enumerate(phrase):
        if wanted == _ANY:
            behind = phrase[index + 1 :]
            return any(_stands(behind, stems, at + gap) for gap in range(1, _MAX_GAP + 1))
        if at >= len(stems) or stems[at] != wanted:
            return False
        at += 1
    return at <= len(stems)


def _stems(text: str) -> Iterator[str]:
    """Yields the stem of every word, also of those that say nothing by themselves."""
    for word in _WORD.findall(text.replace("’", "'").lower()):
        yield stem(word)


MAX_TEXT_CHARS: Final = 8_192
"""So much of one text is read; descriptions of tools are cut to 1,024 before they come here."""
_STEMS_KEPT: Final = 16_384
"""A stem takes 30 µs to find and 0.1 µs to look up."""
_RUN: Final = re.compile(r"[^\W_]+")
_PART: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_CONTRACTION: Final = re.compile(r"['’](?:s|d|re|ll|ve|m|t)\b", re.I)
"""The rest of a word after its apostrophe."""
_STOP_WORDS: Final = frozenset(
    """a about an and any are as at be been between by can could did do does for from give had has
    have he her here his how i if in into is it its just let like me my need no not of on or our
    please she should so some tell than that the their them then there these they this those to
    us use used using want was we were what when where which who will with would you your
    """.split()  # noqa: SIM905 - one long list of words reads better as words
)
_stemmers: Final = threading.local()
"""A stemmer keeps the word it works on in itself, and indexes are built in threads."""


def split_terms(text: str) -> list[str]:
    """Gives the terms of a text in their order, with repetitions."""
    found: list[str] = []
    for run in _RUN.findall(_CONTRACTION.sub(" ", text[:MAX_TEXT_CHARS])):
        parts = _PART.findall(run) if run.isascii() else [run]
        found += [stem(word) for part in parts if (word := part.lower()) not in _STOP_WORDS]
    return found


@lru_cache(maxsize=_STEMS_KEPT)
def stem(word: str) -> str:
    """Gives the stem of a lower-case word."""
    stemmer: PorterStemmer | None = getattr(_stemmers, "porter", None)
    if stemmer is None:
        stemmer = _stemmers.porter = PorterStemmer()
    return stemmer.stemWord(word)


@dataclass(frozen=True, slots=True)
class FieldWeight:
    """How much a field of a document counts."""

    weight: float = 1.0
    length_share: float = 0.75
    """BM25's b: how far the field's length is held against it, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class _Posting:
    """The documents that have one term, and what the term adds to each one's score."""

    documents: NDArray[np.int32]
    scores: NDArray[np.float64]


class BM25Index:
    """Scores documents by the words of a query. It is immutable.

    Building takes some 0.2 ms for a document of a tool's size, so build a large one in a thread.

    Args:
        documents: The texts of each document's fields, as many and in the same order as `fields`.
        fields: The weight of each field; one plain field unless told otherwise.
        saturation: BM25's k1; 1.2 is usual for prose.
        terms_of: Takes a text apart; the same for documents and queries.
    """

    def __init__(
        self,
        documents: Sequence[Sequence[str]],
        fields: Sequence[FieldWeight] = (FieldWeight(),),
        *,
        saturation: float = 1.2,
        terms_of: Callable[[str], list[str]] = split_terms,
    ) -> None:
        self._size: Final = len(documents)
        self._saturation: Final = saturation
        self._terms_of: Final = terms_of
        terms = [[terms_of(text) for text in texts] for texts in documents]
        usual = [
            max(1.0, sum(len(texts[at]) for texts in terms) / max(1, self._size))
            for at in range(len(fields))
        ]
        counts: dict[str, dict[int, float]] = {}
        for number, texts in enumerate(terms):
            for field, found, length in zip(fields, texts, usual, strict=True):
                share = field.length_share
                scale = field.weight / (1 - share + share * len(found) / length)
                for term, count in Counter(found).items():
                    of_term = counts.setdefault(term, {})
                    of_term[number] = of_term.get(number, 0.0) + scale * count
        self._postings: Final = {term: self._posting(of_term) for term, of_term in counts.items()}
        self.most_by_one_term: Final = self._rarity(1) * (saturation + 1)
        """The most that one term can add: one that a single document has, time and again."""

    def scores(self, query: str) -> NDArray[np.float64]:
        """Gives one score for each document, in their order; 0.0 where nothing matches."""
        scores = np.zeros(self._size)
        for term in dict.fromkeys(self._terms_of(query)):
            self.add_term(scores, term)
        return scores

    def add_term(self, scores: NDArray[np.float64], term: str, weight: float = 1.0) -> bool:
        """Adds what one term brings to `scores`; False where no document has it."""
        if (posting := self._postings.get(term)) is None:
            return False
        scores[posting.documents] += weight * posting.scores
        return True

    def add_best(self, scores: NDArray[np.float64], terms: Sequence[str], weight: float) -> None:
        """Adds to each document's score the most that any one of `terms` brings it."""
        best = np.zeros(self._size)
        for term in terms:
            if (posting := self._postings.get(term)) is not None:
                at = posting.documents
                best[at] = np.maximum(best[at], posting.scores)
        scores += weight * best

    def _posting(self, counts: Mapping[int, float]) -> _Posting:
        weighted = np.fromiter(counts.values(), np.float64, len(counts))
        saturated = weighted * (self._saturation + 1) / (self._saturation + weighted)
        documents = np.fromiter(counts.keys(), np.int32, len(counts))
        return _Posting(documents, self._rarity(len(counts)) * saturated)

    def _rarity(self, documents: int) -> float:
        """Gives the weight of a term that so many documents have."""
        total = max(1, self._size)
        return math.log(1 + (total - documents + 0.5) / (documents + 0.5))
