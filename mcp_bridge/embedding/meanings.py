"""Vectors of a set of tools, made beside the callers, and of requests, made while they wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from mcp_bridge.core.errors import BridgeError
from mcp_bridge.core.tools import ToolInfo
from mcp_bridge.embedding.kept import KeptVectors
from mcp_bridge.embedding.mix import Space
from mcp_bridge.embedding.port import Embedder, Vectors, unit
from mcp_bridge.embedding.text_vectors import TextVectors
from mcp_bridge.embedding.tool_text import tool_texts

logger = logging.getLogger(__name__)

REQUEST_S: Final = 1.0
"""For a request's vector; then the search goes by words. A person is waiting."""
LATE_MAX: Final = 3
"""Requests in a row without a vector in time; then the embedder is left alone for a while."""
LATE_PAUSE_S: Final = 60.0
"""How long. A machine that is busy now has time later; each try costs a person `REQUEST_S`."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a search knows beside words: the tools' vectors, and those of what is asked."""

    space: Space
    asked: Mapping[str, Vectors]


class Meanings:
    """Belongs to one set of tools at a time. Use it on one event loop, and close it.

    A failure is told of once, and leaves the searches to words until the tools change.

    Args:
        kept: Where vectors are kept between runs; None makes them anew.
        request_s: Seconds for a request's vector.
        late_pause_s: Seconds without a try after too many that were late.
    """

    def __init__(
        self,
        embedder: Embedder,
        kept: KeptVectors | None = None,
        *,
        request_s: float = REQUEST_S,
        late_pause_s: float = LATE_PAUSE_S,
    ) -> None:
        self._vectors: Final = TextVectors(embedder, kept)
        self._request_s: Final = request_s
        self._late_pause_s: Final = late_pause_s
        self._tools: tuple[ToolInfo, ...] = ()
        self._space: Space | None = None
        self._late = 0
        self._resting_until = 0.0
        self._making: asyncio.Task[None] | None = None

    def renew(self, tools: tuple[ToolInfo, ...]) -> None:
        """Begins to make the vectors of `tools`, in place of any others."""
        if tools is self._tools:
            return
        self._tools, self._space = tools, None
        self._late, self._resting_until = 0, 0.0
        before, self._making = self._making, None
        if before is not None:
            before.cancel()
        if tools or before is not None:
            self._making = asyncio.create_task(self._make(tools, before), name="mcp-meanings")

    async def of(
        self, tools: tuple[ToolInfo, ...], texts: Sequence[str], *, wait_s: float = 0.0
    ) -> Meaning | None:
        """What is needed to find `texts` among `tools`; None: go by words.

        Args:
            wait_s: For the tools' own vectors, where they are still being made.
        """
        if not texts or tools is not self._tools:
            return None
        if wait_s and self._making is not None and not self._making.done():
            await asyncio.wait({self._making}, timeout=wait_s)
        if (space := self._space) is None or tools is not self._tools or self._resting():
            return None
        try:
            rows = await self._vectors.embed(texts, self._request_s)
        except TimeoutError:
            self._was_late()
            return None
        except Exception as error:  # a host's embedder may raise anything
            self._lose(space, _said(error))
            return None
        if rows.shape[1] != space.rows.shape[1]:
            self._lose(space, "its vectors have another length than before")
            return None
        self._late = 0
        return Meaning(space, dict(zip(texts, rows, strict=True)))

    def _resting(self) -> bool:
        return asyncio.get_running_loop().time() < self._resting_until

    def _was_late(self) -> None:
        self._late += 1
        if self._late == 1:
            logger.warning("no vector of a request within %g s: by words", self._request_s)
        if self._late < LATE_MAX:
            return
        self._resting_until = asyncio.get_running_loop().time() + self._late_pause_s
        if self._late == LATE_MAX:
            logger.warning(
                "tools are searched for by words for %g s at a time: the embedder is too slow",
                self._late_pause_s,
            )

    async def aclose(self) -> None:
        self._tools, self._space = (), None
        if self._making is not None:
            self._making.cancel()
            await asyncio.gather(self._making, return_exceptions=True)

    async def _make(self, tools: tuple[ToolInfo, ...], before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.gather(before, return_exceptions=True)
        if not tools:
            return
        try:
            space = await self._spaced(tools)
        except Exception as error:  # a host's embedder may raise anything
            self._lose(None, _said(error))
            return
        if tools is self._tools:
            self._space = space

    async def _spaced(self, tools: Sequence[ToolInfo]) -> Space:
        of_tools = await asyncio.to_thread(lambda: [tool_texts(tool) for tool in tools])
        texts = list(dict.fromkeys(text for some in of_tools for text in some))
        rows = await self._vectors.of(texts)
        return await asyncio.to_thread(_space, of_tools, rows)

    def _lose(self, space: Space | None, why: str) -> None:
        """Nothing more is asked of the embedder until the tools change."""
        if self._space is space:
            self._space = None
            logger.warning("tools are searched for by words alone: %s", why)


def _space(of_tools: Sequence[Sequence[str]], rows: Mapping[str, Vectors]) -> Space:
    sums = [np.sum([rows[text] for text in texts], axis=0) for texts in of_tools]
    return Space(unit(np.stack(sums)))


def _said(error: Exception) -> str:
    """Our own errors hold no text of anybody; what others' hold is not known."""
    return str(error) if isinstance(error, BridgeError) else type(error).__name__
