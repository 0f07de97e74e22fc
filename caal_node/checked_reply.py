"""A model's reply as people may hear it: searched for where it hedges, and held to what was done
and found."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Final, Protocol, TypeAlias

from livekit.agents import llm
from livekit.agents.utils import shortuuid

from caal_node.config.settings import Settings
from caal_node.core.events import Events, FactCorrected
from caal_node.core.items import Item
from caal_node.core.prompt_files import sentence
from caal_node.core.tool_spec import ToolSchema, ToolSpec
from caal_node.core.turn import Turn
from caal_node.grounding.claim_check import ClaimCheck, ClauseSplitter, UnreadStates
from caal_node.grounding.fact_check import fact_check, told_in
from caal_node.grounding.spoken_check import NotDone, Say, SpokenCheck
from caal_node.models.claim_correction import ClaimCorrection, ReplyLedger, question_again
from caal_node.models.document_lookup import (
    DocumentLookup,
    document_lookup,
    looking_up,
    naming_source,
)
from caal_node.models.hedge_search import (
    answering_from,
    asking_if_refused,
    found_result,
    question_with_result,
    said_result,
    search_call,
    searching_if_hedged,
)
from caal_node.models.left_parts import LEFT, ClaimedParts, left_part, question_for
from caal_node.models.llm import SERVER_RUN
from caal_node.models.question import Question

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


async def checked(
    chunks: AsyncIterable[llm.ChatChunk],
    checks: Sequence[SpokenCheck],
    corrector: Corrector,
    on_call: Callable[[llm.FunctionToolCall], None],
    on_mended: Callable[[str, str], None],
) -> AsyncGenerator[llm.ChatChunk]:
    """Yield `chunks` with the text that the checks let through.

    `on_call` is told of each call before the clauses in front of it are judged again, `on_mended`
    of each clause that is said otherwise, with what is heard of it.
    """
    clauses, reply = ClauseSplitter(), _SpokenReply(checks, corrector, on_mended)
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
                    on_call(call)
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
        on_mended: Callable[[str, str], None],
    ) -> None:
        self.over = False
        self._on_mended = on_mended
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
                        self._on_mended(said, text)
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


logger = logging.getLogger("caal_node")

_SORRY: Final = (
    *("claim_not_done", "claim_not_all_done", "claim_not_possible", "claim_not_looked_up"),
)
"""Sentences that say of an answer that it is not all done."""
Ask: TypeAlias = Callable[[Question], AbstractAsyncContextManager[AsyncIterable[llm.ChatChunk]]]
"""It sends a question to the model."""


class CheckedReply:
    """The reply to one question.

    Args:
        question: What is asked.
        history: The whole conversation, with what the question left out.
        settings: They say what is checked.
        ask: Whom it asks, for a claim's call a second time.
        spec_of: It knows the tools by the model's names.
        asks_natively: Whether the model is asked with its server's own tool calls by now.
        events: Each claim and each fact that was corrected is one.
        web_search: The tools among which the web's is looked for, where a reply cannot know.
    """

    def __init__(
        self,
        question: Question,
        history: Sequence[Item],
        settings: Settings,
        *,
        ask: Ask,
        spec_of: Callable[[str], ToolSpec | None],
        asks_natively: Callable[[], bool],
        events: Events,
        web_search: Sequence[ToolSchema],
    ) -> None:
        self._question: Final = question
        self._turn: Final = Turn(history)
        self._settings: Final = settings
        self._ask: Final = ask
        self._asks_natively: Final = asks_natively
        self._events: Final = events
        self._spec_of: Final = spec_of
        self._web_search: Final = web_search
        self._ledger: Final = ReplyLedger(history, spec_of)

    async def chunks(self) -> AsyncGenerator[llm.ChatChunk]:
        """Ask, and yield what may be heard and the calls. Close it, which ends its request.

        Raises:
            Exception: what the model's LLM raises.
        """
        lookup = self._lookup()
        if lookup is not None and lookup.at_once:
            yield llm.ChatChunk(id=shortuuid("lookup_"), delta=lookup.call)
            return
        async with AsyncExitStack() as first:
            stream = await first.enter_async_context(self._ask(self._question))
            if lookup is not None:
                stream = looking_up(stream, lookup)
            stream = self._or_result(self._or_fitting_tool(stream, first), first)
            heard = self._as_found(stream, first)
            answer, called = "", False
            async for chunk in naming_source(heard, self._turn, self._spec_of):
                if chunk.delta:
                    answer += chunk.delta.content or ""
                    called |= bool(chunk.delta.tool_calls)
                if chunk.delta and chunk.delta.extra and SERVER_RUN in chunk.delta.extra:
                    self._ledger.note_server_run(chunk.delta.extra[SERVER_RUN])
                yield chunk
            if not called:
                async for chunk in self._of_left_part(answer, first):
                    yield chunk

    async def _of_left_part(
        self, answer: str, first: AsyncExitStack
    ) -> AsyncGenerator[llm.ChatChunk]:
        """Give the call for a part of the request that no call was for, else say that it is left.

        The model is asked for that call once in a turn.
        """
        question, turn = self._question, self._ledger().turn
        checks = self._settings.checks.claims and not self._settings.server_runs_tools
        if not checks or question.must_call or any(sentence(key) in answer for key in _SORRY):
            return
        part = left_part(question, turn, answer, self._spec_of)
        if part is None:
            return
        calls: list[llm.FunctionToolCall] = []
        if question.may_call and not any(call.call_id.startswith(LEFT) for call in turn):
            await first.aclose()  # Many servers answer one request at a time.
            try:
                async with self._ask(question_for(part, question, answer)) as reply:
                    async for chunk in reply:
                        calls += (chunk.delta and chunk.delta.tool_calls) or []
            except Exception as error:  # the turn goes on without the call, and says so
                logger.warning("what is left could not be asked for: %s", type(error).__name__)
        for call in filter(part.is_for, calls[:1]):
            made = call.model_copy(update={"call_id": f"{LEFT}{call.call_id}"})
            yield llm.ChatChunk(id=made.call_id, delta=llm.ChoiceDelta(tool_calls=[made]))
            return
        said = " " + sentence("part_not_done").replace("{part}", part.text)
        yield llm.ChatChunk(
            id=shortuuid("caal_"), delta=llm.ChoiceDelta(role="assistant", content=said)
        )

    def _lookup(self) -> DocumentLookup | None:
        """Return what the owner's documents are asked in place of a reply, where it may be."""
        question = self._question
        if not question.may_call or question.must_call:
            return None
        return document_lookup(self._turn, question.tools.schemas, self._spec_of)

    def _or_result(
        self, stream: AsyncIterable[llm.ChatChunk], first: AsyncExitStack
    ) -> AsyncIterable[llm.ChatChunk]:
        """Pass the reply on, or ask once more where it denies access to what a result tells."""
        question, search = self._question, self._search()
        judges = self._settings.checks.facts and not self._settings.server_runs_tools
        result = found_result(self._ledger()) if judges and question.may_call else None
        if result is None or question.must_call:
            return stream if search is None else searching_if_hedged(stream, search)

        async def again() -> AsyncGenerator[llm.ChatChunk]:
            await first.aclose()  # Many servers answer one request at a time.
            asked = self._ask(question_with_result(question))
            async for chunk in await first.enter_async_context(asked):
                yield chunk

        return answering_from(stream, again, search or said_result(result))

    def _search(self) -> llm.ChoiceDelta | None:
        """Return the search in place of a reply that says that it cannot know, where it may be."""
        if not (self._question.may_call and self._settings.checks.hedges):
            return None
        return search_call(self._turn, self._web_search)

    def _or_fitting_tool(
        self, stream: AsyncIterable[llm.ChatChunk], first: AsyncExitStack
    ) -> AsyncIterable[llm.ChatChunk]:
        """Pass the reply on, or ask once more where it denies a tool that fits the request."""
        question = self._question
        asks = self._settings.checks.claims and not self._settings.server_runs_tools
        if not asks or not question.may_call or question.must_call:
            return stream
        if not question.turn.is_new:
            return stream  # a tool has been called

        async def again(tool: str) -> AsyncGenerator[llm.ChatChunk]:
            await first.aclose()  # Many servers answer one request at a time.
            named = replace(question, tool_named=tool)
            async for chunk in await first.enter_async_context(self._ask(named)):
                yield chunk

        return asking_if_refused(stream, question, again)

    def _as_found(
        self, stream: AsyncIterable[llm.ChatChunk], first: AsyncExitStack
    ) -> AsyncIterable[llm.ChatChunk]:
        """Pass the reply on, but for what it claims to have done and no call has, and for facts
        that are not in the results."""
        checks = self._checks()
        if not checks or self._settings.server_runs_tools:
            return stream

        @asynccontextmanager
        async def ask_again(claim: str) -> AsyncGenerator[AsyncIterable[llm.ChatChunk]]:
            await first.aclose()  # Many servers answer one request at a time.
            again = question_again(self._question, claim, native=self._asks_natively())
            async with self._ask(again) as reply:
                yield reply

        may_ask = self._question.may_call and not self._question.must_call
        correction = ClaimCorrection(
            self._ledger,
            self._question,
            ask_again if may_ask else None,
            self._events,
            self._spec_of,
        )
        return checked(stream, checks, correction, self._ledger.note_call, self._note_mended)

    def _told_before(self) -> list[str]:
        """Return what was said before the person's newest words, and the instructions."""
        turn = self._question.turn
        return told_in([*turn.before, *turn.since])

    def _note_mended(self, clause: str, heard: str) -> None:
        self._events.emit(FactCorrected(clause.strip(), heard.strip()))

    def _checks(self) -> list[SpokenCheck]:
        checks: list[SpokenCheck] = []
        if self._settings.checks.claims:
            checks.append(ClaimCheck(self._ledger))
            checks.append(ClaimedParts(self._question, self._ledger, self._spec_of))
            checks.append(
                UnreadStates(self._ledger, self._question.tools.schemas, self._told_before())
            )
        if self._settings.checks.facts:
            told = told_in(self._question.conversation)
            checks.append(fact_check(self._ledger, told))
        return checks
