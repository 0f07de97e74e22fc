"""Keeps servers connected and presents them as one set of tools: `ServerManager`."""
