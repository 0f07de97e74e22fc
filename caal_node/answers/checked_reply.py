"""A model's reply as people may hear it: doubted at its beginning, and checked clause by clause.

In this order: a reply that is not believed is replaced (`doubts`); what it claims to have done and
what it tells are checked (`ClaimCheck`, `ClaimedParts`, `UnreadStates`, `fact_check`); a source
that it does not name is named; a part of the request that nothing was done for is asked for once.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from livekit.agents import llm
from livekit.agents.utils import shortuuid

from caal_node.answers.claims import (
    LEFT,
    AskedModel,
    ClaimCorrection,
    ClaimedParts,
    ReplyLedger,
    Requests,
    left_part,
    question_for,
)
from caal_node.answers.doubts import (
    Denied,
    Doubt,
    Hedged,
    Refused,
    Unread,
    found_result,
    question_with_result,
    said_result,
)
from caal_node.answers.search_tools import DocumentLookup, document_lookup, search_call
from caal_node.config.setting_tables import Checks
from caal_node.core.events import Events, FactCorrected
from caal_node.core.items import Item, Turn
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import ToolSchema, ToolSpec
from caal_node.grounding.claim_check import ClaimCheck, NotDone, Say, SpokenCheck, UnreadStates
from caal_node.grounding.fact_check import fact_check, told_in
from caal_node.grounding.hedges import SourceText, source_texts, unnamed_source
from caal_node.models.llm import SERVER_RUN
from caal_node.models.question import Question

logger = logging.getLogger("caal_node")

_SORRY: Final = (
    *("claim_not_done", "claim_not_all_done", "claim_not_possible", "claim_not_looked_up"),
)
"""Sentences that say of an answer that it is not all done."""
WHOLE_CLAUSE_CHARS: Final = 400
"""Characters of one clause, some 25 seconds of speech: a longer one is cut there, as nobody waits
longer for a reply to begin."""
_JOINERS: Final = ("and", "but", "so", "then", "while", "although", "though", "however")
_AHEAD_CHARS: Final = 16
"""Characters behind a comma by which the word that follows it is known."""
_END: Final = re.compile(
    r"[.!?…;:][\"')\]”’*_]*\s|\n|\s[-–—]\s|—"
    rf"|,\s(?=(?:{'|'.join(_JOINERS)})\s)"
)


class CheckedReply:
    """The reply to one question.

    Args:
        question: What is asked.
        history: The whole conversation, with what the question left out.
        checks: Those that are on.
        runs_here: Whether every call of the turn is seen here, as no server runs any by itself.
        model: It is asked, for a claim's call a second time.
        specs: The tools by the model's names.
        events: Each claim and each fact that was corrected is one.
        web_search: The tools among which the web's is looked for, where a reply cannot know.
    """

    def __init__(
        self,
        question: Question,
        history: Sequence[Item],
        *,
        checks: Checks,
        runs_here: bool,
        model: AskedModel,
        specs: Mapping[str, ToolSpec],
        events: Events,
        web_search: Sequence[ToolSchema],
    ) -> None:
        self._question: Final = question
        self._turn: Final = Turn(history)
        self._checks: Final = checks
        self._runs_here: Final = runs_here
        self._may_ask: Final = question.may_call and not question.must_call
        self._requests: Final = Requests(model)
        self._events: Final = events
        self._specs: Final = specs
        self._web_search: Final = web_search
        self._ledger: Final = ReplyLedger(history, specs)

    async def chunks(self) -> AsyncGenerator[llm.ChatChunk]:
        """Ask, and yield what may be heard and the calls. Close it, which ends its request.

        Raises:
            Exception: what the model's LLM raises.
        """
        lookup = self._lookup()
        if lookup is not None and lookup.at_once:
            yield llm.ChatChunk(id=shortuuid("lookup_"), delta=lookup.call)
            return
        async with self._requests:
            sources, answer, called, last = self._sources(), "", False, ""
            async for chunk in self._checked(self._believed(self._question, self._doubts(lookup))):
                if delta := chunk.delta:
                    last = chunk.id
                    answer += delta.content or ""
                    called |= bool(delta.tool_calls)
                    if delta.extra and SERVER_RUN in delta.extra:
                        self._ledger.note_server_run(delta.extra[SERVER_RUN])
                yield chunk
            if called:
                return
            if answer.strip() and (source := unnamed_source(answer, sources)) is not None:
                named = " " + sentence("named_source").replace("{source}", source)
                answer += named
                yield _text(last, named)
            async for chunk in self._of_left_part(answer):
                yield chunk

    def _lookup(self) -> DocumentLookup | None:
        """Return what the owner's documents are asked in place of a reply, where it may be."""
        if not self._may_ask:
            return None
        return document_lookup(self._turn, self._question.tools.schemas, self._specs)

    def _sources(self) -> list[SourceText]:
        """Return the texts of documents that the turn's results hold, the newest first."""
        return [
            text
            for result in reversed(self._turn.results)
            if not result.is_error and (spec := self._specs.get(result.name)) and spec.answers
            for text in source_texts(result.output)
        ]

    def _doubts(self, lookup: DocumentLookup | None) -> list[Doubt]:
        """Return what may be wrong with the reply; the first that holds counts."""
        question = self._question
        doubts: list[Doubt] = [] if lookup is None else [Unread(lookup)]
        if self._may_ask and self._runs_here and self._checks.claims and question.turn.is_new:
            doubts.append(Refused(question))
        search = None
        if question.may_call and self._checks.hedges:
            search = search_call(self._turn, self._web_search)
        result = None
        if self._may_ask and self._runs_here and self._checks.facts:
            result = found_result(self._ledger())
        if result is not None:
            doubts.append(Denied(question_with_result(question), search or said_result(result)))
        elif search is not None:
            doubts.append(Hedged(search))
        return doubts

    async def _believed(
        self, question: Question, doubts: Sequence[Doubt]
    ) -> AsyncGenerator[llm.ChatChunk]:
        """Ask `question`, and yield the reply, or what takes its place where one of `doubts` holds.

        Of a reply that comes in one piece all is read.
        """
        opening, wrong = Opening(doubts), None
        try:
            async for chunk in await self._requests.reply(question):
                if opening.is_over:
                    yield chunk
                elif (wrong := opening.take(chunk)) is not None:
                    break
                elif opening.is_over:
                    for held in opening.held:
                        yield held
        except Exception:
            for held in opening.held if opening.seems_right and not opening.is_over else ():
                yield held  # what was said before the server died is heard
            raise
        if opening.is_over:
            return
        wrong = wrong or opening.at_end()
        if wrong is None:
            for held in opening.held:
                yield held
            return
        logger.info("%s", wrong.why)
        if not isinstance(wrong.instead, Question):
            yield llm.ChatChunk(id=opening.held[0].id, delta=wrong.instead)
            return
        others = [*wrong.doubts_again(), *doubts[doubts.index(wrong) + 1 :]]
        async for chunk in self._believed(wrong.instead, others):
            yield chunk

    def _checked(self, chunks: AsyncGenerator[llm.ChatChunk]) -> AsyncGenerator[llm.ChatChunk]:
        """Pass the reply on, but for what it claims to have done and no call has, and for facts
        that are not in the results."""
        question, ledger, checks = self._question, self._ledger, list[SpokenCheck]()
        if self._checks.claims:
            told = told_in([*question.turn.before, *question.turn.since])
            checks.append(ClaimCheck(ledger))
            checks.append(ClaimedParts(question, ledger, self._specs))
            checks.append(UnreadStates(ledger, question.tools.schemas, told))
        if self._checks.facts:
            checks.append(fact_check(ledger, told_in(question.conversation)))
        if not checks or not self._runs_here:
            return chunks
        requests = self._requests if self._may_ask else None
        correction = ClaimCorrection(ledger, question, requests, self._events, self._specs)
        return checked(chunks, checks, correction, ledger, self._events)

    async def _of_left_part(self, answer: str) -> AsyncGenerator[llm.ChatChunk]:
        """Give the call for a part of the request that no call was for, else say that it is left.

        The model is asked for that call once in a turn.
        """
        question, turn = self._question, self._ledger().turn
        checks = self._checks.claims and self._runs_here
        if not checks or question.must_call or any(sentence(key) in answer for key in _SORRY):
            return
        part = left_part(question, turn, answer, self._specs)
        if part is None:
            return
        calls: list[llm.FunctionToolCall] = []
        if question.may_call and not any(call.call_id.startswith(LEFT) for call in turn):
            try:
                asked = question_for(part, question, answer)
                async for chunk in await self._requests.reply(asked):
                    calls += (chunk.delta and chunk.delta.tool_calls) or []
            except Exception as error:  # the turn goes on without the call, and says so
                logger.warning("what is left could not be asked for: %s", type(error).__name__)
        for call in filter(part.is_for, calls[:1]):
            made = call.model_copy(update={"call_id": f"{LEFT}{call.call_id}"})
            yield llm.ChatChunk(id=made.call_id, delta=llm.ChoiceDelta(tool_calls=[made]))
            return
        left = " " + sentence("part_not_done").replace("{part}", part.text)
        yield _text(shortuuid("caal_"), left)


class Opening:
    """The beginning of a reply, held back as long as it may be wrong.

    Mostly that is its first sentence, which speech synthesis waits for anyway. A call of the
    model's own goes before any doubt.
    """

    def __init__(self, doubts: Sequence[Doubt]) -> None:
        self._doubts: Final = doubts
        self._undecided = list(doubts)
        self._wrong: list[Doubt] = []
        self._text = ""
        self.held: list[llm.ChatChunk] = []
        self.is_over = not doubts
        """Whether the reply is heard from here on, whatever comes."""

    @property
    def seems_right(self) -> bool:
        """Whether nothing of what was read is wrong."""
        return not self._wrong

    def take(self, chunk: llm.ChatChunk) -> Doubt | None:
        """Hold the next chunk; return a doubt that ends the reply here."""
        self.held.append(chunk)
        delta = chunk.delta
        self._text += (delta and delta.content) or ""
        if delta and (delta.tool_calls or delta.extra):
            self.is_over = True
            return None
        self._decide([doubt for doubt in self._undecided if doubt.is_due(self._text)])
        self.is_over = not self._undecided and not self._wrong
        return next((doubt for doubt in self._wrong if doubt.at_once), None)

    def at_end(self) -> Doubt | None:
        """Return what is wrong with the reply, now that it has ended without a call."""
        if self._text.strip():
            self._decide(self._undecided)
        return min(self._wrong, key=self._doubts.index, default=None)

    def _decide(self, due: Sequence[Doubt]) -> None:
        self._undecided = [doubt for doubt in self._undecided if doubt not in due]
        self._wrong += [doubt for doubt in due if doubt.holds(self._text)]


# A reply's text is held to what is known, clause by clause, on its way from the model to speech.
#
# A clause is passed on as soon as its end is there; speech synthesis waits for about as much
# anyway. A call is never waited with. A clause that claims what no call has done is held until it
# is known whether the call follows it at once ("I'll turn it off." and the call): then the promise
# is heard. Else `Corrector` says what takes its place.


class Corrector(Protocol):
    """Puts something in the place of a claim that is not covered."""

    @property
    def over(self) -> bool:
        """Whether the reply ends with what was put there."""
        ...

    @property
    def owed(self) -> str:
        """What is said at the reply's end if nothing else was."""
        ...

    def correct(self, claim: str, *, spoke: bool) -> AsyncGenerator[llm.ChatChunk]:
        """Give the calls or the words for `claim`; `spoke` says whether the reply has begun."""
        ...

    def drop(self, claim: str) -> None:
        """Take note of a claim that is not heard, as the model's own calls follow it."""
        ...


class ClauseSplitter:
    """Takes a text in pieces of any size, and gives each clause once its end is known.

    A clause ends with its sentence, its line, a semicolon, a colon or a dash, or before a comma
    that joins another clause to it ("..., but the door is open"). Nothing is added, lost or
    changed: the clauses of a text, joined, are that text, and they are the same however it was cut
    into pieces.
    """

    def __init__(self) -> None:
        self._held = ""

    @property
    def held(self) -> str:
        """The beginning of a clause whose end is not known yet."""
        return self._held

    def feed(self, text: str) -> list[str]:
        """Return the clauses that `text` ends, each with the white space behind it."""
        self._held += text
        clauses: list[str] = []
        at = 0
        while (end := self._end(at)) is not None:
            clauses.append(self._held[at:end])
            at = end
        self._held = self._held[at:]
        return clauses

    def finish(self) -> str:
        """Return what is left, which may be nothing, and begin anew."""
        rest, self._held = self._held, ""
        return rest

    def _end(self, at: int) -> int | None:
        """Return where the clause that begins at `at` ends; None if that is not known yet."""
        most = at + WHOLE_CLAUSE_CHARS
        end = _END.search(self._held, at, most + _AHEAD_CHARS)
        if end is not None and end.end() <= most:
            return end.end()
        if len(self._held) < most + _AHEAD_CHARS:
            return None
        space = self._held.rfind(" ", at, most)
        return space + 1 if space > at else most


async def checked(
    chunks: AsyncIterable[llm.ChatChunk],
    checks: Sequence[SpokenCheck],
    corrector: Corrector,
    ledger: ReplyLedger,
    events: Events,
) -> AsyncGenerator[llm.ChatChunk]:
    """Yield `chunks` with the text that the checks let through.

    `ledger` is told of each call before the clauses in front of it are judged again; each clause
    that is said otherwise is an event.
    """
    clauses, reply = ClauseSplitter(), _SpokenReply(checks, corrector, events)
    reply_id = ""
    try:
        async for chunk in chunks:
            delta = chunk.delta
            if delta is None or not (delta.content or delta.tool_calls):
                yield chunk
                continue
            reply_id = chunk.id
            for clause in clauses.feed(delta.content or ""):
                async for piece in reply.settled():
                    yield piece
                if reply.over:
                    return
                if said := reply.judged(clause):
                    yield _text(reply_id, said)
            if delta.tool_calls:
                for call in delta.tool_calls:
                    ledger.note_call(call)
                for said in reply.before_calls(clauses.finish()):
                    yield _text(reply_id, said)
                yield _without_text(chunk)
    except Exception:
        # A reply that breaks off is heard as far as it came, but for what it claims.
        if said := reply.judged(clauses.finish()):
            yield _text(reply_id, said)
        raise
    rest = clauses.finish()
    async for piece in reply.settled():
        yield piece
    if reply.over:
        return
    if said := reply.judged(rest):
        yield _text(reply_id, said)
    async for piece in reply.settled():
        yield piece
    if words := reply.owed():
        yield _text(reply_id, words)


class _SpokenReply:
    """What was said of a reply, and the clause of it that is held."""

    def __init__(
        self,
        checks: Sequence[SpokenCheck],
        corrector: Corrector,
        events: Events,
    ) -> None:
        self.over = False
        self._events = events
        self._checks = checks
        self._corrector = corrector
        self._spoke = self._called = False
        self._held = ""

    def judged(self, clause: str) -> str:
        """Return what is said of a clause; one that claims what was not done is held."""
        said = clause
        for check in self._checks:
            if not said:
                return ""
            match check.check(said):
                case NotDone():
                    self._held = clause
                    return ""
                case Say(text):
                    if text != said:
                        self._events.emit(FactCorrected(said.strip(), text.strip()))
                    said = text
        self._spoke |= bool(said.strip())
        return said

    def owed(self) -> str:
        """Return what has to be said as nothing else was, and no call was made."""
        return "" if self._spoke or self._called or self.over else self._corrector.owed

    def before_calls(self, rest: str) -> Iterator[str]:
        """Give what is said of the held clause and the `rest` now that calls follow them."""
        self._called = True
        held, self._held = self._held, ""
        for clause in filter(None, (held, rest)):
            if said := self.judged(clause):
                yield said
            if self._held:
                self._corrector.drop(self._held)
                self._held = ""

    async def settled(self) -> AsyncGenerator[llm.ChatChunk]:
        """Give what takes the place of the clause that is held, if one is."""
        if not self._held:
            return
        held, self._held = self._held, ""
        async for piece in self._corrector.correct(held, spoke=self._spoke):
            self._spoke |= bool(piece.delta and piece.delta.content)
            yield piece
        self.over = self._corrector.over


def _text(reply_id: str, text: str) -> llm.ChatChunk:
    return llm.ChatChunk(id=reply_id, delta=llm.ChoiceDelta(role="assistant", content=text))


def _without_text(chunk: llm.ChatChunk) -> llm.ChatChunk:
    if chunk.delta is None or not chunk.delta.content:
        return chunk
    return chunk.model_copy(update={"delta": chunk.delta.model_copy(update={"content": None})})
