"""Everything there is to call, also what the model has to search for, and how it is searched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import mcp_bridge
from caal_node.tools.spec import ToolSpec
from caal_node.tools.table import Entry, ToolTable
from mcp_bridge.discover import Finder


class Whole:
    """Immutable. Making it takes 0.6 ms a tool, so make it beside the event loop."""

    def __init__(self, specs: Sequence[ToolSpec], table: Callable[..., ToolTable]) -> None:
        self.specs: Final = tuple(specs)
        self.table: Final = table(specs)
        self._finder: Final = Finder([_found_by(entry) for entry in self.table])

    def find(self, patterns: Sequence[str]) -> list[Entry]:
        """What matches, best first: ranked as `mcp_discover` ranks, over all tiers."""
        return [self.table.resolve(tool.name) for tool in self._finder.find(patterns)]


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
