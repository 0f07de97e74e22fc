"""A local server that replays a real n8n 2.41.1: its public API and its webhooks."""

from tests.recorded_n8n.replay.replayed_n8n import ReplayedN8n

__all__ = ["ReplayedN8n"]
