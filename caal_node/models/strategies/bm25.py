"""Which tools fit a request, by the words that they share (BM25, Robertson and Zaragoza 2009).

Over each tool's name, description, parameters and example utterances. It decides what a grammar
lets a small model reach, never what the prompt shows. Of the 55 requests of one call in
tests/bench, over 14 and 16 tools, the right one is in reach in 54, with examples and without: among
the five best, or because none fits well and all are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from caal_node.core.tool_spec import Example, ToolSchema
from caal_node.models.strategies.word_lists import COMMON, STEM_CHARS, TELLING, words

_K1: Final = 1.2
_B: Final = 0.5
"""BM25's usual saturation; lengths count half, as a long description is no worse a tool."""
_NAME_WEIGHT: Final = 3
"""A word of the name says more than one of the prose."""


class ToolRelevance:
    """An index over `tools`; made once for a table, asked at every request."""

    def __init__(
        self, tools: Sequence[ToolSchema], examples: Mapping[str, Sequence[Example]]
    ) -> None:
        self.names: Final = tuple(tool["function"]["name"] for tool in tools)
        told = [
            _texts(tool["function"], examples.get(name, ()))
            for tool, name in zip(tools, self.names, strict=True)
        ]
        self.tells_language: Final = any(
            not TELLING.isdisjoint(words(text)) for one in told for text in one
        )
        """Whether the tools are described in a language that `words.TELLING` knows."""
        texts = [_terms(one) for one in told]
        self._counts: Final = [Counter(terms) for terms in texts]
        lengths = [len(terms) for terms in texts]
        mean = sum(lengths) / max(1, len(lengths)) or 1.0
        self._norms: Final = [_K1 * (1 - _B + _B * length / mean) for length in lengths]
        seen = Counter(term for counts in self._counts for term in counts)
        total = len(texts)
        self._idf: Final = {
            term: math.log(1 + (total - count + 0.5) / (count + 0.5))
            for term, count in seen.items()
        }

    def scores(self, request: str) -> dict[str, float]:
        """Tool name -> score, in the order of the tools; 0 where no word is shared."""
        asked = frozenset(_terms([request]))
        return {
            name: sum(
                self._idf[term] * count * (_K1 + 1) / (count + norm)
                for term in asked
                if (count := counts.get(term, 0))
            )
            for name, counts, norm in zip(self.names, self._counts, self._norms, strict=True)
        }

    def best(self, request: str, count: int, *, least: float = 0.0) -> tuple[str, ...]:
        """The `count` names that fit best, the best first; fewer where fewer share a word.

        None where even the best scores below `least`.
        """
        ranked = sorted(self.scores(request).items(), key=lambda pair: -pair[1])
        if not ranked or ranked[0][1] < least:
            return ()
        return tuple(name for name, score in ranked[:count] if score > 0)


def _terms(texts: Iterable[str]) -> list[str]:
    found = (word for text in texts for word in words(text))
    return [_term(word) for word in found if word not in COMMON]


def _term(word: str) -> str:
    # A light stem: plural and verb endings go, and what is left keeps six letters.
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= STEM_CHARS:
            word = word[: -len(ending)]
            break
    return word[:6].removesuffix("e")


def _texts(function: Mapping[str, Any], examples: Sequence[Example]) -> list[str]:
    parameters = cast("Mapping[str, Any]", function.get("parameters") or {})
    properties = cast("Mapping[str, Any]", parameters.get("properties") or {})
    told = [str(function.get("description") or "")]
    for name, schema in properties.items():
        told.append(name)
        if isinstance(schema, Mapping):
            given = cast("Mapping[str, Any]", schema)
            told += [str(given.get("description") or ""), *map(str, given.get("enum") or ())]
    return [*[function["name"]] * _NAME_WEIGHT, *told, *(example.utterance for example in examples)]
