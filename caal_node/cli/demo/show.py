"""The demo's run: each spoken request, what comes of it, and the sums at the end."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.console import Console

from caal_node.cli.demo.scene import DemoScene
from caal_node.cli.demo.spoken_requests import SpokenRequest
from caal_node.cli.terminal_transcript import TerminalTranscript
from caal_node.core.errors import CaalError
from caal_node.core.events import Event, ToolCallEnded, TurnEnded, to_json

TURN_S: Final = 90.0
"""Seconds a turn may take on two busy cores; a usual one takes 8 to 15, most of them speech."""
SPEAK_S: Final = 30.0
"""Seconds for one request, in real time; the longest is a tenth of it."""
PAUSE_S: Final = 0.6
"""Between the agent's last word and the next request, as people leave it."""


@dataclass(slots=True)
class DemoTotals:
    """What was seen, and how much of it."""

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


class DemoShow:
    """Plays the requests in `scene` and writes each event to `log`, a line each."""

    def __init__(self, scene: DemoScene, console: Console, log: Path) -> None:
        self.sums = DemoTotals()
        self._scene = scene
        self._console = console
        self._transcript = TerminalTranscript(console, echo_user=True)
        self._log = log

    async def play(self, requests: list[SpokenRequest]) -> None:
        """Raises: CaalError: a turn did not end."""
        began = time.monotonic()
        with self._log.open("w", encoding="utf-8") as log:
            for request in requests:
                self._console.print(f"\n[bold]person[/]   “{request.words}”")
                await self._speak(request)
                async for event in self._turn():
                    log.write(f'{{"at":{time.monotonic() - began:.3f},{to_json(event)[1:]}\n')
                    self.sums.count(event)
                    self._transcript(event)
                await asyncio.sleep(PAUSE_S)

    async def _speak(self, request: SpokenRequest) -> None:
        try:
            async with asyncio.timeout(SPEAK_S):
                await self._scene.speak(request)
        except TimeoutError:
            raise CaalError(f"a request was not spoken in {SPEAK_S:g} seconds") from None

    async def _turn(self) -> AsyncGenerator[Event]:
        try:
            async with asyncio.timeout(TURN_S):
                while True:
                    event = await self._scene.events.get()
                    yield event
                    if isinstance(event, TurnEnded):
                        return
        except TimeoutError:
            raise CaalError(f"a turn did not end in {TURN_S:g} seconds") from None
