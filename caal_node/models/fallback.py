"""`FallbackLLM`: a chain of models, of which the next one answers when one fails.

LiveKit's `FallbackAdapter` does the work: it goes on to the next model before anything was said,
asks a failed one again behind the scenes, and comes back to it. To a `CaalAgent` the chain is an
`LLM` like any other: it is given examples, it is warmed, and it finds its strategy.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false
# LiveKit leaves the event types of its rooms, models and sessions open, so they are half unknown.

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from livekit.agents import APIConnectOptions, llm
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, NOT_GIVEN, NotGivenOr
from livekit.agents.utils import aio, is_given

from caal_node.core.errors import ModelError
from caal_node.models.backends.base import Backend
from caal_node.models.llm import LLM, given_timeout
from caal_node.models.question import Question
from caal_node.models.retry_policy import RetryPolicy

logger = logging.getLogger("caal_node.models")


class FallbackLLM(LLM):
    """Asks the first of `members` that works. The chain owns its members and closes them."""

    def __init__(self, members: Sequence[LLM], *, reply_within_s: float | None = None) -> None:
        """A model that has given nothing within `reply_within_s` has failed; None waits on.

        The last one may take longer, since nobody comes after it: an engine that is only loaded
        when it is needed answers late, and that is better than not at all.

        Raises:
            ValueError: `members` is empty.
        """
        if not members:
            raise ValueError("a chain of models needs one at least")
        super().__init__(members[0].model, backend=members[0].backend)
        self._reply_within_s = reply_within_s
        self.members: Final = tuple(members)
        self._adapter = _Adapter(list(members))
        self._adapter.on("metrics_collected", partial(self.emit, "metrics_collected"))
        self._adapter.on("error", partial(self.emit, "error"))

    @property
    def model(self) -> str:
        """The model that is asked next."""
        return self._adapter.model

    @property
    def backend(self) -> Backend:
        return self._adapter.current.backend

    @property
    def retry_policy(self) -> RetryPolicy:
        return self._adapter.current.retry_policy

    @property
    def provider(self) -> str:
        return self._adapter.provider

    def chat(
        self,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool] | None = None,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
        parallel_tool_calls: NotGivenOr[bool] = NOT_GIVEN,
        tool_choice: NotGivenOr[llm.ToolChoice] = NOT_GIVEN,
        extra_kwargs: NotGivenOr[dict[str, Any]] = NOT_GIVEN,
    ) -> llm.LLMStream:
        """See `LLM.chat`. Each member is given the same."""
        extra = extra_kwargs if is_given(extra_kwargs) else {}
        given_s = given_timeout(conn_options)

        def deadline_s(member: LLM) -> float | None:
            own = None if member is self.members[-1] else self._reply_within_s
            return min(filter(None, (given_s, own)), default=None)

        return self._adapter.chat(
            chat_ctx=chat_ctx,
            tools=tools,
            # Each model has its turn once. More rounds would be minutes of silence.
            conn_options=replace(conn_options, max_retry=0),
            parallel_tool_calls=parallel_tool_calls,
            tool_choice=tool_choice,
            extra_kwargs={
                "reply_within_s": deadline_s,
                **extra,
            },
        )

    def update_options(
        self, *, model: NotGivenOr[str] = NOT_GIVEN, **given: NotGivenOr[Any]
    ) -> None:
        """Change what every member is asked with; `model` is the first one's."""
        first, *others = self.members
        first.update_options(model=model, **given)
        for member in others:
            member.update_options(**given)

    async def switch(self, model: str, *given: Any, **options: Any) -> None:
        """Put another model in the first one's place, as `LLM.switch` does. The others stay."""
        await self.members[0].switch(model, *given, **options)

    async def warm(self, question: Question) -> None:
        """Warm the first member that can be. The others would push it out of a shared server.

        Raises:
            ModelError: none of them can be.
        """
        last: ModelError | None = None
        for member in self.members:
            try:
                await member.warm(question)
            except ModelError as error:
                logger.warning("%s could not be warmed up: %s", member.model, error)
                last = error
            else:
                return
        assert last is not None
        raise last

    async def find_strategy(self) -> None:
        """Settle how the first member is asked. The others settle it at their first question."""
        await self.members[0].find_strategy()

    async def aclose(self) -> None:
        await self._adapter.aclose()
        for member in self.members:
            await member.aclose()
        await super().aclose()


class _Adapter(llm.FallbackAdapter):
    """LiveKit's adapter, which by itself leaves requests behind the scenes running at its end."""

    @property
    def current(self) -> LLM:
        """The member that is asked next."""
        member = self._next_instance()
        assert isinstance(member, LLM)
        return member

    async def aclose(self) -> None:
        asking: list[asyncio.Task[None]] = [
            status.recovering_task for status in self._status if status.recovering_task is not None
        ]
        await aio.cancel_and_wait(*asking)
        await super().aclose()
