"""The command line: `caal-node`."""

from caal_node.cli.app import main

__all__ = ["main"]
