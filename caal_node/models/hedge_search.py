"""One search in place of a reply which says that it cannot look something up.

The beginning of a reply is held back until it is known that it is no such hedge: for its first
sentence, which speech synthesis waits for anyway. A hedge is never spoken. A call of the search
tool with the person's own words takes its place, and LiveKit runs it like any other.
"""

from __future__ import annotations

import json
import logging
import re
import tomllib
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from functools import cache
from typing import Final

from livekit.agents import llm
from livekit.agents.utils import shortuuid

from caal_node.core.items import CallItem, Item, UserItem
from caal_node.core.prompt_files import read
from caal_node.core.tool_spec import ToolSchema
from caal_node.reply_parser.hedge_detector import HedgeDetector, search_arguments, search_tool

logger = logging.getLogger("caal_node")

OPENING_CHARS: Final = 40
"""Characters. A shorter first sentence ("That's a great question!") is no answer yet."""
HELD_CHARS: Final = 400
"""Characters held back at most, if no sentence ends: some 25 seconds of speech."""
_SENTENCE_END: Final = re.compile(r"[.!?…][\"')\]]*\s|\n")


@cache
def hedging() -> HedgeDetector:
    """Return what a hedge sounds like, read once from `prompts/`."""
    return HedgeDetector.from_table(tomllib.loads(read("hedging.toml")))


def search_call(history: Sequence[Item], tools: Sequence[ToolSchema]) -> llm.ChoiceDelta | None:
    """Return the search for what the person last said.

    None means that there is no search tool, or that this turn has searched already.
    """
    if (name := search_tool(tools)) is None:
        return None
    for item in reversed(history):
        if isinstance(item, CallItem) and item.name == name:
            return None
        if isinstance(item, UserItem):
            schema = next(tool for tool in tools if tool["function"]["name"] == name)
            arguments = search_arguments(schema, item.text)
            return None if arguments is None else _call(name, json.dumps(arguments))
    return None


async def searching_if_hedged(
    chunks: AsyncIterable[llm.ChatChunk], search: llm.ChoiceDelta, *, whole: bool
) -> AsyncGenerator[llm.ChatChunk]:
    """Yield `chunks`, or `search` in place of a reply that begins with a hedge and makes no call.

    A hedge is held back to the reply's end, since the model's own call behind it ("Let me check.")
    is better than a search. `whole` says that the reply comes all at once, so all of it is read.
    """
    held: list[llm.ChatChunk] = []
    text, open_, hedged = "", True, False
    async for chunk in chunks:
        if not open_:
            yield chunk
            continue
        held.append(chunk)
        delta = chunk.delta
        text += (delta and delta.content) or ""
        called = bool(delta and (delta.tool_calls or delta.extra))
        if not called and not hedged and not whole and _has_begun(text):
            hedged = hedging().is_hedge(text)
            open_ = hedged
        if called or not open_:
            open_ = False
            for one in held:
                yield one
    if not open_:
        return
    if not (hedged or (text and hedging().is_hedge(text))):
        for one in held:
            yield one
        return
    logger.info("the reply said that it cannot know; searching once")
    yield llm.ChatChunk(id=held[0].id, delta=search)


def _has_begun(text: str) -> bool:
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    return len(text) >= HELD_CHARS or any(end >= OPENING_CHARS for end in ends) or len(ends) > 1


def _call(name: str, arguments: str) -> llm.ChoiceDelta:
    call = llm.FunctionToolCall(name=name, arguments=arguments, call_id=shortuuid("call_"))
    return llm.ChoiceDelta(role="assistant", tool_calls=[call])
