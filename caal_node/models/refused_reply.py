"""A reply which says that no tool can do what is asked, although one fits it, is asked for again.

Once in a turn, before any call, with that tool named at the prompt's end. What is denied for a
reason of its own ("I'm not allowed to unlock the door") is never doubted: such a reason may be the
owner's. What a refusal sounds like is in `prompts/refusals.toml`.
"""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from typing import Final

from livekit.agents import llm

from caal_node.core.prompt_files import read
from caal_node.grounding.call_grounds import unique_words
from caal_node.models.hedge_search import replaced_if
from caal_node.models.question import Question
from caal_node.models.strategies.tool_relevance import fits

logger = logging.getLogger("caal_node")

SURELY: Final = 1.75
"""Shared words (`unique_words`) from which a refusal is doubted. Of 444 requests for a tool it has
one for 226, the right one for 213; of 275 for none, one for 16, of which 11 only lack an
argument."""
REPLY_CHARS: Final = 1_000
"""Characters of a reply that are read. A refusal comes early."""
_REFUSES: Final = re.compile("|".join(tomllib.loads(read("refusals.toml"))["says"]))


def is_refusal(reply: str) -> bool:
    """Say whether a reply says that nothing can do what is asked, and asks for nothing."""
    said = reply[:REPLY_CHARS].replace("’", "'").lower()
    return "?" not in reply and _REFUSES.search(said) is not None


def fitting_tool(question: Question) -> str | None:
    """Return the one tool that the person's words surely fit; None where a call was made since."""
    tools = question.tools.names
    if not tools or not question.turn.is_new:
        return None
    scores = fits(question)
    best = max(tools, key=lambda name: scores.get(name, 0.0))
    return best if unique_words(scores.get(best, 0.0), len(tools)) >= SURELY else None


async def asking_if_refused(
    chunks: AsyncIterable[llm.ChatChunk],
    question: Question,
    again: Callable[[str], AsyncIterable[llm.ChatChunk]],
) -> AsyncGenerator[llm.ChatChunk]:
    """Yield `chunks`, or the reply of `again` to a tool's name where they refuse what it does."""
    tool: str | None = None

    def is_wrong(reply: str) -> bool:
        nonlocal tool
        if not is_refusal(reply):
            return False
        tool = fitting_tool(question)
        return tool is not None

    async def asked(chunk_id: str) -> AsyncGenerator[llm.ChatChunk]:
        logger.info("the reply refused what %s is for; asking once more", tool)
        async for chunk in again(tool or ""):
            yield chunk

    async for chunk in replaced_if(chunks, is_wrong, asked):
        yield chunk
