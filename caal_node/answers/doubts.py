"""Replies that are not believed, and what takes their place: a call, a sentence, or another reply.

Each doubt says when enough of a reply is there to know, mostly at the end of its first sentence.
"""

from __future__ import annotations

import json
import re
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, cast

from livekit.agents import llm

from caal_node.answers.search_tools import DocumentLookup
from caal_node.core.items import UserItem
from caal_node.core.prompt_files import read, sentence
from caal_node.grounding.call_grounds import unique_words
from caal_node.grounding.hedges import denies_access, hedges, knows_nothing
from caal_node.grounding.ledger import Ledger, is_unrelated, kind_of, looks_up
from caal_node.models.question import Question
from caal_node.models.strategies.tool_relevance import fits
from caal_node.policy.heard_words import COMMON, stems

OPENING_CHARS: Final = 40
"""Characters. A shorter first sentence ("That's a great question!") is no answer yet."""
HELD_CHARS: Final = 400
"""Characters held back at most, if no sentence ends: some 25 seconds of speech."""
_SENTENCE_END: Final = re.compile(r"[.!?…][\"')\]]*\s|\n")
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


class Doubt(ABC):
    """A reason for which a reply without a call may be wrong.

    Args:
        why: What the log says of a reply for which it holds.
        instead: What takes that reply's place: a call or words, or what the model is asked again.
    """

    at_once = False
    """Whether the reply ends where it is seen. Otherwise it is read to its end, since the model's
    own call behind it ("Let me check.") is better."""

    def __init__(self, why: str, instead: llm.ChoiceDelta | Question) -> None:
        self.why: Final = why
        self.instead = instead

    def is_due(self, text: str) -> bool:
        """Say whether `text`, with which a reply begins, is enough to judge it by."""
        ends = [match.end() for match in _SENTENCE_END.finditer(text)]
        return len(text) >= HELD_CHARS or any(end >= OPENING_CHARS for end in ends) or len(ends) > 1

    @abstractmethod
    def holds(self, text: str) -> bool:
        """Say whether the reply that begins in this way is wrong."""

    def doubts_again(self) -> tuple[Doubt, ...]:
        """Return what may be wrong with the reply that takes the first one's place, besides."""
        return ()


class Unread(Doubt):
    """The owner's documents have not been asked, and the reply may be a guess."""

    at_once = True

    def __init__(self, lookup: DocumentLookup) -> None:
        super().__init__("the answer is looked up in the documents", lookup.call)
        self._every_reply: Final = lookup.every_reply

    def is_due(self, text: str) -> bool:
        return len(text) >= HELD_CHARS

    def holds(self, text: str) -> bool:
        return self._every_reply or knows_nothing(text)


class Refused(Doubt):
    """No tool can do what is asked, it says, although one surely fits the request.

    What is denied for a reason of its own ("I'm not allowed to unlock the door") is never doubted:
    such a reason may be the owner's. What a refusal sounds like is in `prompts/refusals.toml`.
    """

    def __init__(self, question: Question) -> None:
        super().__init__("the reply refused what a tool is for; asking once more", question)
        self._question: Final = question

    def holds(self, text: str) -> bool:
        refuses = is_refusal(text) or cannot_at_all(text, self._question.request)
        tool = fitting_tool(self._question) if refuses else None
        self.instead = replace(self._question, tool_named=tool)
        return tool is not None


class Hedged(Doubt):
    """It says that it cannot know, and nothing has been searched for."""

    def __init__(self, search: llm.ChoiceDelta) -> None:
        super().__init__("the reply said that it cannot know; searching once", search)

    def holds(self, text: str) -> bool:
        return hedges(text)


class Denied(Doubt):
    """It denies access to what a result of its turn tells.

    "I don't have real-time data", behind a forecast that was just found. Where the second reply
    denies it as well, `last` takes its place.
    """

    def __init__(self, instead: llm.ChoiceDelta | Question, last: llm.ChoiceDelta) -> None:
        super().__init__("the reply denied what a result tells", instead)
        self._last: Final = last

    def holds(self, text: str) -> bool:
        return denies_access(text)

    def doubts_again(self) -> tuple[Doubt, ...]:
        return (Denied(self._last, self._last),) if isinstance(self.instead, Question) else ()


# What a result tells, said in its own words.

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
