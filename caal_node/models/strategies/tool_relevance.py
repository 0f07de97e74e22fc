"""How well tools fit a request by the words that they share.

Words rank and make doubtful, and never exclude: people say "put on some jazz" and "that's too loud"
where a tool's author wrote "play music" and "volume". So a grammar allows every tool, whatever
words a request has. What words do say is how many things are asked for: small models do the first
and forget the second.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, cast

from caal_node.context.token_estimate import PromptTools
from caal_node.core.items import ResultItem
from caal_node.core.prompt_files import read
from caal_node.core.tool_spec import Example, ToolSchema
from caal_node.grounding.earlier_results import name_words, singular
from caal_node.models.question import Question
from caal_node.models.strategies.prompt import TABLES_MAX
from mcp_bridge.discovery.bm25 import BM25Index, FieldWeight

# The word lists of `prompts/protocol_words.toml`, and how a text becomes words.

_LISTS: Final[dict[str, Any]] = tomllib.loads(read("protocol_words.toml"))
JOINERS: Final[Sequence[str]] = _LISTS["joiners"]
NUMBERS: Final = frozenset[str](_LISTS["numbers"])
ARTICLES: Final = frozenset[str](_LISTS["articles"])
MEASURES: Final = frozenset[str](_LISTS["measures"])
TIMES: Final = frozenset[str](_LISTS["times"])
COMMON: Final = frozenset[str](_LISTS["common"])

_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
STEM_CHARS: Final = 4
"""Words that begin alike in this many letters count as one: drive and driving, quiet and quietly.
That is shorter than a stemmer would have it, and the same for every language."""


def words(text: str) -> list[str]:
    """Return the lower-case words of `text`; `play_music` and `playMusic` are two words each."""
    return [word.casefold() for word in _WORD.findall(_HUMP.sub(" ", text).replace("_", " "))]


def stems(text: str) -> frozenset[str]:
    """Return the first letters of each word of `text`."""
    return frozenset(word[:STEM_CHARS] for word in words(text))


PART_SCORE: Final = 2.0
"""Score from which a tool fits a part of a request. Of 222 spoken requests for one thing and 400 of
BFCL none has two such parts; of 16 for two things 13 have, with their tools' examples."""
PARTS_MAX: Final = 3
PIECES_MAX: Final = 16
"""Parts of a request that are told apart; the last one has all that follows."""
PART_WORDS: Final = 2
"""A part with fewer words is a list's last item, not something to do."""
_JOINING: Final = "|".join(sorted(map(re.escape, JOINERS), key=len, reverse=True))
_JOINS: Final = re.compile(
    rf"(?:(?:(?<!\s)\s++)?[,;.]\s*+|(?<!\s)\s++)(?:{_JOINING})\s+|(?:(?<!\s)\s++)?[;.!?]\s+",
    re.IGNORECASE,
)
_NAME_WEIGHT: Final = 3
"""How often a word of the name counts, since it says more than a word of the prose."""


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


def wishes(question: Question) -> int:
    """Return how many things the newest request asks for that different tools fit: "dim the lights
    and play some jazz" is two, "tea and sugar" one. Once results are there it is one, as the model
    knows then what is still to be done."""
    if isinstance(question.items[-1], ResultItem):
        return 1
    tools = {fitting[0] for _, fitting in parts_with_tools(question) if fitting}
    return max(1, min(len(tools), PARTS_MAX))


def parts_with_tools(question: Question) -> list[tuple[str, list[str]]]:
    """Return the parts of the newest request, each with the tools that fit it, best first."""
    relevance = relevance_of(question.tools)
    found: list[tuple[str, list[str]]] = []
    for part in _JOINS.split(_meaning(question).strip(), maxsplit=PIECES_MAX - 1):
        scores = relevance.scores(part)
        fitting = [name for name in scores if scores[name] >= PART_SCORE]
        fitting.sort(key=lambda name: -scores[name])
        found.append((part, fitting if len(words(part)) >= PART_WORDS else []))
    return found


def fits(question: Question) -> dict[str, float]:
    """Return how well each tool fits the newest request by the words that they share."""
    return relevance_of(question.tools).scores(_meaning(question))


def _meaning(question: Question) -> str:
    """Return the newest request without words that only point: "the last one" speaks of no tool
    that has to do with last things, but "the last song" does speak of songs."""
    said = question.request
    for each in question.references:
        nouns = (word for word in name_words(each.words) if singular(word) in each.nouns)
        # "It" keeps the place of a word, by which parts are told from a list's last item.
        said = said.replace(each.words, " ".join(("it", *nouns)), 1)
    return said


@lru_cache(TABLES_MAX)  # For 196 tools it takes 18 ms, which is too long for every turn.
def relevance_of(tools: PromptTools) -> ToolRelevance:
    """Return the index of `tools`, which is made once for a table."""
    return ToolRelevance(tools.schemas, tools.examples)
