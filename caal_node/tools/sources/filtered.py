"""A source that gives out only some of its tools."""

from __future__ import annotations

from collections.abc import Callable

from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.source import ToolProvider
from caal_node.tools.sources.wrapper import WrapperSource


class FilteredSource(WrapperSource):
    """Leaves out the tools that `keep` says no to: they are neither listed nor callable.

    `keep` is asked about `mcp_discover` as well, whose answers may still name what is left out; a
    call of that ends as one of an unknown tool.
    """

    def __init__(self, wrapped: ToolProvider, keep: Callable[[ToolSpec], bool]) -> None:
        super().__init__(wrapped)
        self._keep = keep

    def adapt(self, spec: ToolSpec) -> ToolSpec | None:
        return spec if self._keep(spec) else None
