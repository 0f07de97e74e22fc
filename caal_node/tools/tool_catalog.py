"""The index of a table's tools, in which they are searched."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import mcp_bridge
from caal_node.core.prompt_files import read
from caal_node.language.requests import PlainAnswer, plain_answer
from caal_node.models.strategies.word_lists import JOINERS
from caal_node.tools.table import ToolEntry, ToolTable
from mcp_bridge.discovery.tool_search import ToolFinder
from mcp_bridge.discovery.vocabulary import Vocabulary
from mcp_bridge.embedding.semantic_index import SemanticIndex, SemanticQuery

VECTORS_S: Final = 1.0
"""Seconds to wait for vectors that are still being made. It is enough for those on disk."""
_EVERYDAY: Final[Mapping[str, Any]] = tomllib.loads(read("everyday_words.toml"))
VOCABULARY: Final = Vocabulary(
    [(said, means) for lists in _EVERYDAY.values() for said, means in lists["means"]],
    JOINERS,
    [reply for lists in _EVERYDAY.values() for reply in lists["replies"]],
)
_CAUTION: Final[Mapping[PlainAnswer, float]] = MappingProxyType(
    {"": 1.0, "knowledge": 1.25, "statement": 1.25, "talk": 2.5}
)
"""The caution with words that a plain answer is likely for, by why it is likely. "How far is it to
the lake" is for a tool all the same; hardly any small talk is."""


class ToolCatalog:
    """An immutable index. Making it takes 0.2 ms a tool, so make it in a thread."""

    def __init__(self, table: ToolTable) -> None:
        self.table: Final = table
        self._tools: Final = tuple(_tool_info(entry) for entry in self.table)
        self._finder: Final = ToolFinder(self._tools, VOCABULARY)

    def embed(self, meanings: SemanticIndex) -> None:
        """Begin to make the vectors of these tools, so that they are there when one is wanted."""
        meanings.set_tools(self._tools)

    async def find(
        self,
        patterns: Sequence[str],
        meanings: SemanticIndex | None = None,
        *,
        request: str = "",
    ) -> list[ToolEntry]:
        """Return the tools that match, best first, ranked as `mcp_discover` ranks.

        Args:
            meanings: It takes over these tools, and ranks by what words mean as well; None ranks
                by the words alone.
            request: What a person said. Its words rank the names that a glob matches.
        """
        meaning = await self._meaning(patterns, meanings, wait_s=VECTORS_S)
        found = self._finder.find(patterns, meaning, request=request)
        return [self.table.resolve(tool.name) for tool in found]

    async def fitting(
        self, words: str, meanings: SemanticIndex | None = None, *, besides: Collection[str] = ()
    ) -> tuple[str, ...]:
        """Return the exposed names of the few tools that fit what a person said, best first.

        There are as many as the scores say, three or four on average and twelve at most, and none
        for words that ask for nothing.

        Args:
            meanings: As in `find`. Vectors that are still being made are not waited for.
            besides: The names that the model has already. They are left out, and nothing takes
                their place: what fits worse than they do is not told for their sake.
        """
        parts = self._finder.parts_of(words)
        meaning = await self._meaning(parts, meanings, wait_s=0.0)
        found = self._finder.fitting(parts, meaning, caution=caution_of(words))
        return tuple(tool.name for tool in found if tool.name not in besides)

    async def _meaning(
        self, patterns: Sequence[str], meanings: SemanticIndex | None, *, wait_s: float
    ) -> SemanticQuery | None:
        if meanings is None:
            return None
        self.embed(meanings)
        worded = self._finder.patterns_of_words(patterns)
        return await meanings.query(self._tools, worded, wait_s=wait_s)


def caution_of(words: str) -> float:
    """Return how much better than usual a tool must fit what a person said."""
    return _CAUTION[plain_answer(words)]


def _tool_info(entry: ToolEntry) -> mcp_bridge.ToolInfo:
    spec = entry.spec
    return mcp_bridge.ToolInfo(
        name=entry.exposed,
        server=spec.source,
        tool=spec.own_name or spec.name,
        description=spec.details or spec.description,
        input_schema=spec.parameters,
        examples=tuple(mcp_bridge.Example(e.utterance, e.arguments) for e in spec.examples),
    )
