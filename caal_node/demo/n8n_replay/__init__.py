"""A local server that replays a real n8n 2.41.1, for tests and for the demo."""

from caal_node.demo.n8n_replay.recorded_n8n import HeldHook, RecordedN8n, Seen

__all__ = ["HeldHook", "RecordedN8n", "Seen"]
