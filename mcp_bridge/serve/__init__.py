"""Serves a stdio MCP server to others, over WebSocket: `mcp-bridge serve -- COMMAND...`.

    options.py         what was asked for, which of it is refused, and the clients' token
    bridge.py          the listening server, who may connect to it, /health and the drain
    relay.py           one connection, its one process, and the calls without an answer
    cli.py             the command line, and the systemd unit

https://modelcontextprotocol.io/specification/2025-11-25/basic/transports allows custom transports
that keep JSON-RPC and the lifecycle; here a text frame is one message, and the subprotocol `mcp`.
"""

from mcp_bridge.serve.bridge import Bridge
from mcp_bridge.serve.options import ServeLimits, ServeOptions, TlsFiles

__all__ = ["Bridge", "ServeLimits", "ServeOptions", "TlsFiles"]
