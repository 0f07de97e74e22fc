"""Where the demo plays: a port. A real room fits it, and so does a loop inside one process."""

from __future__ import annotations

import asyncio
from typing import Protocol, Self

from caal_node.cli.demo.audio_timeline import AudioTimeline
from caal_node.cli.demo.spoken_requests import SpokenRequest
from caal_node.core.events import Event


class DemoScene(Protocol):
    """`async with scene:` ends when everything it started has ended."""

    timeline: AudioTimeline
    """What the participant hears, and says."""
    events: asyncio.Queue[Event]
    """What the room tells, in order."""

    async def __aenter__(self) -> Self:
        """Open the place and wait until the agent listens and its model is warm.

        Raises:
            CaalError: it did not come up; the message says why.
        """
        ...

    async def __aexit__(self, *_: object) -> None: ...

    async def speak(self, request: SpokenRequest) -> None:
        """Let the participant say it, in real time; returns when the last sample is out."""
        ...
