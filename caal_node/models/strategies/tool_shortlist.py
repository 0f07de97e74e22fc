"""Which tools a request can be for: what the grammar of a constrained reply reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from caal_node.core.items import CallItem, ResultItem, UserItem
from caal_node.core.tool_spec import Example, ToolSchema
from caal_node.models.question import Question
from caal_node.models.strategies.bm25 import ToolRelevance
from caal_node.models.strategies.request_splitter import wishes
from caal_node.models.strategies.word_lists import TELLING, words

REACHED: Final = 5
"""Tools that the grammar reaches for one wish."""
REACHED_BY_PART: Final = 3
"""Of each wish where there are several: a part has fewer words, and means one thing."""
WEAK_SCORE: Final = 2.5
"""Of the best tool. Below, one word is shared that may mean anything, and all are in reach."""
WISH_SCORE: Final = 2.0
"""Score of a tool from which it fits a part of a request."""
TALK_TURNS: Final = 3
"""A person's newest turns: "and in Rome?" is about what was said before."""


def reach(question: Question) -> tuple[tuple[ToolSchema, ...], ...]:
    """For each wish of the turn's request the tools that fit it, in the table's order.

    All tools where none fits well by its words: "yes, do that" says nothing of a tool. Those that
    this conversation has called already stay in reach.
    """
    fitting = _fitting(question.tools.schemas, question.tools.examples)
    said = [item.text for item in question.items if isinstance(item, UserItem)]
    parts = wishes(said[-1] if said else "", fitting, least=WISH_SCORE)
    if len(parts) > 1 and not isinstance(question.items[-1], ResultItem):
        return tuple(_named(question, fitting.best(part, REACHED_BY_PART)) for part in parts)
    # Once results are there, what is still wished for is the model's to know.
    names = [name for part in parts for name in fitting.best(part, REACHED, least=WEAK_SCORE)]
    if not names:
        return (question.tools.schemas,)
    called = [item.name for item in question.items if isinstance(item, CallItem)]
    return (_named(question, (*names, *called)),)


def is_far(question: Question) -> bool:
    """Whether the talk shares no word with any tool, though both are in one language.

    A second language is told by its small words; a request without any says nothing. Talk in
    which a tool was called is never far.
    """
    said = [item.text for item in question.items if isinstance(item, UserItem)][-TALK_TURNS:]
    if not said or any(isinstance(item, CallItem) for item in question.items):
        return False
    fitting = _fitting(question.tools.schemas, question.tools.examples)
    if any(score for text in said for score in fitting.scores(text).values()):
        return False
    return fitting.tells_language and not TELLING.isdisjoint(words(said[-1]))


def _named(question: Question, names: Sequence[str]) -> tuple[ToolSchema, ...]:
    return tuple(tool for tool in question.tools.schemas if tool["function"]["name"] in names)


_known: dict[tuple[int, ...], tuple[object, ToolRelevance]] = {}
_KNOWN_MAX: Final = 8
"""Tables whose index is kept: rooms of one process share one, and a reload makes another. An index
of 196 tools takes 18 ms to make."""


def _fitting(
    tools: Sequence[ToolSchema], examples: Mapping[str, Sequence[Example]]
) -> ToolRelevance:
    key = (*map(id, tools), *(id(examples.get(tool["function"]["name"])) for tool in tools))
    if (found := _known.get(key)) is None:
        held = [tools, *examples.values()]  # so that no other object gets one of these ids
        found = _known[key] = (held, ToolRelevance(tools, examples))
        if len(_known) > _KNOWN_MAX:
            del _known[next(iter(_known))]
    return found[1]
