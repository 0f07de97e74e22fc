"""What of a request for several things no call of its turn was for: "lock the front door and the
garage", with one call for the front door.

Only what is certain is found. A part counts where a tool that writes surely fits it, and where none
of its own words stands in any call, result or answer. A call that may be for several things at once
("both doors", a list, no arguments) is taken for all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from livekit.agents import llm

from caal_node.core.items import AssistantItem, UserItem
from caal_node.core.prompt_files import fill
from caal_node.core.tool_spec import ToolSpec, tool_reads
from caal_node.grounding.claim_check import claims
from caal_node.grounding.ledger import Ledger, LedgerEntry
from caal_node.grounding.spoken_check import NotDone, Say
from caal_node.language.requests import intent_of
from caal_node.models.question import Question
from caal_node.models.strategies.tool_relevance import parts_with_tools
from caal_node.policy.heard_words import COMMON, QUESTIONS, stems, words

NAME_WORDS: Final = 4
"""Words of a part that only names one more thing, its article among them."""
LEFT: Final = "left_"
"""How the id of a call begins that was asked for since a part of the request was left."""
RESULT_CHARS: Final = 4_000
"""Characters of a result in which a part's words are looked for; a longer one may have any."""
_DEPENDS: Final = re.compile(
    r"\b(?:if|unless|whether|once|when|whenever|while|until|till|before|after|as soon as|in case"
    r"|tell me|not|no|never|without|except|but|instead"
    r"|wenn|falls|sobald|bevor|nachdem|bis|nicht|kein\w*|nie|ohne|außer|aber|sondern)\b|n['’]t\b",
    re.IGNORECASE,
)
"""A request with a condition, a negation or an exception may mean less than all its parts."""
_DEFINITE: Final = frozenset(("the", "my", "our", "der", "die", "das", "den"))
_SEVERAL: Final = (",", " and ", " & ", " all ", " both ", " every")


@dataclass(frozen=True, slots=True)
class LeftPart:
    """A part of a request."""

    text: str
    own: frozenset[str]
    """Stems of the words that no other part has."""
    tools: frozenset[str]
    """The tools that surely fit it."""

    def is_for(self, call: llm.FunctionToolCall) -> bool:
        """Say whether a call is for this part, and not for what was done once more."""
        told = stems(f"{call.name} {call.arguments}")
        return call.name in self.tools and not self.own.isdisjoint(told)


class ClaimedParts:
    """Holds the clauses of an answer that claim a part of the request which no call was for.

    Args:
        question: What was asked.
        ledger: What was done in the turn, with the calls of the same reply so far.
        specs: The tools by the model's names.
    """

    def __init__(
        self,
        question: Question,
        ledger: Callable[[], Ledger],
        specs: Mapping[str, ToolSpec],
    ) -> None:
        self._question: Final = question
        self._ledger: Final = ledger
        self._specs: Final = specs

    def check(self, clause: str) -> Say | NotDone:
        """Return the clause, or that it claims such a part."""
        if clause.rstrip().endswith("?") or not claims(clause):
            return Say(clause)
        part = left_part(self._question, self._ledger().turn, "", self._specs)
        if part is None or part.own.isdisjoint(stems(clause)):
            return Say(clause)
        return NotDone(clause)


def left_part(
    question: Question,
    calls: Sequence[LedgerEntry],
    answer: str,
    specs: Mapping[str, ToolSpec],
) -> LeftPart | None:
    """Return the first part of the person's newest words that no call was for, if there is one.

    `calls` are those of the turn, and `answer` is what the model says behind them.
    """
    if not calls or any(call.state != "done" for call in calls) or "?" in answer:
        return None
    if intent_of(question.request) != "act" or _DEPENDS.search(question.request):
        return None
    parts = _with_things(parts_with_tools(question), calls)
    told = [_told(call) for call in calls]
    if len(parts) < 2 or any(one is None for one in told):
        return None
    known = stems(answer).union(*(one for one in told if one is not None))
    said = [stems(part) - COMMON for part, _ in parts]
    for at, (part, fitting) in enumerate(parts):
        tools = frozenset(tool for tool in fitting if not _reads(tool, specs))
        others = frozenset[str]().union(*said[:at], *said[at + 1 :])
        own = said[at] - others
        if not tools or _asks(part) or all(word.isdecimal() for word in own):
            continue
        wanted = sum(not tools.isdisjoint(other) for _, other in parts)
        if own.isdisjoint(known) and sum(call.tool in tools for call in calls) < wanted:
            return LeftPart(part.strip(" ,.;!"), own, tools)
    return None


def question_for(part: LeftPart, question: Question, answer: str) -> Question:
    """Return `question` with the `answer` and what it leaves at its end, for a call alone."""
    told = UserItem(fill("part_left.md", part=part.text))
    spoken = (AssistantItem(answer.strip()),) if answer.strip() else ()
    items = (*question.items, *spoken, told)
    return replace(question, items=items, must_call=True, stream=False, once=True)


def _reads(tool: str, specs: Mapping[str, ToolSpec]) -> bool:
    spec = specs.get(tool)
    return tool_reads(tool, "write" if spec is None else spec.effect)


def _is_one_more(part: str) -> bool:
    """Say whether a part names a thing and nothing to do with it: "the gate", "in the bath"."""
    said = words(part)
    is_short = 1 < len(said) <= NAME_WORDS and QUESTIONS.isdisjoint(said)
    return is_short and not _DEFINITE.isdisjoint(said[:2])


def _with_things(
    parts: Sequence[tuple[str, list[str]]], calls: Sequence[LedgerEntry]
) -> list[tuple[str, list[str]]]:
    """Return `parts` with one that only names a thing as one for the tools of the part before."""
    found: list[tuple[str, list[str]]] = []
    for part, fitting in parts:
        tools = _made_for(found[-1], calls) if found and not fitting and _is_one_more(part) else []
        found.append((part, fitting or tools))
    return found


def _made_for(part: tuple[str, list[str]], calls: Sequence[LedgerEntry]) -> list[str]:
    """Return the tools of a part that were called with a thing that it names."""
    said, tools = part
    texts = [(call.tool, value) for call in calls for value in call.arguments.values()]
    own = stems(said) - COMMON
    return [
        tool
        for tool, value in texts
        if tool in tools and isinstance(value, str) and value and stems(value) <= own
    ]


def _asks(part: str) -> bool:
    return not QUESTIONS.isdisjoint(words(part)[:1])


def _told(call: LedgerEntry) -> frozenset[str] | None:
    """Return the stems of a call and its result; None where it may be for anything."""
    values = [value for value in call.arguments.values() if value not in (None, "")]
    if not values or any(map(_is_for_several, values)) or len(call.result) > RESULT_CHARS:
        return None
    return stems(f"{call.tool} {json.dumps(values, ensure_ascii=False)} {call.result}")


def _is_for_several(value: Any) -> bool:
    if isinstance(value, str):
        return any(mark in f" {value.lower()} " for mark in _SEVERAL)
    return isinstance(value, list | dict)
