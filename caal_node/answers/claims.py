"""What no call of the turn covers: a claim of its answer, or a part of its request.

A claim's call takes its place, or an honest word. The model is asked once more in a turn at most,
and has to answer with a call. Only a call of a tool that fits the person's request and the claim
goes out; it runs like any other. That it was asked for so is written in the call's id, so that
whoever reads the conversation later needs no other memory.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, Self, cast

from livekit.agents import llm
from livekit.agents.utils import shortuuid

from caal_node.core.events import ClaimBecame, ClaimCorrected, Events
from caal_node.core.items import AssistantItem, CallItem, Item, UserItem
from caal_node.core.prompt_files import fill, read, sentence
from caal_node.core.tool_spec import ToolSpec, tool_reads
from caal_node.grounding.call_grounds import unique_words
from caal_node.grounding.claim_check import CLAUSE_CHARS, NotDone, Say, claim_of, claims
from caal_node.grounding.ledger import CallState, Ledger, LedgerEntry, ledger_of
from caal_node.language.requests import intent_of
from caal_node.models.backends.base import ServerCall, ServerResult
from caal_node.models.question import Question
from caal_node.models.strategies.tool_relevance import fits, parts_with_tools, relevance_of
from caal_node.policy.heard_words import COMMON, QUESTIONS, stems, words

# The requests to the model for one answer.


class AskedModel(Protocol):
    """The model of a turn."""

    @property
    def natively(self) -> bool:
        """Whether it is asked with its server's own tool calls by now."""
        ...

    def ask(self, question: Question) -> AbstractAsyncContextManager[AsyncIterable[llm.ChatChunk]]:
        """Send `question` once the context is entered; leaving it ends the request."""
        ...


class Requests:
    """Asks one question after the other, as many servers answer one request at a time."""

    def __init__(self, model: AskedModel) -> None:
        self.model: Final = model
        self._open: Final = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._open.aclose()

    async def reply(self, question: Question) -> AsyncIterable[llm.ChatChunk]:
        """Ask `question`, and return the reply; the request before is ended."""
        await self._open.aclose()
        return await self._open.enter_async_context(self.model.ask(question))


logger = logging.getLogger("caal_node")

CLAIMED: Final = "claimed_"
"""How the id of a call begins that took the place of a claim."""
FITS: Final = 0.75
"""Words that a tool shares with the request and the claim (`unique_words`) from which it fits."""
LEDGER_ITEMS: Final = 160
"""Items of a conversation in which calls are looked for, the newest: a turn has 32 calls."""
_FAILED: Final[dict[CallState, str]] = {"failed": "tool_failed", "refused": "tool_refused"}


def question_again(question: Question, claim: str, *, native: bool) -> Question:
    """Return `question` with the claim and what is wrong with it at its end, for a call alone.

    With `native` the model is told so in words, too: not every server can be told to hold it to a
    call. Where calls are asked for by text, the prompt says it by itself.
    """
    told = (UserItem(read("claim_not_covered.md")),) if native else ()
    items = (*question.items, AssistantItem(claim.strip()), *told)
    return replace(question, items=items, must_call=True, stream=False, once=True)


class ClaimCorrection:
    """Corrects the claims of one reply.

    Args:
        ledger: What was done in the turn, with the calls of this reply so far.
        question: What was asked, with the tools that the model may call.
        requests: They are used once; None where nothing may be asked.
        events: Each correction is one.
        specs: The tools by the model's names.
    """

    def __init__(
        self,
        ledger: Callable[[], Ledger],
        question: Question,
        requests: Requests | None,
        events: Events,
        specs: Mapping[str, ToolSpec],
    ) -> None:
        self.over = False
        """Whether the reply ends with what was put in a claim's place."""
        self.owed = ""
        """What is said at the reply's end if nothing else was."""
        self._ledger: Final = ledger
        self._question: Final = question
        self._requests = requests
        self._events: Final = events
        self._specs: Final = specs
        self._apologised = False

    async def correct(self, claim: str, *, spoke: bool) -> AsyncGenerator[llm.ChatChunk]:
        """Give the call that the claim stands for, else a sentence; nothing where neither is
        wanted: of what nobody has asked for, it need not be said that it was not done."""
        ledger = self._ledger()
        calls = await self._calls(claim, ledger)
        if calls:
            self._note(claim, "call")
            for call in calls:
                yield llm.ChatChunk(
                    id=call.call_id, delta=llm.ChoiceDelta(role="assistant", tool_calls=[call])
                )
            return
        kind = claim_of(claim)
        if kind == "looked" and not self.over:
            self._note(claim, "nothing")  # "Let me check.", and what follows may be right
            self.owed = sentence("claim_not_looked_up")
            return
        # What follows an invented claim is told of it; where calls ran, there is more to say.
        self.over |= not any(entry.state == "done" for entry in ledger.turn)
        if self._apologised or (spoke and intent_of(ledger.request) == "none"):
            self._note(claim, "nothing")
            return
        self._apologised = True
        self._note(claim, "sentence")
        words = _honest(claim, ledger)
        content = words if self.over else f"{words} "
        yield llm.ChatChunk(
            id=shortuuid("caal_"), delta=llm.ChoiceDelta(role="assistant", content=content)
        )

    def drop(self, claim: str) -> None:
        """Take note of a claim that is not heard, as the model's own calls follow it."""
        self._note(claim, "nothing")

    async def _calls(self, claim: str, ledger: Ledger) -> list[llm.FunctionToolCall]:
        """Ask for the call of a claim. There is none where it cannot be had, for any reason."""
        asked = any(entry.call_id.startswith(CLAIMED) for entry in ledger.turn)
        requests = self._requests
        if requests is None or asked:
            return []
        if not (fitting := self._fitting(claim, ledger)):
            return []
        self._requests = None
        self.over = True  # the first reply ends where the model is asked again
        calls: list[llm.FunctionToolCall] = []
        try:
            again = question_again(self._question, claim, native=requests.model.natively)
            async for chunk in await requests.reply(again):
                calls += (chunk.delta and chunk.delta.tool_calls) or []
        except Exception as error:  # the turn goes on without the call, and says so
            logger.warning("the call of a claim could not be asked for: %s", type(error).__name__)
        return [
            call.model_copy(update={"call_id": f"{CLAIMED}{call.call_id}"})
            for call in calls
            if call.name in fitting
        ]

    def _fitting(self, claim: str, ledger: Ledger) -> frozenset[str]:
        """Return the tools that the person's request asks for and that could do what is claimed.

        One whose call had no success in this turn is not tried again.
        """
        tried = {entry.tool for entry in ledger.turn if entry.state not in ("done", "pending")}
        intent, kind = intent_of(ledger.request), claim_of(claim)
        only_reads = kind == "looked" or intent == "tell"
        if only_reads and kind not in ("looked", "state"):
            return frozenset()  # a question changes nothing
        tools = self._question.tools
        told = relevance_of(tools).scores(claim)
        found = set[str]()
        for name, asked in fits(self._question).items():
            spec = self._specs.get(name)
            reads = tool_reads(name, "write" if spec is None else spec.effect)
            shared = unique_words(asked + told[name], len(tools.names))
            if asked and shared >= FITS and reads == only_reads and name not in tried:
                found.add(name)
        return frozenset(found)

    def _note(self, claim: str, became: ClaimBecame) -> None:
        logger.info("the reply claimed what no call has done; it became: %s", became)
        self._events.emit(ClaimCorrected(claim.strip(), became))


def _honest(claim: str, ledger: Ledger) -> str:
    """Return the sentence that is true in place of `claim`."""
    missed = [entry for entry in ledger.turn if entry.state in ("dry_run", "failed", "refused")]
    if missed and any(entry.state == "done" and not entry.reads for entry in ledger.turn):
        late = sentence("write_timeout")  # it may be done by now, so it is not denied
        is_late = any(_told(entry.result) == late for entry in missed)
        return late if is_late else sentence("claim_not_all_done")
    if missed and missed[-1].state == "dry_run":
        return sentence("would_have").replace("{tool}", missed[-1].tool.replace("_", " "))
    if missed:
        return _told(missed[-1].result) or sentence(_FAILED[missed[-1].state])
    kind = claim_of(claim)
    if kind == "looked" or (kind == "state" and intent_of(ledger.request) != "act"):
        return sentence("claim_not_looked_up")
    return sentence("claim_not_done" if kind in ("done", "state") else "claim_not_possible")


def _told(result: str) -> str:
    """Return what a person is to hear of a failed call, as its result says it; else ""."""
    try:
        read: object = json.loads(result) if result.startswith("{") else None
    except (ValueError, RecursionError):
        return ""
    said: object = cast("dict[str, object]", read).get("say") if isinstance(read, dict) else None
    return said if isinstance(said, str) and len(said) <= CLAUSE_CHARS else ""


class ReplyLedger:
    """What was done in a turn, with the calls that the reply under way makes. It is read when a
    clause is first judged: most of what it reads is needed for a claim alone."""

    def __init__(self, items: Sequence[Item], specs: Mapping[str, ToolSpec]) -> None:
        self._items: Final = items[-LEDGER_ITEMS:]
        self._specs: Final = specs
        self._read: Ledger | None = None

    def __call__(self) -> Ledger:
        if self._read is None:
            self._read = ledger_of(self._items, self._specs)
        return self._read

    def note_call(self, call: llm.FunctionToolCall) -> None:
        """Add a call that this reply has made, and that has no result yet."""
        self._add(self._entry(call.call_id, call.name, call.arguments, "pending"))

    def note_server_run(self, run: ServerCall | ServerResult) -> None:
        """Add a call that the model's server runs by itself, or what became of it."""
        if isinstance(run, ServerCall):
            entry = self._entry(run.id, run.name, run.arguments, "pending")
            self._add(replace(entry, by_server=True))
            return
        state: CallState = "failed" if run.failed else "done"
        ledger = self()
        turn = tuple(
            replace(entry, state=state) if entry.call_id == run.id else entry
            for entry in ledger.turn
        )
        self._read = replace(ledger, turn=turn)

    def _add(self, entry: LedgerEntry) -> None:
        ledger = self()
        self._read = replace(ledger, turn=(*ledger.turn, entry))

    def _entry(self, call_id: str, tool: str, arguments: str, state: CallState) -> LedgerEntry:
        call = CallItem(call_id, tool, arguments)
        (entry,) = ledger_of([UserItem(""), call], self._specs).turn
        return replace(entry, state=state)


# What of a request for several things no call of its turn was for: "lock the front door and the
# garage", with one call for the front door.
#
# Only what is certain is found. A part counts where a tool that writes surely fits it, and where
# none of its own words stands in any call, result or answer. A call that may be for several things
# at once ("both doors", a list, no arguments) is taken for all of them.

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
    told = [_stems_of(call) for call in calls]
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


def _stems_of(call: LedgerEntry) -> frozenset[str] | None:
    """Return the stems of a call and its result; None where it may be for anything."""
    values = [value for value in call.arguments.values() if value not in (None, "")]
    if not values or any(map(_is_for_several, values)) or len(call.result) > RESULT_CHARS:
        return None
    return stems(f"{call.tool} {json.dumps(values, ensure_ascii=False)} {call.result}")


def _is_for_several(value: Any) -> bool:
    if isinstance(value, str):
        return any(mark in f" {value.lower()} " for mark in _SEVERAL)
    return isinstance(value, list | dict)
