"""A reply's text is held to what is known, clause by clause, on its way from the model to speech.

A clause is passed on as soon as its end is there; speech synthesis waits for about as much anyway.
A call is never waited with. A clause that claims what no call has done is held until it is known
whether the call follows it at once ("I'll turn it off." and the call): then the promise is heard.
Else `Corrector` says what takes its place.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator, Sequence
from typing import Protocol

from livekit.agents import llm

from caal_node.grounding.claim_check import ClauseSplitter
from caal_node.grounding.spoken_check import NotDone, Say, SpokenCheck


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
