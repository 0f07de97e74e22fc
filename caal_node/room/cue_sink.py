"""Where cues go: a port. A room's track, a local audio loop and a recorder all fit it."""

from __future__ import annotations

from typing import Protocol

from caal_node.room.cues import Samples


class CueSink(Protocol):
    """Plays short sounds, one after the other, and can fall silent at once."""

    def play(self, samples: Samples) -> None:
        """Hand `samples` over to be heard now, behind what still sounds. Never blocks."""
        ...

    def stop(self) -> None:
        """Fall silent; what was handed over and not heard yet never is."""
        ...

    async def aclose(self) -> None: ...
