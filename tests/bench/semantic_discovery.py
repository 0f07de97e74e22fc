"""The searches by meaning of `tests.bench.discovery`: it has the same tools and requests.

Vectors are kept in the cache, as an agent keeps its own, so that a second run is quick; what is
timed is embedded afresh.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from caal_node import weights
from caal_node.weights import cache
from mcp_bridge import MiniLM, ToolInfo, VectorCache
from mcp_bridge.discovery.bm25 import Vocabulary
from mcp_bridge.discovery.tool_search import ToolFinder
from mcp_bridge.embedding.embedders import Vectors, unit
from mcp_bridge.embedding.semantic_index import SemanticQuery, ToolVectors, tool_texts

STEP: Final = 256
TIMED: Final = 32
"""Tools that are embedded for their time."""


class ByMeaning:
    """It finds as `ServerManager(embedder=MiniLM(...))` does, with every vector made beforehand."""

    def __init__(self, embedder: MiniLM) -> None:
        self._embedder = embedder
        self._kept = VectorCache(cache.root() / "bench")

    async def space(self, tools: Sequence[ToolInfo]) -> ToolVectors:
        texts = [tool_texts(tool) for tool in tools]
        rows = await self.vectors([text for some in texts for text in some])
        return ToolVectors(
            unit(np.stack([np.sum([rows[t] for t in some], axis=0) for some in texts]))
        )

    async def find(
        self, tools: Sequence[ToolInfo], asked: Sequence[str], vocabulary: Vocabulary | None = None
    ) -> Callable[[str], Sequence[ToolInfo]]:
        finder, space = ToolFinder(tools, vocabulary), await self.space(tools)
        worded = {said: finder.patterns_of_words(said) for said in asked}
        rows = await self.vectors([text for some in worded.values() for text in some])

        def found(said: str) -> Sequence[ToolInfo]:
            return finder.find(
                said, SemanticQuery(space, {text: rows[text] for text in worded[said]})
            )

        return found

    async def vectors(self, texts: Sequence[str]) -> dict[str, Vectors]:
        name = self._embedder.name
        rows = self._kept.read(name, texts)
        missing = [text for text in dict.fromkeys(texts) if text not in rows]
        for start in range(0, len(missing), STEP):
            some = missing[start : start + STEP]
            made = dict(zip(some, await self._embedder.embed(some), strict=True))
            self._kept.add(name, made)
            rows |= made
        return rows

    async def tool_ms(self, tools: Sequence[ToolInfo]) -> float:
        """Return the CPU time to embed one of `tools`, averaged over an even sample."""
        some = tools[:: max(1, len(tools) // TIMED)][:TIMED]
        began = time.process_time()
        for tool in some:
            await self._embedder.embed(tool_texts(tool))
        return (time.process_time() - began) * 1e3 / len(some)

    async def request_ms(self, said: str, runs: int) -> float:
        """Return the CPU time to embed a request, which is the best of several runs."""
        best = math.inf
        for _ in range(runs):
            began = time.process_time()
            await self._embedder.embed([said])
            best = min(best, time.process_time() - began)
        return best * 1e3


def by_meaning() -> ByMeaning | str:
    """Return the search by meaning, or the reason why there is none."""
    folder = weights.present(weights.MINILM)
    if folder is None:
        return f"left out: run python -m caal_node.weights {weights.MINILM.key}"
    return ByMeaning(MiniLM(folder))
