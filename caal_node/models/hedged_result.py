"""A reply that denies access to what a result of its turn tells is asked for once more.

"I don't have real-time data", behind a forecast that was just found. Where the second reply denies
it as well, the web is searched if that may be, and else the result's own words are said.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from livekit.agents import llm

from caal_node.core.items import UserItem
from caal_node.core.prompt_files import read, sentence
from caal_node.grounding.hedges import denies_access
from caal_node.grounding.ledger import LedgerEntry
from caal_node.grounding.result_kind import kind_of, looks_up
from caal_node.models.hedge_search import replaced_if
from caal_node.models.question import Question

logger = logging.getLogger("caal_node")

TOLD_CHARS: Final = 240
"""Characters of a result that are said: a quarter of a minute of speech."""
TOLD_VALUES: Final = 6
"""Values of a result that are said."""
READ_CHARS: Final = 8_000
"""Characters of a result that are read; of a longer one nothing is said."""
_DEPTH_MAX: Final = 4


def found_result(turn: Sequence[LedgerEntry]) -> str | None:
    """Return the newest result of a turn that has found something that can be said."""
    for entry in reversed(turn):
        if len(entry.result) <= READ_CHARS and looks_up(entry) and kind_of(entry) == "found":
            return said_of(entry.result) or None
    return None


def said_of(result: str) -> str:
    """Return a result as a person may hear it: a text, or the first values with their names."""
    try:
        value: object = json.loads(result)
    except (ValueError, RecursionError):
        value = result
    if isinstance(value, dict | list):
        told: list[str] = []
        for each in _values(cast("Any", value), "", 0):
            told.append(each)
            if len(told) == TOLD_VALUES:
                break
        value = ", ".join(told)
    text = " ".join(str(value).split()).rstrip(".")
    if len(text) <= TOLD_CHARS:
        return text
    return text[: text.rfind(" ", 0, TOLD_CHARS) if " " in text[:TOLD_CHARS] else TOLD_CHARS]


def question_with_result(question: Question) -> Question:
    """Return `question` with the word that its result is there."""
    return replace(question, items=(*question.items, UserItem(read("result_there.md"))))


def said_result(result: str) -> llm.ChoiceDelta:
    """Return what is said where the model denies twice what a result tells."""
    words = sentence("result_is").replace("{result}", result)
    return llm.ChoiceDelta(role="assistant", content=words)


def answering_from(
    chunks: AsyncIterable[llm.ChatChunk],
    again: Callable[[], AsyncIterable[llm.ChatChunk]],
    last: llm.ChoiceDelta,
) -> AsyncGenerator[llm.ChatChunk]:
    """Yield `chunks`; the reply of `again` where they deny access to what a result tells, and
    `last` where that reply does so, too."""

    async def ended(chunk_id: str) -> AsyncGenerator[llm.ChatChunk]:
        yield llm.ChatChunk(id=chunk_id, delta=last)

    async def asked(chunk_id: str) -> AsyncGenerator[llm.ChatChunk]:
        logger.info("the reply denied what a result tells; asking once more")
        async for chunk in replaced_if(again(), denies_access, ended):
            yield chunk

    return replaced_if(chunks, denies_access, asked)


def _values(value: Any, name: str, depth: int) -> Iterator[str]:
    """Give the plain values of JSON in their order, each with its name."""
    if depth > _DEPTH_MAX:
        return
    if isinstance(value, dict):
        for key, member in cast("dict[str, Any]", value).items():
            yield from _values(member, key.replace("_", " "), depth + 1)
    elif isinstance(value, list):
        for member in cast("list[Any]", value):
            yield from _values(member, name, depth + 1)
    elif value is not None and not isinstance(value, bool) and str(value).strip():
        yield f"{name} {value}".strip()
