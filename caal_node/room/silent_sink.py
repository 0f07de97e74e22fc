"""A sink for where nothing can sound: the cues are told as events all the same."""

from __future__ import annotations

from caal_node.room.cues import Samples


class SilentSink:
    def play(self, samples: Samples) -> None:
        """Nothing to hear."""

    def stop(self) -> None:
        """Nothing to stop."""

    async def aclose(self) -> None:
        """Nothing to close."""
