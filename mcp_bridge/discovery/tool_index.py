"""Ranks tools by the words of a request: BM25F over four parts of a tool.

BM25 with fields (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009, 3.6): a
term's counts in the parts of a tool are weighted and set against the part's usual length, then
summed and saturated. Weights were chosen on `tests/bench`'s spoken requests over household tools
and then measured, unchanged, on the functions of BFCL (`tests/bench/discovery.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from mcp_bridge.core.tools import ToolInfo
from mcp_bridge.discovery.stemmed_terms import terms


@dataclass(frozen=True, slots=True)
class _Part:
    """How much a part of a tool counts, and how far its length is held against it (0 to 1)."""

    weight: float
    length: float


_PARTS: Final = (
    _Part(3.0, 0.2),  # the name: few words, each chosen
    _Part(1.0, 0.75),  # the description, and what people say for it
    _Part(1.0, 0.75),  # the parameters' names
    _Part(1.0, 0.9),  # the parameters' descriptions and choices: long where a tool takes much
)
_SATURATION: Final = 2.0
"""BM25's k1. The usual 1.2 is for prose; a term's coming back in name, description and parameters
says more than its coming back in one text."""
_INSIDE: Final = 0.5
"""Weight of a word that is known only as a piece of names (`geo` of `geolocation`)."""
_INSIDE_MIN: Final = 3
_INSIDE_WORDS: Final = 8
_INSIDE_HITS: Final = 16
"""Characters, words of a request, and names a word: bounds on looking for pieces."""
_DEPTH: Final = 6
_PROPERTIES: Final = 500
"""Levels and properties of one schema that are read."""


class ToolIndex:
    """Immutable. Building takes 0.2 ms a tool, so build it beside the event loop."""

    def __init__(self, tools: Sequence[ToolInfo]) -> None:
        self.tools: Final = tuple(tools)
        texts = [[terms(text) for text in _texts(tool)] for tool in self.tools]
        usual = [
            max(1.0, sum(len(parts[at]) for parts in texts) / max(1, len(texts)))
            for at in range(len(_PARTS))
        ]
        counts: dict[str, dict[int, float]] = {}
        for number, parts in enumerate(texts):
            for part, found, length in zip(_PARTS, parts, usual, strict=True):
                scale = part.weight / (1 - part.length + part.length * len(found) / length)
                for term, count in Counter(found).items():
                    of_term = counts.setdefault(term, {})
                    of_term[number] = of_term.get(number, 0.0) + scale * count
        self._postings: Final = {
            term: _posting(of_term, len(texts)) for term, of_term in counts.items()
        }
        self.most: Final = _rarity(1, max(1, len(texts))) * (_SATURATION + 1)
        """What a word brings at most: one that a single tool has, time and again."""
        self._in_names: Final = "\n".join(sorted({term for parts in texts for term in parts[0]}))

    def scores(self, request: str) -> NDArray[np.float64]:
        """One score for each tool, in the order given; 0.0 where nothing matches."""
        scores = np.zeros(len(self.tools))
        pieces = 0
        for term in dict.fromkeys(terms(request)):
            posting = self._postings.get(term)
            if posting is not None:
                scores[posting.tools] += posting.scores
            elif len(term) >= _INSIDE_MIN and pieces < _INSIDE_WORDS:
                pieces += 1
                for whole in self._names_with(term):
                    posting = self._postings[whole]
                    scores[posting.tools] += _INSIDE * posting.scores
        return scores

    def _names_with(self, piece: str) -> Iterator[str]:
        """Terms of names that contain `piece`."""
        at = self._in_names.find(piece)
        for _ in range(_INSIDE_HITS):
            if at < 0:
                return
            start = self._in_names.rfind("\n", 0, at) + 1
            end = self._in_names.find("\n", at)
            yield self._in_names[start : end if end >= 0 else None]
            at = self._in_names.find(piece, end) if end >= 0 else -1


@dataclass(frozen=True, slots=True)
class _Posting:
    tools: NDArray[np.int32]
    scores: NDArray[np.float64]


def _posting(counts: Mapping[int, float], total: int) -> _Posting:
    weighted = np.fromiter(counts.values(), np.float64, len(counts))
    return _Posting(
        np.fromiter(counts.keys(), np.int32, len(counts)),
        _rarity(len(counts), total) * weighted * (_SATURATION + 1) / (_SATURATION + weighted),
    )


def _rarity(tools: int, total: int) -> float:
    """Of a word that `tools` of `total` have."""
    return math.log(1 + (total - tools + 0.5) / (tools + 0.5))


def _texts(tool: ToolInfo) -> tuple[str, str, str, str]:
    """The four parts, in the order of `_PARTS`."""
    names: list[str] = []
    words: list[str] = []
    for name, schema in _properties(tool.input_schema, _DEPTH):
        if len(names) == _PROPERTIES:
            break
        names.append(name)
        words += _words(schema)
    said = (example.say for example in tool.examples)
    # The exposed name holds the server's; where it had to be cut, the tool's own is whole.
    name = tool.name if tool.name.endswith(tool.tool) else f"{tool.name} {tool.tool}"
    return name, " ".join((tool.description, *said)), " ".join(names), " ".join(words)


def _properties(schema: object, depth: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Names and schemas of the properties, also of objects inside objects and lists."""
    if not isinstance(schema, Mapping) or depth == 0:
        return
    node = cast("Mapping[str, Any]", schema)
    properties = node.get("properties")
    if isinstance(properties, Mapping):
        for name, inner in cast("Mapping[str, object]", properties).items():
            if isinstance(inner, Mapping):
                yield name, cast("Mapping[str, Any]", inner)
                yield from _properties(cast("object", inner), depth - 1)
    yield from _properties(node.get("items"), depth - 1)


def _words(schema: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(said := schema.get("description"), str):
        yield said
    items = schema.get("items")
    for place in (schema, cast("object", items)):
        if isinstance(place, Mapping):
            choices = cast("Mapping[str, object]", place).get("enum")
            if isinstance(choices, list):
                texts: Iterable[object] = cast("list[object]", choices)
                yield from (choice for choice in texts if isinstance(choice, str))
