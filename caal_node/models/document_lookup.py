"""Looks a question up in the owner's documents before a reply is heard, and names them behind it.

A tool says by its terms (`ToolSpec.answers`) when it is called in place of a reply. "first": the
answer to every question comes from it. "unsure": only where the reply would be a guess, which is
one that says so, or one to a question that has to be looked up and that nothing has answered yet.
The reply is held back until it is known. A call of the model's own goes before, in either case.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from livekit.agents import llm

from caal_node.core.items import Item
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import ToolSchema, ToolSpec
from caal_node.core.turn import Turn
from caal_node.grounding.hedges import knows_nothing, source_texts, unnamed_source
from caal_node.language.requests import intent_of, request_odds, share
from caal_node.models.chat_context import call_delta
from caal_node.models.hedge_search import search_arguments
from caal_node.policy.heard_words import words as words_of

logger = logging.getLogger("caal_node")

HELD_CHARS: Final = 400
"""Characters of a reply that are held back: some 25 seconds of speech, of which a guess shows."""
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
    spec_of: Callable[[str], ToolSpec | None],
) -> DocumentLookup | None:
    """Return what the person's newest words are looked up with.

    None: no tool answers from documents, nothing is asked, or something was called in this turn.
    """
    found = _answering(tools, spec_of)
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
    specs = [spec_of(tool["function"]["name"]) for tool in tools]
    alone = all(each is not None and each.source == spec.source for each in specs)
    return DocumentLookup(
        call_delta(schema["function"]["name"], json.dumps(arguments, ensure_ascii=False)),
        every_reply=every,
        at_once=spec.answers == "first" and alone,
    )


async def looking_up(
    chunks: AsyncIterable[llm.ChatChunk], lookup: DocumentLookup
) -> AsyncGenerator[llm.ChatChunk]:
    """Yield a reply's chunks as they are if it calls something, or is no guess; else the lookup."""
    held: list[llm.ChatChunk] = []
    text, open_ = "", False
    async for chunk in chunks:
        delta = chunk.delta
        if open_:
            yield chunk
            continue
        held.append(chunk)
        text += (delta and delta.content) or ""
        open_ = bool(delta and (delta.tool_calls or delta.extra))
        if not open_ and len(text) >= HELD_CHARS:
            if lookup.every_reply or knows_nothing(text):
                break
            open_ = True
        if open_:
            for one in held:
                yield one
    if open_:
        return
    if not text.strip() or not (lookup.every_reply or knows_nothing(text)):
        for one in held:
            yield one
        return
    logger.info("the answer is looked up in the documents")
    yield llm.ChatChunk(id=held[0].id, delta=lookup.call)


async def naming_source(
    chunks: AsyncIterable[llm.ChatChunk],
    turn: Turn[Item],
    spec_of: Callable[[str], ToolSpec | None],
) -> AsyncGenerator[llm.ChatChunk]:
    """Yield a reply's chunks, and behind one from documents a sentence with its source.

    Nothing is added where the reply names it, calls something, or comes from no document.
    """
    texts = [
        text
        for result in reversed(turn.results)
        if not result.is_error and (spec := spec_of(result.name)) is not None and spec.answers
        for text in source_texts(result.output)
    ]
    said, called, last = "", False, ""
    async for chunk in chunks:
        if chunk.delta and texts:
            said += chunk.delta.content or ""
            called |= bool(chunk.delta.tool_calls)
            last = chunk.id
        yield chunk
    if said.strip() and not called and (source := unnamed_source(said, texts)) is not None:
        words = sentence("named_source").replace("{source}", source)
        yield llm.ChatChunk(id=last, delta=llm.ChoiceDelta(role="assistant", content=f" {words}"))


def _answering(
    tools: Sequence[ToolSchema], spec_of: Callable[[str], ToolSpec | None]
) -> tuple[ToolSchema, ToolSpec] | None:
    for schema in tools:
        spec = spec_of(schema["function"]["name"])
        if spec is not None and spec.answers:
            return schema, spec
    return None
