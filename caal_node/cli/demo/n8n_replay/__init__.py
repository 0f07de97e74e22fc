"""A local server that replays a real n8n 2.41.1, for the demo and for tests."""

from caal_node.cli.demo.n8n_replay.recorded_n8n import RecordedN8n

__all__ = ["RecordedN8n"]
