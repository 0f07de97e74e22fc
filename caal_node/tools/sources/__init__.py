"""Sources of tools, and wrappers around sources that change one thing each.

    tiers = {"mcp": ApprovalRequiredSource(McpToolSource(path, call_timeout_s=20), approve)}
    agent = CaalAgent(tiers=tiers)

The agent's own methods are the first tier. They are LiveKit function tools already, and
`caal_node.tools.sources.methods` sends them through the same pipeline.
"""

from caal_node.tools.source import ToolListing, ToolSource
from caal_node.tools.sources.mcp import McpToolSource
from caal_node.tools.sources.n8n import N8nToolSource
from caal_node.tools.sources.wrappers import (
    ApprovalRequiredSource,
    FilteredSource,
    PrefixedSource,
    TimedSource,
    WrapperSource,
)

__all__ = [
    "ApprovalRequiredSource",
    "FilteredSource",
    "McpToolSource",
    "N8nToolSource",
    "PrefixedSource",
    "TimedSource",
    "ToolListing",
    "ToolSource",
    "WrapperSource",
]
