"""Measures each request to a model's server, beside whoever reads its reply."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, TypeAlias

from caal_node.core.events import ModelRequestEnded, RequestOutcome
from caal_node.models.backends.base import Backend, BackendRequest, Capabilities, Chunk, ReplyDone

OnRequest: TypeAlias = Callable[[ModelRequestEnded], None]
"""It is told of each request once that is over, on the event loop, and must not block or raise."""


class TimedBackend:
    """A `Backend` that tells `on_request` of each request to `wrapped`, whose owner closes that.

    `now` returns monotonic seconds.
    """

    def __init__(
        self, wrapped: Backend, on_request: OnRequest, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._wrapped: Final = wrapped
        self._on_request: Final = on_request
        self._now: Final = now

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
        except Exception:
            outcome = "error"
            raise
        finally:
            usage = done.usage if done is not None and done.usage.prompt else None
            self._on_request(
                ModelRequestEnded(
                    took_ms=_ms(self._now() - began),
                    first_ms=None if first is None else _ms(first - began),
                    outcome=outcome,
                    prompt_tokens=usage and usage.prompt,
                    cached_tokens=usage and usage.cached,
                    completion_tokens=usage and usage.completion,
                )
            )

    async def capabilities(self) -> Capabilities:
        return await self._wrapped.capabilities()

    async def aclose(self) -> None:
        await self._wrapped.aclose()


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
