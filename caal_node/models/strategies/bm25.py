"""How well tools fit a request by the words that they share.

The index covers each tool's name, description, parameters and example utterances. It decides which
tools a grammar allows a small model, never what the prompt shows. Of the 55 requests of one call in
tests/bench, over 14 and 16 tools, the right tool is allowed in 54, with examples and without: it is
among the five best, or none fits well and all are allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from caal_node.core.tool_spec import Example, ToolSchema
from caal_node.models.strategies.word_lists import COMMON, STEM_CHARS, words
from mcp_bridge.discovery.bm25 import BM25Index, FieldWeight

_NAME_WEIGHT: Final = 3
"""How often a word of the name counts, since it says more than a word of the prose."""


class ToolRelevance:
    """An index over `tools`. It is made once for a table and asked at every request."""

    def __init__(
        self, tools: Sequence[ToolSchema], examples: Mapping[str, Sequence[Example]]
    ) -> None:
        self.names: Final = tuple(tool["function"]["name"] for tool in tools)
        texts = [
            ["\n".join(_texts(tool["function"], examples.get(name, ())))]
            for tool, name in zip(tools, self.names, strict=True)
        ]
        # Lengths count half: a long description makes no tool worse.
        self._index: Final = BM25Index(texts, (FieldWeight(length_share=0.5),), terms_of=_terms)

    def scores(self, request: str) -> dict[str, float]:
        """Return each tool's score, in the order of the tools. It is 0 where no word is shared."""
        return dict(zip(self.names, self._index.scores(request).tolist(), strict=True))

    def best(self, request: str, count: int, *, least_score: float = 0.0) -> tuple[str, ...]:
        """Return up to `count` names that share a word with `request`, the best first.

        There are none where even the best one scores below `least_score`.
        """
        ranked = sorted(self.scores(request).items(), key=lambda pair: -pair[1])
        if not ranked or ranked[0][1] < least_score:
            return ()
        return tuple(name for name, score in ranked[:count] if score > 0)


def _terms(text: str) -> list[str]:
    return [_term(word) for word in words(text) if word not in COMMON]


def _term(word: str) -> str:
    # This is a light stem: plural and verb endings go, and what is left keeps six letters.
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= STEM_CHARS:
            word = word[: -len(ending)]
            break
    return word[:6].removesuffix("e")


def _texts(function: Mapping[str, Any], examples: Sequence[Example]) -> list[str]:
    parameters = cast("Mapping[str, Any]", function.get("parameters") or {})
    properties = cast("Mapping[str, Any]", parameters.get("properties") or {})
    prose = [str(function.get("description") or "")]
    for name, schema in properties.items():
        prose.append(name)
        if isinstance(schema, Mapping):
            given = cast("Mapping[str, Any]", schema)
            prose += [str(given.get("description") or ""), *map(str, given.get("enum") or ())]
    return [
        *[function["name"]] * _NAME_WEIGHT,
        *prose,
        *(example.utterance for example in examples),
    ]
