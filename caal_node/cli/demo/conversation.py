"""The demo's conversation has each request spoken, and counts what comes of it.

It is held in a scene: a real room (`room_scene`) or a loop inside this process (`local_scene`).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, Self

from rich.console import Console

from caal_node.cli.demo.audio import AudioTimeline, SpokenRequest
from caal_node.cli.terminal_transcript import TerminalTranscript
from caal_node.core.errors import CaalError
from caal_node.core.events import Event, ToolCallEnded, TurnEnded, to_json

TURN_S: Final = 90.0
"""Seconds a turn may take on two busy cores; a usual one takes 8 to 15, most of them speech."""
SPEAK_S: Final = 30.0
"""Seconds for one request, in real time; the longest is a tenth of it."""
PAUSE_S: Final = 0.6
"""People leave this many seconds between the agent's last word and the next request."""


class DemoScene(Protocol):
    """A place where an agent hears a participant. It ends all that it has started."""

    timeline: AudioTimeline
    """What the participant hears, and says."""
    events: asyncio.Queue[Event]
    """The events of the conversation, in their order."""

    async def __aenter__(self) -> Self:
        """Start everything, and wait until the agent listens and its model is warm.

        Raises:
            CaalError: it did not come up; the message says why.
        """
        ...

    async def __aexit__(self, *_: object) -> None: ...

    async def speak(self, request: SpokenRequest) -> None:
        """Let the participant say it, in real time; return when the last sample is out."""
        ...


@dataclass(slots=True)
class DemoTotals:
    """Counts of what happened in the conversation."""

    turns: int = 0
    tiers: Counter[str] = field(default_factory=Counter[str])
    cues: int = 0
    failed: int = 0
    turn_ms: list[int] = field(default_factory=list[int])

    def count(self, event: Event) -> None:
        match event:
            case ToolCallEnded(tier=tier, outcome=outcome):
                self.tiers[tier] += 1
                self.failed += outcome != "ok"
            case TurnEnded(duration_ms=took):
                self.turns += 1
                self.turn_ms.append(took)
            case _:
                self.cues += event.type == "cue"


class DemoConversation:
    """Has the requests spoken in `scene`, prints each event, and writes it to `log` as a line."""

    def __init__(self, scene: DemoScene, console: Console, log: Path) -> None:
        self.totals = DemoTotals()
        self._scene = scene
        self._console = console
        self._transcript = TerminalTranscript(console, echo_user=True)
        self._log = log

    async def hold(self, requests: list[SpokenRequest]) -> None:
        """Speak each request, and wait until its turn has ended.

        Raises:
            CaalError: a request could not be spoken, or a turn did not end.
        """
        began = time.monotonic()
        with self._log.open("w", encoding="utf-8") as log:
            for request in requests:
                self._console.print(f"\n[bold]person[/]   “{request.words}”")
                await self._speak(request)
                async for event in self._turn_events():
                    log.write(f'{{"at":{time.monotonic() - began:.3f},{to_json(event)[1:]}\n')
                    self.totals.count(event)
                    self._transcript(event)
                await asyncio.sleep(PAUSE_S)

    async def _speak(self, request: SpokenRequest) -> None:
        try:
            async with asyncio.timeout(SPEAK_S):
                await self._scene.speak(request)
        except TimeoutError:
            raise CaalError(f"a request was not spoken in {SPEAK_S:g} seconds") from None

    async def _turn_events(self) -> AsyncGenerator[Event]:
        try:
            async with asyncio.timeout(TURN_S):
                while True:
                    event = await self._scene.events.get()
                    yield event
                    if isinstance(event, TurnEnded):
                        return
        except TimeoutError:
            raise CaalError(f"a turn did not end in {TURN_S:g} seconds") from None
