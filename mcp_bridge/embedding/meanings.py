"""Vectors of a set of tools, made beside the callers, and of requests, made while they wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from mcp_bridge.embedding.kept import KeptVectors
from mcp_bridge.embedding.mix import Space
from mcp_bridge.embedding.port import Embedder, Vectors, unit
from mcp_bridge.embedding.tool_text import tool_texts
from mcp_bridge.errors import BridgeError, EmbeddingUnavailable
from mcp_bridge.tools import ToolInfo

logger = logging.getLogger(__name__)

REQUEST_S: Final = 1.0
"""For a request's vector; then the search goes by words. A person is waiting."""
BATCH: Final = 4
"""Texts embedded at a time: a request waits for the batch before it, 0.3 s on a slow core."""
BATCH_S: Final = 60.0
"""A server may have to load the model first."""
KEPT_EVERY: Final = 64
"""New vectors are written to disk in such steps, so that a short session leaves some."""
LATE_MAX: Final = 3
"""Requests in a row without a vector in time; then the embedder is left alone."""
_SAME: Final = 0.98
"""Cosine of a text's kept and fresh vectors from which the model is the one that it was. float16
and other processors' rounding leave 0.999."""


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
    """

    def __init__(
        self, embedder: Embedder, kept: KeptVectors | None = None, *, request_s: float = REQUEST_S
    ) -> None:
        self._embedder: Final = embedder
        self._kept: Final = kept
        self._request_s: Final = request_s
        self._tools: tuple[ToolInfo, ...] = ()
        self._space: Space | None = None
        self._rows: Mapping[str, Vectors] = {}
        """Text -> vector, of the newest tools that have theirs. A tool has one or two texts."""
        self._late = 0
        self._making: asyncio.Task[None] | None = None

    def renew(self, tools: tuple[ToolInfo, ...]) -> None:
        """Begins to make the vectors of `tools`, in place of any others."""
        if tools is self._tools:
            return
        self._tools, self._space, self._late = tools, None, 0
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
        if (space := self._space) is None or tools is not self._tools:
            return None
        try:
            rows = await self._embedded(texts, self._request_s)
        except TimeoutError:
            self._late += 1
            if self._late == 1:
                logger.warning("no vector of a request within %g s: by words", self._request_s)
            elif self._late == LATE_MAX:
                self._lose(space, "it is too slow")
            return None
        except Exception as error:  # a host's embedder may raise anything
            self._lose(space, _said(error))
            return None
        if rows.shape[1] != space.rows.shape[1]:
            self._lose(space, "its vectors have another length than before")
            return None
        self._late = 0
        return Meaning(space, dict(zip(texts, rows, strict=True)))

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
        rows = {text: self._rows[text] for text in texts if text in self._rows}
        rows |= await self._known([text for text in texts if text not in rows])
        missing = [text for text in texts if text not in rows]
        fresh: dict[str, Vectors] = {}
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            fresh |= zip(batch, await self._embedded(batch, BATCH_S), strict=True)
            if len(fresh) >= KEPT_EVERY:
                await self._keep(fresh)
                rows, fresh = rows | fresh, {}
        await self._keep(fresh)
        rows |= fresh
        self._rows = {text: rows[text] for text in texts}
        if missing:
            logger.info("%d texts of tools embedded: %s", len(missing), self._embedder.name)
        return await asyncio.to_thread(_space, of_tools, rows)

    async def _known(self, texts: Sequence[str]) -> Mapping[str, Vectors]:
        """Those of `texts` that are on disk, where the model is still the one that made them.

        To see that, one is embedded again, which also loads the model before the first request.
        """
        if (kept := self._kept) is None or not texts:
            return {}
        known = await asyncio.to_thread(kept.read, self._embedder.name, texts)
        if not known:
            return {}
        text, old = next(iter(known.items()))
        (new,) = await self._embedded([text], BATCH_S)
        if new.shape == old.shape and float(new @ old) >= _SAME:
            return known
        logger.warning("%s makes other vectors than before; all are made anew", self._embedder.name)
        return {}

    async def _keep(self, vectors: Mapping[str, Vectors]) -> None:
        if self._kept is not None and vectors:
            await asyncio.to_thread(self._kept.add, self._embedder.name, dict(vectors))

    async def _embedded(self, texts: Sequence[str], within_s: float) -> Vectors:
        """Raises: EmbeddingUnavailable, TimeoutError, or what the embedder raises."""
        async with asyncio.timeout(within_s):
            rows = await self._embedder.embed(texts)
        if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
            raise EmbeddingUnavailable(f"{self._embedder.name} gave no row for each text")
        return rows

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
