"""The third tier: tools of MCP servers, named `server__tool`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import mcp_bridge
from caal_node.errors import ToolBroke, ToolTimeout, ToolUnavailable
from caal_node.tools.spec import Example, ToolSpec
from caal_node.tools.tiers.port import Listing


class McpTier:
    """Reads the configuration file at each discovery, so that a reload sees a new server."""

    def __init__(self, config: Path, *, call_timeout_s: float) -> None:
        self._config = config
        self._call_timeout_s = call_timeout_s
        self._open = AsyncExitStack()
        self._servers: mcp_bridge.ServerManager | None = None

    async def discover(self) -> Listing:
        try:
            configs = await asyncio.to_thread(
                mcp_bridge.load_servers, self._config, missing_ok=True
            )
        except mcp_bridge.ConfigError as error:
            # Servers that run already go on: a slip in the file must not take a live room's tools.
            kept = await self._listed() if self._servers else Listing()
            return Listing(kept.specs, {**kept.failed, self._config.name: str(error)})
        if self._servers is not None:
            await self._servers.reload(configs)
        elif configs:
            self._servers = await self._open.enter_async_context(
                mcp_bridge.ServerManager(configs, call_timeout_s=self._call_timeout_s)
            )
        return await self._listed()

    async def _listed(self) -> Listing:
        if self._servers is None:
            return Listing()
        tools = await self._servers.list_tools()
        specs = tuple(
            ToolSpec(
                tier="mcp",
                source=tool.server,
                name=tool.name,
                wanted=tool.name,
                description=tool.description,
                parameters=tool.input_schema,
                examples=tuple(Example(e.say, e.arguments) for e in tool.examples),
            )
            for tool in tools
        )
        return Listing(specs, dict(self._servers.failed))

    async def call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        if self._servers is None:
            raise ToolUnavailable(f"{spec.source} is not connected.")
        try:
            result = await self._servers.call_tool(
                spec.name, dict(arguments), timeout_s=self._call_timeout_s
            )
        except mcp_bridge.CallTimeout as error:
            raise ToolTimeout(str(error)) from error
        except mcp_bridge.ServerUnavailable as error:
            raise ToolUnavailable(str(error)) from error
        except mcp_bridge.BridgeError as error:
            raise ToolBroke(str(error)) from error
        if result.is_error:
            raise ToolBroke(str(result.value))
        return result.value

    async def aclose(self) -> None:
        self._servers = None
        await self._open.aclose()
