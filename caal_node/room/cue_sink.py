"""The interface that plays cues: a room's track, local speakers and a recorder implement it."""

from __future__ import annotations

from typing import Protocol

from caal_node.room.cues import Samples


class CueSink(Protocol):
    """Plays short sounds, one after the other, and can stop at once."""

    def play(self, samples: Samples) -> None:
        """Play `samples` now, or after the sound that is still playing. It never blocks."""
        ...

    def stop(self) -> None:
        """Stop the sound, and drop all that was not heard yet."""
        ...

    async def aclose(self) -> None: ...


class SilentCueSink:
    """A sink without sound, with which the cues are still reported as events."""

    def play(self, samples: Samples) -> None:
        """Play nothing."""

    def stop(self) -> None:
        """Do nothing, as nothing plays."""

    async def aclose(self) -> None:
        """Do nothing, as nothing is open."""


class LateCueSink:
    """A sink that can be used before its room is connected.

    It is silent until `ready` gives it the sink that plays its sounds.
    """

    def __init__(self) -> None:
        self._sink: CueSink | None = None

    def ready(self, sink: CueSink) -> None:
        self._sink = sink

    def play(self, samples: Samples) -> None:
        if self._sink is not None:
            self._sink.play(samples)

    def stop(self) -> None:
        if self._sink is not None:
            self._sink.stop()

    async def aclose(self) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            await sink.aclose()
