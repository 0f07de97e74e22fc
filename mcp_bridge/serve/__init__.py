"""Serves a stdio MCP server to others, over WebSocket: `mcp-bridge serve -- COMMAND...`.

    options.py         what was asked for, which of it is refused, and the clients' token
    access_control.py  who may connect (host, path, origin, token), and how many
    half_open.py       connections that are accepted and not let in yet
    bridge.py          the listening server, /health and the drain
    relay.py           one connection and its one process
    pending_calls.py   which calls of a connection have no answer yet
    cli.py             the command line, and the systemd unit

https://modelcontextprotocol.io/specification/2025-11-25/basic/transports allows custom transports
that keep JSON-RPC and the lifecycle; here a text frame is one message, and the subprotocol `mcp`.
"""

from mcp_bridge.serve.bridge import Bridge
from mcp_bridge.serve.options import ServeLimits, ServeOptions, TlsFiles

__all__ = ["Bridge", "ServeLimits", "ServeOptions", "TlsFiles"]
