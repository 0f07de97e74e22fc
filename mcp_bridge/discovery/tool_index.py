"""Ranks tools by the words of a request: BM25F over four fields of a tool.

BM25 with fields (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009, 3.6): a
term's counts in the fields of a tool are weighted and set against the field's usual length, then
summed and saturated. The weights were chosen on `tests/bench`'s spoken requests over household
tools and then measured, unchanged, on the functions of BFCL (`tests/bench/discovery.py`).

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray
from snowballstemmer.porter_stemmer import PorterStemmer

from mcp_bridge.core.tools import ToolInfo

_FIELDS: Final = ((3.0, 0.2), (1.0, 0.75), (1.0, 0.75), (1.0, 0.9))
"""Of each field its weight, and BM25's b: how far its length is held against it, from 0 to 1. The
fields are the name (few words, each chosen), the description and what people say for the tool, the
parameters' names, and their descriptions and choices (long where a tool takes much)."""
_SATURATION: Final = 2.0
"""BM25's k1. The usual 1.2 is for prose; a term that comes back in name, description and parameters
says more than one that comes back in one text."""
_PIECE_WEIGHT: Final = 0.5
"""The weight of a word that is known only as a piece of names (`geo` of `geolocation`)."""
_PIECE_MIN_CHARS: Final = 3
_MAX_PIECES: Final = 8
_MAX_NAMES_A_PIECE: Final = 16
"""Bounds on looking for pieces: words of a request, and names for each word."""
_MAX_LEVELS: Final = 6
_MAX_PROPERTIES: Final = 500
"""So many levels and properties of one schema are read."""
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
        found += [_stem(word) for part in parts if (word := part.lower()) not in _STOP_WORDS]
    return found


@lru_cache(maxsize=_STEMS_KEPT)
def _stem(word: str) -> str:
    stemmer: PorterStemmer | None = getattr(_stemmers, "porter", None)
    if stemmer is None:
        stemmer = _stemmers.porter = PorterStemmer()
    return stemmer.stemWord(word)


@dataclass(frozen=True, slots=True)
class _Posting:
    """The tools that have one term, and what the term adds to each one's score."""

    tools: NDArray[np.int32]
    scores: NDArray[np.float64]


class ToolIndex:
    """Scores tools by words. It is immutable. Building takes 0.2 ms a tool, so use a thread."""

    def __init__(self, tools: Sequence[ToolInfo]) -> None:
        self.tools: Final = tuple(tools)
        terms = [[split_terms(text) for text in _field_texts(tool)] for tool in self.tools]
        usual_lengths = [
            max(1.0, sum(len(texts[at]) for texts in terms) / max(1, len(tools)))
            for at in range(len(_FIELDS))
        ]
        counts: dict[str, dict[int, float]] = {}
        for number, texts in enumerate(terms):
            for (weight, share), found, usual in zip(_FIELDS, texts, usual_lengths, strict=True):
                scale = weight / (1 - share + share * len(found) / usual)
                for term, count in Counter(found).items():
                    of_term = counts.setdefault(term, {})
                    of_term[number] = of_term.get(number, 0.0) + scale * count
        self._postings: Final = {term: self._posting(of_term) for term, of_term in counts.items()}
        self._terms_of_names: Final = "\n".join(
            sorted({term for name, *_ in terms for term in name})
        )
        self.most_by_one_term: Final = self._rarity(1) * (_SATURATION + 1)
        """The most that one term can add: one that a single tool has, time and again."""

    def scores(self, request: str) -> NDArray[np.float64]:
        """Gives one score for each tool, in the order given; 0.0 where nothing matches."""
        scores = np.zeros(len(self.tools))
        pieces = 0
        for term in dict.fromkeys(split_terms(request)):
            if (posting := self._postings.get(term)) is not None:
                scores[posting.tools] += posting.scores
            elif len(term) >= _PIECE_MIN_CHARS and pieces < _MAX_PIECES:
                pieces += 1
                for whole in self._name_terms_with(term):
                    posting = self._postings[whole]
                    scores[posting.tools] += _PIECE_WEIGHT * posting.scores
        return scores

    def _posting(self, counts: Mapping[int, float]) -> _Posting:
        weighted = np.fromiter(counts.values(), np.float64, len(counts))
        saturated = weighted * (_SATURATION + 1) / (_SATURATION + weighted)
        numbers = np.fromiter(counts.keys(), np.int32, len(counts))
        return _Posting(numbers, self._rarity(len(counts)) * saturated)

    def _rarity(self, having: int) -> float:
        """Gives the weight of a term that so many tools have."""
        return math.log(1 + (max(1, len(self.tools)) - having + 0.5) / (having + 0.5))

    def _name_terms_with(self, piece: str) -> Iterator[str]:
        """Yields terms of names that contain `piece`."""
        at = self._terms_of_names.find(piece)
        for _ in range(_MAX_NAMES_A_PIECE):
            if at < 0:
                return
            start = self._terms_of_names.rfind("\n", 0, at) + 1
            end = self._terms_of_names.find("\n", at)
            yield self._terms_of_names[start : end if end >= 0 else None]
            at = self._terms_of_names.find(piece, end) if end >= 0 else -1


def _field_texts(tool: ToolInfo) -> tuple[str, str, str, str]:
    """Gives the texts of the four fields, in the order of `_FIELDS`."""
    names: list[str] = []
    words: list[str] = []
    for name, schema in _properties(tool.input_schema, _MAX_LEVELS):
        if len(names) == _MAX_PROPERTIES:
            break
        names.append(name)
        words += _words(schema)
    said = (example.say for example in tool.examples)
    # The exposed name holds the server's; where it had to be cut, the tool's own is whole.
    name = tool.name if tool.name.endswith(tool.tool) else f"{tool.name} {tool.tool}"
    return name, " ".join((tool.description, *said)), " ".join(names), " ".join(words)


def _properties(schema: object, levels: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields names and schemas of the properties, also of objects inside objects and lists."""
    if not isinstance(schema, Mapping) or levels == 0:
        return
    node = cast("Mapping[str, Any]", schema)
    properties = node.get("properties")
    if isinstance(properties, Mapping):
        for name, inner in cast("Mapping[str, object]", properties).items():
            if isinstance(inner, Mapping):
                yield name, cast("Mapping[str, Any]", inner)
                yield from _properties(cast("object", inner), levels - 1)
    yield from _properties(node.get("items"), levels - 1)


def _words(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yields a property's description and its choices."""
    if isinstance(said := schema.get("description"), str):
        yield said
    for holder in (schema, cast("object", schema.get("items"))):
        if isinstance(holder, Mapping):
            choices = cast("Mapping[str, object]", holder).get("enum")
            if isinstance(choices, list):
                texts: Iterable[object] = cast("list[object]", choices)
                yield from (choice for choice in texts if isinstance(choice, str))
