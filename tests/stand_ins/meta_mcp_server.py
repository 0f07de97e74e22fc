"""An MCP server of the SDK over stdio, whose tool `seen` answers with its call's `_meta`."""

from __future__ import annotations

import json

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("meta")


@server.tool()
async def seen(ctx: Context) -> str:
    """Tell what came beside the arguments."""
    return json.dumps(ctx.request_context.meta, default=str)


@server.tool()
async def fails() -> str:
    """Fail always."""
    raise ValueError("a secret reason")


if __name__ == "__main__":
    server.run()
