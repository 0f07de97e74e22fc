"""A sink that can be handed out before its room is connected."""

from __future__ import annotations

from caal_node.room.cue_sink import CueSink
from caal_node.room.cues import Samples


class LateSink:
    """A `CueSink` that is silent until `ready` gives it the one to pass everything on to."""

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
