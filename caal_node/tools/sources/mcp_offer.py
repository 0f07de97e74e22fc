"""What the model is offered of the MCP servers' tools.

Few tools are offered as they are. Where their schemas are more than `max_tokens`, the model is
offered `mcp_discover` alone; what it finds stays callable, in the order found, until the session
ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import mcp_bridge
from caal_node.context.token_estimate import tools_tokens
from caal_node.core.errors import InvalidArguments
from caal_node.core.tool_spec import Effect, Example, ToolSpec
from caal_node.tools.table import ToolTable

FOUND_BYTES: Final = 24_000
"""Bytes of schemas that searches have added, as compact JSON: some 6,000 tokens. Past it the ones
found first go, as otherwise there would be no room left to talk in."""
CALL_CAP_S: Final = mcp_bridge.Limits().call_cap_s + 5.0
"""Seconds of a whole call. The bridge's own cap comes first, as its error says more."""
MCP_SOURCE: Final = "mcp"
"""The source of the search tool, which belongs to no server."""
_FLOOD: Final = 3
"""Times `max_tokens`. A server that adds some tools does not come near it."""


class McpToolOffer:
    """All tools of the MCP servers, and those of them that the model is offered."""

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._tools: tuple[mcp_bridge.ToolInfo, ...] = ()
        """All of them, in the order in which they came up."""
        self._found: dict[str, mcp_bridge.ToolInfo] = {}
        self._search_tool: mcp_bridge.ToolInfo | None = None

    @property
    def is_searched(self) -> bool:
        """Whether the model has to search for the tools."""
        return self._search_tool is not None

    def fits(self, tokens: int) -> bool:
        """Say whether tools of so many tokens are offered as they are."""
        return tokens <= self._max_tokens

    def replace(self, tools: Sequence[mcp_bridge.ToolInfo], tokens: int) -> None:
        """Take `tools` for all that there are, at a reload."""
        self._keep_order(tools)
        self._search_tool = None if self.fits(tokens) else self._make_search_tool()

    def replace_live(self, tools: Sequence[mcp_bridge.ToolInfo], tokens: int) -> None:
        """Take `tools` for all that there are, between two reloads.

        Whether tools are searched for is settled at a reload: a change on the way would put another
        beginning into the prompt. Only a flood, which no prompt could hold, changes it.
        """
        self._keep_order(tools)
        if self._search_tool is None and tokens > _FLOOD * self._max_tokens:
            self._search_tool = self._make_search_tool()

    def add(self, tools: Sequence[mcp_bridge.ToolInfo]) -> None:
        """Make what a search has found callable."""
        new = {tool.name: tool for tool in tools}
        self._found |= new
        sizes = {name: mcp_bridge.schema_size(tool) for name, tool in self._found.items()}
        excess = sum(sizes.values()) - FOUND_BYTES
        for name in list(self._found):
            if excess > 0 and name not in new:
                del self._found[name]
                excess -= sizes[name]

    @property
    def found(self) -> frozenset[str]:
        """The names that searches have made callable."""
        return frozenset(self._found)

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools that the model is offered, in a fixed order."""
        if self._search_tool is None:
            return tuple(map(tool_spec, self._tools))
        return (tool_spec(self._search_tool), *map(tool_spec, self._found.values()))

    def _keep_order(self, tools: Sequence[mcp_bridge.ToolInfo]) -> None:
        """Keep the order of known tools, and put new ones behind them."""
        now = {tool.name: tool for tool in tools}
        known = dict.fromkeys(tool.name for tool in self._tools if tool.name in now)
        self._tools = tuple(now[name] for name in known | now)
        self._found = {name: now[name] for name in self._found if name in now}

    def _make_search_tool(self) -> mcp_bridge.ToolInfo:
        return mcp_bridge.discover_tool(list(dict.fromkeys(tool.server for tool in self._tools)))


def tool_spec(tool: mcp_bridge.ToolInfo) -> ToolSpec:
    """Return the tool as the table wants it."""
    return ToolSpec(
        tier="mcp",
        source=tool.server or MCP_SOURCE,
        name=tool.name,
        wanted=tool.name,
        description=tool.description,
        parameters=tool.input_schema,
        examples=tuple(Example(e.say, e.arguments) for e in tool.examples),
        read_only=tool.read_only,
        # A server's word can only raise what its tool is taken for.
        effect=_effect(tool),
        annotations=tool.hints,
        own_name=tool.tool,
        # Silence ends a call long before; one that reports its progress, or asks, may go on.
        timeout_s=CALL_CAP_S if tool.server else None,
        remembered=bool(tool.server),
    )


def _effect(tool: mcp_bridge.ToolInfo) -> Effect:
    if not tool.server:
        return "read"  # the search is this program's own
    return "destructive" if "destructiveHint" in tool.hints else "write"


def schema_tokens(tools: Sequence[mcp_bridge.ToolInfo]) -> int:
    """Return the tokens of the schemas as the model would read them; 500 take 30 ms."""
    return tools_tokens(entry.schema for entry in ToolTable(map(tool_spec, tools)))


def search_patterns(value: object) -> list[str]:
    """Return what a model wants to find; it may write one text in place of a list.

    Raises:
        InvalidArguments: there is nothing to look for.
    """
    given = cast("list[object]", value if isinstance(value, list) else [value])
    patterns = [text for text in given if isinstance(text, str) and text.strip()]
    if not patterns:
        raise InvalidArguments('patterns: write a list of words, such as ["weather forecast"]')
    return patterns
