"""Many MCP servers as one set of tools: configured in a file, connected side by side, kept alive.

async with ServerManager(load_servers("mcp_servers.json")) as manager:
    for tool in await manager.list_tools(): ...
    result = await manager.call_tool("time__get_current_time", {"timezone": "Europe/Paris"})
"""

from mcp_bridge.config import load_servers, parse_servers
from mcp_bridge.errors import (
    BadArguments,
    BridgeError,
    CallTimeout,
    ConfigError,
    ServerError,
    ServerUnavailable,
    UnknownTool,
)
from mcp_bridge.limits import Limits
from mcp_bridge.manager import ReloadReport, ServerManager, ServerStatus
from mcp_bridge.servers import Example, ServerConfig
from mcp_bridge.tools import ToolCallResult, ToolInfo

__all__ = [
    "BadArguments",
    "BridgeError",
    "CallTimeout",
    "ConfigError",
    "Example",
    "Limits",
    "ReloadReport",
    "ServerConfig",
    "ServerError",
    "ServerManager",
    "ServerStatus",
    "ServerUnavailable",
    "ToolCallResult",
    "ToolInfo",
    "UnknownTool",
    "load_servers",
    "parse_servers",
]
