"""Holds the tools of all servers: they are found by name, by a similar name, and by search."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from mcp_bridge.core.errors import UnknownTool
from mcp_bridge.core.tools import ToolInfo
from mcp_bridge.discovery.tool_search import ToolFinder
from mcp_bridge.embedding.semantic_index import SemanticIndex

_NEAREST: Final = 5
"""So many similar names are proposed for one that does not exist."""


class ToolTable:
    """The tools that can be called. It is immutable, and a name is looked up in it, never split."""

    def __init__(self, tools: Iterable[ToolInfo] = ()) -> None:
        self.by_name: Final[Mapping[str, ToolInfo]] = MappingProxyType(
            {tool.name: tool for tool in tools}
        )
        self.tools: Final = tuple(self.by_name.values())
        self._finder: ToolFinder | None = None

    def resolve(self, name: str) -> ToolInfo:
        """Gives the tool of that name. Raises: UnknownTool, with the nearest names there are."""
        if (tool := self.by_name.get(name)) is None:
            near = difflib.get_close_matches(name[:64], self.by_name, _NEAREST, 0.3)
            raise UnknownTool(name, near)
        return tool

    async def find(
        self, patterns: str | Sequence[str], meanings: SemanticIndex | None = None
    ) -> tuple[ToolInfo, ...]:
        """Gives the tools that match, best first. The index is made at the first search, in a
        thread.

        Args:
            meanings: Makes the vectors of these tools; None searches by words alone.
        """
        if (finder := self._finder) is None:
            finder = self._finder = await asyncio.to_thread(ToolFinder, self.tools)
        if meanings is None:
            return finder.find(patterns)
        meaning = await meanings.query(self.tools, finder.patterns_of_words(patterns))
        return finder.find(patterns, meaning)

    def differences(self, before: ToolTable) -> dict[str, Any]:
        """Gives the `added`, `removed` and `changed` exposed names, each a tuple in table order."""
        old, new = before.by_name, self.by_name
        return {
            "added": tuple(name for name in new if name not in old),
            "removed": tuple(name for name in old if name not in new),
            "changed": tuple(n for n, tool in new.items() if n in old and old[n] != tool),
        }
