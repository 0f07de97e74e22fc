"""The tool that looks something up, and the call of it that takes a reply's place.

The web's search is known by its name and description, the owner's documents by `ToolSpec.answers`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from livekit.agents import llm

from caal_node.core.items import Item, Turn
from caal_node.core.tool_spec import ToolSchema, ToolSpec
from caal_node.grounding.ledger import OWN_THINGS
from caal_node.language.requests import intent_of, request_odds, share
from caal_node.models.chat_context import call_delta
from caal_node.policy.heard_words import words as words_of
from caal_node.reply_parser.tool_index import ToolIndex, ToolSignature, mapping, signature_of

QUESTION_CHARS: Final = 400
"""How much of the question is searched for: search services take about as much."""

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


# Questions that the owner's documents answer.
#
# A tool says by its terms (`ToolSpec.answers`) when it is called in place of a reply. "first": the
# answer to every question comes from it. "unsure": only where the reply would be a guess, which is
# one that says so, or one to a question that has to be looked up and that nothing has answered yet.

_PRONOUNS: Final = frozenset(
    """it its that those these this they them their he him his she her one there ihn ihm ihnen dies
    damit dafür davon dort""".split()  # noqa: SIM905 - a list of words reads better as words
)
_OWN: Final = frozenset(
    """my mine our ours mein meine meiner meinem meinen unser unsere unserer unserem unseren
    """.split()  # noqa: SIM905 - as above
)
_MAY_I: Final = re.compile(
    r"\W*(?:may|can|could|must|should|darf|dürfen|kann|können|muss|müssen) (?:i|we|ich|wir|man)\b",
    re.I,
)
BEFORE_CHARS: Final = 200
"""Characters of an earlier question that are searched for with one that means it."""
ASKED: Final = 0.5
"""Odds from which words ask for what is in documents, and from which it has to be looked up."""


@dataclass(frozen=True, slots=True)
class DocumentLookup:
    """A call that takes the place of a reply."""

    call: llm.ChoiceDelta
    every_reply: bool
    """Whether it takes the place of any reply, and not only of one that says that it is a guess."""
    at_once: bool
    """Whether the model need not be asked at all, as no other tool could be meant."""


def asks(words: str) -> bool:
    """Say whether a person wants to know something that documents may tell."""
    odds = request_odds(words)
    if share(odds, ("lookup", "knowledge")) >= ASKED:
        return True
    if _MAY_I.match(words):
        return True
    asks_back = refers_back(words) or words.rstrip("\"'”’ )").endswith(("?", "？"))
    return asks_back and intent_of(words) == "tell"


def refers_back(words: str) -> bool:
    """Say whether a person's words may mean something that was said before: "and who pays it?"."""
    return not _PRONOUNS.isdisjoint(words_of(words))


def document_lookup(
    turn: Turn[Item],
    tools: Sequence[ToolSchema],
    specs: Mapping[str, ToolSpec],
) -> DocumentLookup | None:
    """Return what the person's newest words are looked up with.

    None: no tool answers from documents, nothing is asked, or something was called in this turn.
    """
    found = _answering(tools, specs)
    words = turn.request
    if found is None or not words or turn.calls:
        return None
    schema, spec = found
    if not asks(words):
        return None
    before = next(turn.earlier_words(), None)
    asked = words
    if before is not None and refers_back(words):
        asked = f"{before.text[:BEFORE_CHARS]} {words}"
    arguments = search_arguments(schema, asked)
    if arguments is None:
        return None
    own = not _OWN.isdisjoint(words_of(words))
    every = spec.answers == "first" or own or request_odds(words)["lookup"] >= ASKED
    others = [specs.get(tool["function"]["name"]) for tool in tools]
    alone = all(other is not None and other.source == spec.source for other in others)
    return DocumentLookup(
        call_delta(schema["function"]["name"], json.dumps(arguments, ensure_ascii=False)),
        every_reply=every,
        at_once=spec.answers == "first" and alone,
    )


def _answering(
    tools: Sequence[ToolSchema], specs: Mapping[str, ToolSpec]
) -> tuple[ToolSchema, ToolSpec] | None:
    for schema in tools:
        spec = specs.get(schema["function"]["name"])
        if spec is not None and spec.answers:
            return schema, spec
    return None
