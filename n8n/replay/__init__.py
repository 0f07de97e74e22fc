"""A local server that replays a real n8n 2.41.1, for tests and for the demo."""

from n8n.replay.recorded import HeldHook, RecordedN8n, Seen

__all__ = ["HeldHook", "RecordedN8n", "Seen"]
