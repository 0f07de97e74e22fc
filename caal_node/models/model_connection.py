"""One model on one server: how it is asked, how that was found out, and who still needs it."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Final, Literal, Protocol, TypeAlias

from livekit.agents.utils import aio
from opentelemetry.trace import Span

from caal_node.core.errors import ModelError, ModelReplyCut, ModelReplyData, ModelSilent
from caal_node.core.events import ModelRequestEnded, RequestOutcome
from caal_node.core.prompt_files import sentence
from caal_node.models.backends.base import (
    Backend,
    BackendRequest,
    Capabilities,
    Chunk,
    Dialect,
    KeepsSlots,
    LearnsDialect,
    ReplyDone,
    ServerCall,
    ServerResult,
)
from caal_node.models.backends.livekit import LiveKitBackend
from caal_node.models.backends.redacting import RedactingBackend
from caal_node.models.model_preparation import (
    FOUND_NATIVE,
    calibrate,
    find_schema_form,
    probe,
    warm,
)
from caal_node.models.question import Question
from caal_node.models.reply_attempt import ReplyAttempt, signal_of_error
from caal_node.models.retry_policy import RetryPolicy, TextStyle
from caal_node.models.strategies import JsonReplyStrategy
from caal_node.reply_parser import Event, TextDelta, TextWasThinking
from caal_node.telemetry.spans import begin_chat, end_chat

# Measures each request to a model's server, beside whoever reads its reply.

OnRequest: TypeAlias = Callable[[ModelRequestEnded], None]
"""It is told of each request once that is over, on the event loop, and must not block or raise."""


class TimedBackend:
    """A `Backend` that tells `on_request` of each request to `wrapped`, whose owner closes that,
    and opens a span for it.

    `provider` is who is asked, as LiveKit names it; None opens no span. `now` returns monotonic
    seconds.
    """

    def __init__(
        self,
        wrapped: Backend,
        on_request: OnRequest | None,
        now: Callable[[], float] = time.monotonic,
        *,
        provider: str | None = None,
    ) -> None:
        self._wrapped: Final = wrapped
        self._on_request: Final = on_request
        self._now: Final = now
        self._provider: Final = provider

    @property
    def model(self) -> str:
        return self._wrapped.model

    @property
    def address(self) -> str:
        return self._wrapped.address

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        """Yield the chunks as they come.

        Raises:
            ModelError: the same as `Backend.ask`.
        """
        began = self._now()
        first: float | None = None
        outcome: RequestOutcome = "closed"
        done: ReplyDone | None = None
        failed: Exception | None = None
        span: Span | None = None
        if self._provider is not None:
            span = begin_chat(self.model, self._provider, stream=request.stream)
        try:
            async with aclosing(self._wrapped.ask(request)) as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, ReplyDone):
                        # Nobody may read on behind it, and then it is a whole reply all the same.
                        done, outcome = chunk, "ok"
                    elif first is None:
                        first = self._now()
                    yield chunk
            outcome = "ok"
        except Exception as error:
            outcome, failed = "error", error
            raise
        finally:
            usage = done.usage if done is not None and done.usage.prompt else None
            ended = ModelRequestEnded(
                took_ms=_ms(self._now() - began),
                first_ms=None if first is None else _ms(first - began),
                outcome=outcome,
                prompt_tokens=usage and usage.prompt,
                cached_tokens=usage and usage.cached,
                completion_tokens=usage and usage.completion,
            )
            if span is not None:
                end_chat(span, ended, failed)
            if self._on_request is not None:
                self._on_request(ended)

    async def capabilities(self) -> Capabilities:
        return await self._wrapped.capabilities()

    async def aclose(self) -> None:
        await self._wrapped.aclose()


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


ReplyEvent: TypeAlias = Event | ServerCall | ServerResult | ReplyDone

DIGEST_CHARS: Final = 16
"""Characters of a prompt prefix's digest: enough to tell some twenty prefixes apart."""
AS_CONFIGURED: Final = "as configured"


class ModelMemory(Protocol):
    """What outlives a session: how its model is asked, whether its replies begin in thinking, what
    its server takes, and how sure of a call it has to be.

    It is of one model on one server. Nothing here raises: a session must go on without it.
    """

    async def keep_strategy(self, strategy: Literal["native", "text"], why: str) -> None:
        """Have the next session begin with this strategy."""
        ...

    async def thinks_aloud(self) -> bool:
        """Return whether its replies were seen to begin in thinking that the prompt had opened."""
        ...

    async def keep_thinks_aloud(self, thinks_aloud: bool) -> None: ...

    async def dialect(self) -> Dialect | None:
        """Return what its server was found to take."""
        ...

    async def keep_dialect(self, dialect: Dialect) -> None: ...

    async def call_threshold(self, prefix: str) -> float | None:
        """Return what was kept for the prompt prefix of this digest."""
        ...

    async def keep_call_threshold(self, prefix: str, threshold: float) -> None: ...


class ModelConnection:
    """Owns `backend`, and asks it as its `retry_policy` decides.

    `native_tools` settles how tools are asked for; None finds out by asking. `why` says who settled
    it. `memory` is told what was found out, and what changed later.
    """

    def __init__(
        self,
        backend: Backend,
        native_tools: bool | None,
        text_style: TextStyle = "auto",
        *,
        why: str = AS_CONFIGURED,
        memory: ModelMemory | None = None,
    ) -> None:
        self.backend = backend
        self.retry_policy = RetryPolicy(backend.model, text_style)
        self._native_tools = native_tools
        self._memory = memory
        self._kept_native = native_tools
        self._kept_thinks_aloud = False
        self._kept_dialect: Dialect | None = None
        self._recalled = False
        if native_tools is False:
            self.retry_policy.stats.leave_native(why)
        self._finding_out: asyncio.Task[None] | None = None
        self._users = 0
        self._unused = asyncio.Event()
        self._unused.set()

    @contextmanager
    def in_use(self) -> Generator[None]:
        """Mark the connection as in use while a reply is read. `retire` waits for the end."""
        self._users += 1
        self._unused.clear()
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._unused.set()

    async def ask(
        self, question: Question, on_request: OnRequest | None = None, provider: str = ""
    ) -> AsyncGenerator[ReplyEvent]:
        """Yield the events of the reply, and a `ReplyDone` with its usage after each request.

        Calls that the server runs itself are told as they come. `on_request` is told how long each
        request took. `provider` is who is asked, for the spans of the requests.

        Raises:
            ModelError: no strategy gave a reply.
        """
        policy = self.retry_policy
        await self._recall_dialect()
        if question.tools or not policy.native:
            async with asyncio.timeout(question.timeout_s):
                await self._learn_capabilities()
        step = policy.first_step(question)
        first = step.strategy.name
        unmade: list[Event] = []
        said_before = False
        own_span = isinstance(_asked(self.backend), LiveKitBackend)
        backend = TimedBackend(self.backend, on_request, provider=None if own_span else provider)
        while True:
            attempt = ReplyAttempt(backend, step.strategy, step.question)
            failure: ModelError | None = None
            try:
                async with aclosing(attempt.run()) as events:
                    async for event in events:
                        policy.stats.server_runs_tools |= isinstance(event, ServerCall)
                        if isinstance(event, TextWasThinking):
                            # It is noted now, since whoever hears the reply may cut it short.
                            policy.stats.note_thinking_aloud()
                        yield event
            except ModelError as error:
                attempt.signal, failure = signal_of_error(error), error
                if attempt.signal is None or attempt.spoke:
                    raise
            yield ReplyDone("stop", attempt.usage)
            policy.learn_from(step, attempt)
            goes_on = policy.goes_on(step, attempt)
            if attempt.signal is None or (attempt.spoke and not goes_on):
                for event in attempt.rest():
                    yield event
                if attempt.signal is None and question.may_call and not question.must_call:
                    policy.stats.note_success(step.strategy.name, first)
                return
            if goes_on:
                said_before = True
                yield TextDelta(" ")
            if step.question.once:
                if failure is not None:
                    raise failure
                return
            unmade = unmade or attempt.uncertain
            following = policy.next_step(step, attempt)
            if following is None:
                if attempt.signal == "cut":
                    if not said_before and not question.tells_unmade:
                        raise ModelReplyCut(f"{self.backend.model}: too few tokens for its reply")
                    yield TextDelta(sentence("model_cut_off"))
                    return
                if attempt.signal == "data":
                    if not question.tells_unmade:
                        raise ModelReplyData(f"{self.backend.model}: its reply was data, no words")
                    yield TextDelta(sentence("model_not_words"))
                    return
                if question.tells_unmade and unmade:
                    for event in unmade:
                        yield event
                    return
                name, what = self.backend.model, "no call" if question.must_call else "no reply"
                raise failure or ModelSilent(f"{name} gave {what} in any way of asking")
            step = following

    async def find_strategy(self) -> None:
        """Settle, once, whether the model's own tool calls can be used.

        Raises:
            ModelError: the model could not be asked. The next turn tries again.
        """
        if self._finding_out is None or _failed(self._finding_out):
            self._finding_out = asyncio.create_task(self._find_out(), name="caal-find-strategy")
        await asyncio.shield(self._finding_out)

    async def warm(self, prefix: Question) -> None:
        """Have the server read `prefix`, and find out how sure of a call the model has to be.

        Raises:
            ModelError: the server cannot be reached, or has no such model.
        """
        await self.find_strategy()
        if isinstance(asked := _asked(self.backend), KeepsSlots):
            await asked.take_slot()  # now, as the prefix is to be read into it
        strategy = self.retry_policy.first_strategy(prefix)
        request = strategy.request(prefix)
        await warm(self.backend, request)
        await self._learn_context()
        if isinstance(strategy, JsonReplyStrategy):
            shown = f"{request.items!r}{'' if prefix.head is None else prefix.tools.digest}"
            digest = hashlib.sha256(shown.encode()).hexdigest()[:DIGEST_CHARS]
            self.retry_policy.stats.call_threshold = await self._call_threshold(digest, prefix)

    async def read_ahead(self, question: Question) -> None:
        """Have the server read what the next request will begin with.

        Raises:
            ModelError: it could not be asked.
        """
        await warm(self.backend, self.retry_policy.first_strategy(question).request(question))

    async def _call_threshold(self, digest: str, prefix: Question) -> float:
        known = await self._memory.call_threshold(digest) if self._memory else None
        if known is not None:
            return known
        found = await calibrate(self.backend, prefix)
        if self._memory is not None:
            await self._memory.keep_call_threshold(digest, found)
        return found

    async def retire(self) -> None:
        """Close the connection as soon as the replies that are being read have ended."""
        await self._unused.wait()
        await self.aclose()

    async def aclose(self) -> None:
        if self._finding_out is not None:
            await aio.cancel_and_wait(self._finding_out)
        if self._kept_native is not None and self._kept_native != self.retry_policy.native:
            await self._keep_strategy()  # The model has left its own tool calls since.
        thinks_aloud = self.retry_policy.thinks_aloud
        if self._memory is not None and self._kept_thinks_aloud != thinks_aloud:
            self._kept_thinks_aloud = thinks_aloud
            await self._memory.keep_thinks_aloud(thinks_aloud)
        await self._keep_dialect()
        await self.backend.aclose()

    async def _learn_capabilities(self) -> None:
        """Ask the server, once, what it can do.

        Raises:
            ModelError: it does not answer.
        """
        if self.retry_policy.stats.capabilities is None:
            self.retry_policy.stats.capabilities = await self.backend.capabilities()

    async def _find_out(self) -> None:
        await self._recall_dialect()
        await self._learn_capabilities()
        stats = self.retry_policy.stats
        if self._memory is not None and await self._memory.thinks_aloud():
            self._kept_thinks_aloud = True
            stats.note_thinking_aloud()
        if self._native_tools is None:
            found = await probe(self.backend)
            if not found.native:
                stats.leave_native(found.why)
            if found.thinks_aloud:
                stats.note_thinking_aloud()
            await self._keep_strategy()
        known = stats.capabilities
        if not stats.native and known is not None and known.schema is None:
            stats.capabilities = replace(known, schema=await find_schema_form(self.backend))
        await self._keep_dialect()
        await self._learn_context()

    async def _learn_context(self) -> None:
        """Ask again how much the server reads, if it could not tell before the model was loaded."""
        stats = self.retry_policy.stats
        if stats.capabilities is not None and stats.capabilities.context_tokens is None:
            tokens = (await self.backend.capabilities()).context_tokens
            stats.capabilities = replace(stats.capabilities, context_tokens=tokens)

    async def _recall_dialect(self) -> None:
        if self._recalled or self._memory is None or not isinstance(self.backend, LearnsDialect):
            return
        self._recalled = True
        if (known := await self._memory.dialect()) is not None:
            self.backend.dialect = known
            self._kept_dialect = deepcopy(known)

    async def _keep_dialect(self) -> None:
        if self._memory is None or not isinstance(self.backend, LearnsDialect):
            return
        dialect = self.backend.dialect
        if dialect != (self._kept_dialect or Dialect()):
            self._kept_dialect = deepcopy(dialect)
            await self._memory.keep_dialect(dialect)

    async def _keep_strategy(self) -> None:
        self._kept_native = self.retry_policy.native
        if self._memory is not None:
            why = self.retry_policy.stats.reason or FOUND_NATIVE
            await self._memory.keep_strategy("native" if self._kept_native else "text", why)


def _asked(backend: Backend) -> Backend:
    """Return the backend that asks the server itself."""
    return backend.wrapped if isinstance(backend, RedactingBackend) else backend


def _failed(task: asyncio.Task[None]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
