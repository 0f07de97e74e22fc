"""What takes the place of a claim that no call of the turn covers: its call, or an honest word.

The model is asked once more in a turn at most, and has to answer with a call. Only a call of a tool
that fits the person's request and the claim goes out; it runs like any other. That it was asked for
so is written in the call's id, so that whoever reads the conversation later needs no other memory.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from typing import Final, Protocol, Self, cast

from livekit.agents import llm
from livekit.agents.utils import shortuuid

from caal_node.core.events import ClaimBecame, ClaimCorrected, Events
from caal_node.core.items import AssistantItem, CallItem, Item, UserItem
from caal_node.core.prompt_files import read, sentence
from caal_node.core.tool_spec import ToolSpec, tool_reads
from caal_node.grounding.call_grounds import unique_words
from caal_node.grounding.claim_check import CLAUSE_CHARS, claim_of
from caal_node.grounding.ledger import CallState, Ledger, LedgerEntry, ledger_of
from caal_node.language.requests import intent_of
from caal_node.models.backends.base import ServerCall, ServerResult
from caal_node.models.question import Question
from caal_node.models.strategies.tool_relevance import fits, relevance_of

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
