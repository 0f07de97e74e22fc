"""Where cues go: a port, which a room's track, a local audio loop and a recorder all fit."""

from __future__ import annotations

from typing import Protocol

from caal_node.room.cues import Samples


class CueSink(Protocol):
    """Plays short sounds, one after the other, and can fall silent at once."""

    def play(self, samples: Samples) -> None:
        """Hand `samples` over to be heard now, behind what still sounds. It never blocks."""
        ...

    def stop(self) -> None:
        """Fall silent; what was handed over and has not been heard yet never is."""
        ...

    async def aclose(self) -> None: ...


class SilentCueSink:
    """A sink for where nothing can sound: the cues are told as events all the same."""

    def play(self, samples: Samples) -> None:
        """Play nothing."""

    def stop(self) -> None:
        """Do nothing, as nothing sounds."""

    async def aclose(self) -> None:
        """Do nothing, as nothing is open."""


class LateCueSink:
    """A sink that can be handed out before its room is connected.

    It is silent until `ready` gives it the sink that it passes everything on to.
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
