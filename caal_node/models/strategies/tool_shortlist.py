"""Which tools a request can be for. The grammar of a JSON reply allows only those.

A request such as "dim the lights and play some jazz" asks for two things, of which small models do
the first and forget the second. So it is split where a joining word stands between two parts that
different tools fit; "tea and sugar" fits one tool, or none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from caal_node.context.prompt_tools import PromptTools
from caal_node.core.items import CallItem, ResultItem, UserItem
from caal_node.core.tool_spec import ToolSchema
from caal_node.models.question import Question
from caal_node.models.strategies.bm25 import ToolRelevance
from caal_node.models.strategies.per_table import once_per_table
from caal_node.models.strategies.word_lists import JOINERS, words

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


def shortlist(question: Question) -> tuple[tuple[ToolSchema, ...], ...]:
    """Return the tools that fit each part of the newest request, in the table's order.

    All tools are returned where none fits well by its words: "yes, do that" says nothing of a
    tool. Tools that this conversation has called already stay on the list.
    """
    relevance = _relevance_of(question.tools)
    said = [item.text for item in question.items if isinstance(item, UserItem)]
    parts = split_request(said[-1] if said else "", relevance, least_score=PART_SCORE)
    if len(parts) > 1 and not isinstance(question.items[-1], ResultItem):
        return tuple(_named(question, relevance.best(part, TOOLS_PER_PART_MAX)) for part in parts)
    # Once results are there, the model knows which parts are still to be done.
    names = [
        name for part in parts for name in relevance.best(part, TOOLS_MAX, least_score=WEAK_SCORE)
    ]
    if not names:
        return (question.tools.schemas,)
    called = [item.name for item in question.items if isinstance(item, CallItem)]
    return (_named(question, (*names, *called)),)


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


@once_per_table
def _relevance_of(tools: PromptTools) -> ToolRelevance:
    return ToolRelevance(tools.schemas, tools.examples)
