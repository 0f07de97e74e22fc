"""The engine that this process runs for itself, for machines that have no model's server.

It is started with the first question and ends with the backend; llama.cpp's own server answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, Literal

from livekit.agents.utils import aio

from caal_node.core.errors import ConfigError, ModelMissing
from caal_node.models.backends.base import Backend, BackendRequest, Capabilities, Chunk
from caal_node.models.backends.openai import OpenAIBackend
from caal_node.models.embedded_engine import EmbeddedEngine
from caal_node.weights.gguf import find_gguf

CONTEXT: Final = 8_192
"""Tokens of the context where nobody says how many, as the settings have it."""


class EmbeddedBackend:
    """One model in a child process of this one, which `aclose` ends.

    Args:
        model: A GGUF file, a weight's name or the hub's, as `find_gguf` reads it.
        num_ctx: The context, in tokens.
        think: Reaches chat templates that have the switch; a level counts as on.
        temperature: As every server takes it.
    """

    def __init__(
        self,
        model: str,
        *,
        num_ctx: int = CONTEXT,
        think: bool | Literal["low", "medium", "high"] = False,
        temperature: float = 0.0,
    ) -> None:
        self.model: Final = model
        self._num_ctx = num_ctx
        self._think = bool(think)
        self._temperature = temperature
        self._engine: EmbeddedEngine | None = None
        self._opening: asyncio.Task[Backend] | None = None

    @property
    def address(self) -> str:
        return "the embedded engine"

    async def capabilities(self) -> Capabilities:
        """See `Backend`. The first of these questions loads the model."""
        return await (await self._opened()).capabilities()

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        """See `Backend`. An engine that has died since the last request is started anew."""
        backend = await self._opened()
        async with aclosing(backend.ask(request)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def aclose(self) -> None:
        if self._opening is not None:
            await aio.cancel_and_wait(self._opening)
        await self._close()

    async def _opened(self) -> Backend:
        """Return the engine's own backend. Whoever asks while it loads waits for the same one.

        Raises:
            ModelMissing: the model, or the engine, is not here.
            ModelError: it was not loaded in time.
        """
        died = self._engine is not None and not self._engine.alive
        if self._opening is None or (self._opening.done() and (died or not _worked(self._opening))):
            self._opening = asyncio.create_task(self._open(), name="caal-embedded-engine")
        return await asyncio.shield(self._opening)

    async def _open(self) -> Backend:
        await self._close()
        try:
            path = await asyncio.to_thread(find_gguf, self.model)
            engine = EmbeddedEngine(path, ctx=self._num_ctx)
            await engine.__aenter__()
        except ConfigError as error:
            raise ModelMissing(str(error)) from error
        self._engine = engine
        self._backend = OpenAIBackend(
            engine.name,
            base_url=engine.base_url,
            think=self._think,
            temperature=self._temperature,
        )
        return self._backend

    async def _close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await self._backend.aclose()
            await engine.aclose()


def _worked(task: asyncio.Task[Backend]) -> bool:
    return not task.cancelled() and task.exception() is None
