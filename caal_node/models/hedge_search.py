"""Replies that hedge: one search in their place, or the result that they deny.

The beginning of a reply is held back until it is known that it is no such hedge: for its first
sentence, which speech synthesis waits for anyway. A hedge is never spoken. A call of the search
tool with the person's own words takes its place, and LiveKit runs it like any other.
"""

from __future__ import annotations

import json
import logging
import re
import tomllib
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, cast

from livekit.agents import llm

from caal_node.core.items import Item, UserItem
from caal_node.core.prompt_files import read, sentence
from caal_node.core.tool_spec import ToolSchema
from caal_node.core.turn import Turn
from caal_node.grounding.call_grounds import unique_words
from caal_node.grounding.hedges import denies_access, hedges
from caal_node.grounding.ledger import Ledger
from caal_node.grounding.result_kind import OWN_THINGS, is_unrelated, kind_of, looks_up
from caal_node.models.chat_context import call_delta
from caal_node.models.question import Question
from caal_node.models.strategies.tool_relevance import fits
from caal_node.policy.heard_words import COMMON, stems
from caal_node.reply_parser.tool_index import ToolIndex, ToolSignature, mapping, signature_of

# A reply which says that no tool can do what is asked, although one fits it, is asked for again.
#
# Once in a turn, before any call, with that tool named at the prompt's end. What is denied for a
# reason of its own ("I'm not allowed to unlock the door") is never doubted: such a reason may be
# the owner's. What a refusal sounds like is in `prompts/refusals.toml`.

logger = logging.getLogger("caal_node")

SURELY: Final = 1.75
"""Shared words (`unique_words`) from which a refusal is doubted. Of 444 requests for a tool it has
one for 226, the right one for 213; of 275 for none, one for 16, of which 11 only lack an
argument."""
REPLY_CHARS: Final = 1_000
"""Characters of a reply that are read. A refusal comes early."""
_REFUSES: Final = re.compile("|".join(tomllib.loads(read("refusals.toml"))["says"]))


_CANNOT: Final = re.compile(
    r"\bi(?: can't| cannot| can not|'m unable to| am unable to|'m not able to| am not able to)"
    r" ((?:[\w-]+ ){0,4}[\w-]+)[.!]"
    r"|\bich kann (?:\w+ ){0,2}keine? ((?:\w+ ){0,3}\w+)[.!]"
)
"""What somebody cannot do, in a few words and with no reason behind them."""
_ONE_THING: Final = frozenset(
    ("the", "this", "that", "these", "those", "your", "it", "you", "them", "him", "her", "for")
)
"""What is said of one thing or for one person may be denied for a reason of its own."""


def cannot_at_all(reply: str, request: str) -> bool:
    """Say whether a reply denies all of a kind that is asked for: "I can't control lights"."""
    found = _CANNOT.search(reply[:REPLY_CHARS].replace("’", "'").lower())
    if found is None or "?" in reply:
        return False
    said = found[1] or found[2]
    is_general = _ONE_THING.isdisjoint(said.split())
    return is_general and not (stems(request) - COMMON).isdisjoint(stems(said))


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
        if not is_refusal(reply) and not cannot_at_all(reply, question.request):
            return False
        tool = fitting_tool(question)
        return tool is not None

    async def asked(chunk_id: str) -> AsyncGenerator[llm.ChatChunk]:
        logger.info("the reply refused what %s is for; asking once more", tool)
        async for chunk in again(tool or ""):
            yield chunk

    async for chunk in replaced_if(chunks, is_wrong, asked):
        yield chunk


# A reply that denies access to what a result of its turn tells is asked for once more.
#
# "I don't have real-time data", behind a forecast that was just found. Where the second reply
# denies it as well, the web is searched if that may be, and else the result's own words are said.


TOLD_CHARS: Final = 240
"""Characters of a result that are said: a quarter of a minute of speech."""
TOLD_VALUES: Final = 6
"""Values of a result that are said."""
READ_CHARS: Final = 8_000
"""Characters of a result that are read; of a longer one nothing is said."""
_DEPTH_MAX: Final = 4


def found_result(ledger: Ledger) -> str | None:
    """Return the newest result of a turn that has found something that can be said."""
    for entry in reversed(ledger.turn):
        if len(entry.result) > READ_CHARS or not looks_up(entry) or kind_of(entry) != "found":
            continue
        if not is_unrelated(entry, ledger.request):
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


OPENING_CHARS: Final = 40
"""Characters. A shorter first sentence ("That's a great question!") is no answer yet."""
HELD_CHARS: Final = 400
"""Characters held back at most, if no sentence ends: some 25 seconds of speech."""
QUESTION_CHARS: Final = 400
"""How much of the question is searched for: search services take about as much."""

_SENTENCE_END: Final = re.compile(r"[.!?…][\"')\]]*\s|\n")

_NAME_PARTS: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_SEARCHES: Final = frozenset({"search", "websearch", "lookup", "google", "bing", "browse", "query"})
_SEARCHING: Final = re.compile("|".join(sorted(_SEARCHES)), re.IGNORECASE)
_WEB: Final = re.compile(
    r"\b(?:web|internet|online|google|bing|duckduckgo|ddg|brave|tavily|serp\w*|searx\w*|exa|perplexity|"
    r"websearch|search engine)\b",
    re.IGNORECASE,
)
_ELSEWHERE: Final = re.compile(
    rf"\b(?:{OWN_THINGS}|"
    r"code|repositor(?:y|ies)|songs?|music|playlists?|photos?|images?|products?|database|tickets?|"
    r"devices?|tools?|wiki)\b",
    re.IGNORECASE,
)
_QUERY_NAMES: Final = (
    *("query", "q", "question", "search", "search_query", "keywords", "text", "term"),
)


def search_tool(tools: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the name of the one tool among OpenAI-style schemas that searches the web.

    None: there is none, or two are equally likely.
    """
    return _search_tool(ToolIndex.from_schemas(tools))


@lru_cache(maxsize=1)
def _search_tool(tools: ToolIndex) -> str | None:
    rated = [(_points(tool), tool.name) for tool in tools.signatures]
    best = max((points for points, _ in rated), default=0)
    names = [name for points, name in rated if points == best > 0]
    return names[0] if len(names) == 1 else None


def may_search(tool: Mapping[str, Any]) -> bool:
    """Say whether a tool can be one that `search_tool` returns at all: 5,000 take 5 ms."""
    function = tool["function"]
    about = "search" in (function.get("description") or "").lower()
    return about or _SEARCHING.search(function["name"]) is not None


def search_arguments(schema: Mapping[str, Any], question: str) -> dict[str, Any] | None:
    """Return the arguments with which the tool `schema` searches for `question`; None if it needs
    more than words."""
    words = " ".join(question.split())[:QUESTION_CHARS]
    tool = signature_of(schema)
    name = _query_parameter(tool) if tool is not None and words else None
    return {name: words} if name else None


def _points(tool: ToolSignature) -> int:
    """Return how likely a tool searches the web; 0 if it does not."""
    if _query_parameter(tool) is None:
        return 0
    parts = [part.lower() for part in _NAME_PARTS.findall(tool.name)]
    spaced, about = " ".join(parts), tool.description
    first = about.split(".")[0]
    searches = bool(_SEARCHES.intersection(parts)) or "search" in first.lower()
    if not searches or _ELSEWHERE.search(spaced):
        return 0
    if _WEB.search(spaced):
        return 3
    if _WEB.search(about) and not _ELSEWHERE.search(first):
        return 2
    return 1 if not _ELSEWHERE.search(about) and parts in (["search"], ["search", "tool"]) else 0


def _query_parameter(tool: ToolSignature) -> str | None:
    """Return the one string parameter that takes what is searched for."""
    texts = [name for name, schema in tool.properties.items() if _takes_any_text(mapping(schema))]
    if tool.required:
        only = len(tool.required) == 1 and tool.required[0] in texts
        return tool.required[0] if only else None
    named = [name for name in _QUERY_NAMES if name in texts]
    return named[0] if named else (texts[0] if len(texts) == 1 else None)


def _takes_any_text(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "string" and not schema.get("enum") and "const" not in schema


def search_call(turn: Turn[Item], tools: Sequence[ToolSchema]) -> llm.ChoiceDelta | None:
    """Return the search for what the person last said.

    None means that there is no search tool, or that this turn has searched already.
    """
    if (name := search_tool(tools)) is None:
        return None
    if turn.words is None or any(call.name == name for call in turn.calls):
        return None
    schema = next(tool for tool in tools if tool["function"]["name"] == name)
    arguments = search_arguments(schema, turn.request)
    return None if arguments is None else call_delta(name, json.dumps(arguments))


def searching_if_hedged(
    chunks: AsyncIterable[llm.ChatChunk], search: llm.ChoiceDelta
) -> AsyncGenerator[llm.ChatChunk]:
    """Yield `chunks`, or `search` in place of a reply that hedges and calls nothing."""

    async def searching(chunk_id: str) -> AsyncGenerator[llm.ChatChunk]:
        logger.info("the reply said that it cannot know; searching once")
        yield llm.ChatChunk(id=chunk_id, delta=search)

    return replaced_if(chunks, hedges, searching)


async def replaced_if(
    chunks: AsyncIterable[llm.ChatChunk],
    is_meant: Callable[[str], bool],
    instead: Callable[[str], AsyncIterable[llm.ChatChunk]],
) -> AsyncGenerator[llm.ChatChunk]:
    """Yield `chunks`, or what `instead` gives for their id, where the reply makes no call and its
    beginning is what `is_meant` says.

    Such a reply is held back to its end, since the model's own call behind it ("Let me check.") is
    better. Of a reply that comes in one piece all is read.
    """
    held: list[llm.ChatChunk] = []
    text, open_, meant = "", True, False
    try:
        async for chunk in chunks:
            if not open_:
                yield chunk
                continue
            held.append(chunk)
            delta = chunk.delta
            text += (delta and delta.content) or ""
            called = bool(delta and (delta.tool_calls or delta.extra))
            if not called and not meant and _has_begun(text):
                meant = is_meant(text)
                open_ = meant
            if called or not open_:
                open_ = False
                for one in held:
                    yield one
    except Exception:
        for one in held if open_ and not meant else ():
            yield one  # what was said before the server died is heard
        raise
    if not open_:
        return
    if not (meant or (text and is_meant(text))):
        for one in held:
            yield one
        return
    async for chunk in instead(held[0].id):
        yield chunk


def _has_begun(text: str) -> bool:
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    return len(text) >= HELD_CHARS or any(end >= OPENING_CHARS for end in ends) or len(ends) > 1
