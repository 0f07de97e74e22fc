"""A local server that replays a real n8n 2.41.1, for the demo; tests build on it."""

from caal_node.cli.demo.n8n_replay.replayed_n8n import ReplayedN8n

__all__ = ["ReplayedN8n"]
