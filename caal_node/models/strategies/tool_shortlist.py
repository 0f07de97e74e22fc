"""Which tools a request can be for. The grammar of a JSON reply allows only those.

A request such as "dim the lights and play some jazz" asks for two things, of which small models do
the first and forget the second. So it is split where a joining word stands between two parts that
different tools fit; "tea and sugar" fits one tool, or none.

Of the 55 requests of one call in tests/bench, over 14 and 16 tools, the right tool is allowed in
54, with examples and without: it is among the five best, or none fits well and all are allowed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, cast

from caal_node.context.prompt_tools import PromptTools
from caal_node.context.told_tools import newest_told
from caal_node.core.items import CallItem, ResultItem, UserItem
from caal_node.core.tool_spec import Example, ToolSchema
from caal_node.grounding.reference_words import name_words, singular
from caal_node.models.question import Question
from caal_node.models.strategies.prompt import TABLES_MAX
from caal_node.models.strategies.word_lists import COMMON, JOINERS, STEM_CHARS, words
from mcp_bridge import DISCOVER
from mcp_bridge.discovery.bm25 import BM25Index, FieldWeight

_NAME_WEIGHT: Final = 3
"""How often a word of the name counts, since it says more than a word of the prose."""

TOOLS_MAX: Final = 5
"""Tools that the grammar allows for a request that asks for one thing."""
TOOLS_PER_PART_MAX: Final = 3
"""Tools for each part of a request: a part has fewer words, and means one thing."""
WEAK_SCORE: Final = 2.5
"""Score of the best tool below which all tools are allowed: one shared word may mean anything."""
PART_SCORE: Final = 2.0
"""Score from which a tool fits a part of a request."""
PARTS_MAX: Final = 3
PART_WORDS: Final = 2
"""A part with fewer words is a list's last item, not something to do."""
_JOINING: Final = "|".join(sorted(map(re.escape, JOINERS), key=len, reverse=True))
_JOINS: Final = re.compile(rf"(?:\s*[,;.]\s*|\s+)(?:{_JOINING})\s+|\s*[;.!?]\s+", re.IGNORECASE)


class ToolRelevance:
    """Rates how well tools fit a request by the words that they share (BM25).

    The index covers each tool's name, description, parameters and example utterances. It is made
    once for a table and asked at every request.
    """

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


def shortlist(question: Question) -> tuple[tuple[ToolSchema, ...], ...]:
    """Return the tools that fit each part of the newest request, in the table's order.

    All tools are returned where none fits well by its words: "yes, do that" says nothing of a
    tool. Tools that this conversation has called already stay on the list, and so do those that
    take what the request refers to, those that were told for it, and the one that finds others.
    """
    relevance = relevance_of(question.tools)
    parts = split_request(_meaning(question), relevance, least_score=PART_SCORE)
    if len(parts) > 1 and not isinstance(question.items[-1], ResultItem):
        told = _told(question)
        best = (relevance.best(part, TOOLS_PER_PART_MAX) for part in parts)
        return tuple(_named(question, (*names, *told)) for names in best)
    # Once results are there, the model knows which parts are still to be done.
    names = [
        name for part in parts for name in relevance.best(part, TOOLS_MAX, least_score=WEAK_SCORE)
    ]
    if not names:
        return (question.tools.schemas,)
    called = [item.name for item in question.items if isinstance(item, CallItem)]
    meant = _taking_what_is_meant(question)
    return (_named(question, (*names, *called, *meant, *_told(question))),)


def _told(question: Question) -> tuple[str, ...]:
    """Return the tools that were told for the newest request, and the one that finds others."""
    if question.head is None:
        return ()
    return (*newest_told(question.items, DISCOVER), DISCOVER)


def fits(question: Question) -> dict[str, float]:
    """Return how well each tool fits the newest request by the words that they share."""
    return relevance_of(question.tools).scores(_meaning(question))


def _meaning(question: Question) -> str:
    """Return the newest request without words that only point: "the last one" speaks of no tool
    that has to do with last things, but "the last song" does speak of songs."""
    said = next((item.text for item in reversed(question.items) if isinstance(item, UserItem)), "")
    for each in question.references:
        nouns = (word for word in name_words(each.words) if singular(word) in each.nouns)
        # "It" keeps the place of a word, by which parts are told from a list's last item.
        said = said.replace(each.words, " ".join(("it", *nouns)), 1)
    return said


def _taking_what_is_meant(question: Question) -> list[str]:
    """Return the tools with a required parameter that is called as what the request refers to."""
    nouns = frozenset[str]().union(*(each.nouns for each in question.references))
    return [
        tool["function"]["name"]
        for tool in (question.tools.schemas if nouns else ())
        for name in tool["function"]["parameters"].get("required", ())
        if not nouns.isdisjoint(map(singular, name_words(name)))
    ]


def split_request(request: str, relevance: ToolRelevance, *, least_score: float) -> tuple[str, ...]:
    """Return the parts of `request` that ask for different things, or the whole of it.

    `least_score` is the score from which a tool fits a part at all.
    """
    parts: list[str] = []
    tools: list[str] = []
    for part in _JOINS.split(request.strip()):
        scores = relevance.scores(part)
        tool = max(scores, key=lambda name: scores[name], default="")
        stands_alone = len(words(part)) >= PART_WORDS and tool and scores[tool] >= least_score
        if stands_alone and tool not in tools:
            parts.append(part)
            tools.append(tool)
        elif parts:
            parts[-1] = f"{parts[-1]} {part}"
    return tuple(parts[:PARTS_MAX]) if len(parts) > 1 else (request,)


def _named(question: Question, names: Sequence[str]) -> tuple[ToolSchema, ...]:
    return tuple(tool for tool in question.tools.schemas if tool["function"]["name"] in names)


@lru_cache(TABLES_MAX)  # For 196 tools it takes 18 ms, which is too long for every turn.
def relevance_of(tools: PromptTools) -> ToolRelevance:
    """Return the index of `tools`, which is made once for a table."""
    return ToolRelevance(tools.schemas, tools.examples)
