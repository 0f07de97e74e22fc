"""Vectors of texts, each made once: kept in memory, on disk, or embedded now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from mcp_bridge.core.errors import EmbeddingUnavailable
from mcp_bridge.embedding.kept import KeptVectors
from mcp_bridge.embedding.port import Embedder, Vectors

logger = logging.getLogger(__name__)

BATCH: Final = 4
"""Texts embedded at a time: a request waits for the batch before it, 0.3 s on a slow core."""
BATCH_S: Final = 60.0
"""A server may have to load the model first."""
KEPT_EVERY: Final = 64
"""New vectors are written to disk in such steps, so that a short session leaves some."""
_SAME: Final = 0.98
"""Cosine of a text's kept and fresh vectors from which the model is the one that it was. float16
and other processors' rounding leave 0.999."""


class TextVectors:
    """Of one embedder. `kept` is where vectors are kept between runs; None makes them anew."""

    def __init__(self, embedder: Embedder, kept: KeptVectors | None) -> None:
        self._embedder: Final = embedder
        self._kept: Final = kept
        self._rows: Mapping[str, Vectors] = {}
        """Text -> vector, of the texts that were wanted last."""

    async def of(self, texts: Sequence[str]) -> Mapping[str, Vectors]:
        """Text -> vector. Those of other texts are forgotten, but for the disk's.

        Raises:
            EmbeddingUnavailable, TimeoutError, or what the embedder raises.
        """
        rows = {text: self._rows[text] for text in texts if text in self._rows}
        rows |= await self._known([text for text in texts if text not in rows])
        missing = [text for text in texts if text not in rows]
        fresh: dict[str, Vectors] = {}
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            fresh |= zip(batch, await self.embed(batch, BATCH_S), strict=True)
            if len(fresh) >= KEPT_EVERY:
                await self._keep(fresh)
                rows, fresh = rows | fresh, {}
        await self._keep(fresh)
        rows |= fresh
        self._rows = {text: rows[text] for text in texts}
        if missing:
            logger.info("%d texts of tools embedded: %s", len(missing), self._embedder.name)
        return self._rows

    async def embed(self, texts: Sequence[str], within_s: float) -> Vectors:
        """A row for each text, whatever is kept.

        Raises:
            EmbeddingUnavailable, TimeoutError, or what the embedder raises.
        """
        async with asyncio.timeout(within_s):
            rows = await self._embedder.embed(texts)
        if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
            raise EmbeddingUnavailable(f"{self._embedder.name} gave no row for each text")
        return rows

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
        (new,) = await self.embed([text], BATCH_S)
        if new.shape == old.shape and float(new @ old) >= _SAME:
            return known
        logger.warning("%s makes other vectors than before; all are made anew", self._embedder.name)
        return {}

    async def _keep(self, vectors: Mapping[str, Vectors]) -> None:
        if self._kept is not None and vectors:
            await asyncio.to_thread(self._kept.add, self._embedder.name, dict(vectors))
