"""Everything there is to call, also what the model has to search for, and how it is searched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import mcp_bridge
from caal_node.tools.spec import ToolSpec
from caal_node.tools.table import Entry, ToolTable
from mcp_bridge.discovery.tool_search import ToolFinder
from mcp_bridge.embedding.meanings import Meanings

MAKING_S: Final = 1.0
"""For vectors that are still being made. Where they are on disk, this is enough for all."""


class Whole:
    """Immutable. Making it takes 0.6 ms a tool, so make it beside the event loop."""

    def __init__(self, specs: Sequence[ToolSpec], table: Callable[..., ToolTable]) -> None:
        self.specs: Final = tuple(specs)
        self.table: Final = table(specs)
        self.tools: Final = tuple(_found_by(entry) for entry in self.table)
        self._finder: Final = ToolFinder(self.tools)

    async def find(self, patterns: Sequence[str], meanings: Meanings | None = None) -> list[Entry]:
        """What matches, best first: ranked as `mcp_discover` ranks, over all tiers.

        Args:
            meanings: Taken for these tools; None goes by words.
        """
        meaning = None
        if meanings is not None:
            meanings.renew(self.tools)
            worded = self._finder.patterns_of_words(patterns)
            meaning = await meanings.of(self.tools, worded, wait_s=MAKING_S)
        return [self.table.resolve(tool.name) for tool in self._finder.find(patterns, meaning)]


def _found_by(entry: Entry) -> mcp_bridge.ToolInfo:
    spec = entry.spec
    return mcp_bridge.ToolInfo(
        name=entry.exposed,
        server=spec.source,
        tool=spec.own_name or spec.name,
        description=spec.details or spec.description,
        input_schema=spec.parameters,
        examples=tuple(mcp_bridge.Example(e.utterance, e.arguments) for e in spec.examples),
    )
