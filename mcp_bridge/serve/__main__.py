"""`python -m mcp_bridge.serve` is `mcp-bridge`."""

from mcp_bridge.serve.cli import main

main()
