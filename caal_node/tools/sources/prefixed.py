"""Names that begin with the same word for all tools of one source."""

from __future__ import annotations

from dataclasses import replace

from caal_node.core.tool_spec import ToolSpec
from caal_node.tools.source import ToolProvider
from caal_node.tools.sources.wrapper import WrapperSource


class PrefixedSource(WrapperSource):
    """Puts a prefix in front of the name by which the model knows each tool.

    MCP tools need none, as their names begin with their server's. The answers of `mcp_discover`
    would go on naming the tools without the prefix.
    """

    def __init__(self, wrapped: ToolProvider, prefix: str) -> None:
        """`prefix` is put there as it is, with any separator, such as `"home_"`."""
        super().__init__(wrapped)
        self._prefix = prefix

    def adapt(self, spec: ToolSpec) -> ToolSpec:
        return replace(spec, wanted=f"{self._prefix}{spec.wanted}")
