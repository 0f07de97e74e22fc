"""What the tests of timers have in place of a room, a clock and waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from caal_node.core.events import CueKind, Event, Events
from caal_node.toolsets.base import ToolsetServices

BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2026, 11, 23, 17, 50, tzinfo=UTC)
"""Monday, ten to seven in the evening in Berlin."""
_STEPS = 25
"""Turns of the loop after which what is not in a thread waits for something."""
HEARD_S = 10.0
"""Real seconds to wait for what threads do in milliseconds."""


class HeardAnnouncer:
    """An `Announcer` that keeps what is said, in a room that may be empty."""

    def __init__(self, place: str = "kitchen") -> None:
        self.place = place
        self.somebody_is_there = True
        self.said: asyncio.Queue[str] = asyncio.Queue()
        self.cues: list[CueKind | None] = []
        self.is_in_session = True
        self.asked: list[str] = []
        self.events: list[Event] = []
        """What the timers tell front ends."""
        self._tells: list[Callable[[], None]] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    async def announce(self, words: str, *, cue: CueKind | None = None) -> bool:
        if self.somebody_is_there:
            self.cues.append(cue)
            self.said.put_nowait(words)
        return self.somebody_is_there

    async def ask(self, request: str) -> bool:
        if self.is_in_session:
            self.asked.append(request)
        return self.is_in_session

    def on_arrival(self, tell: Callable[[], None]) -> Callable[[], None]:
        self._tells.append(tell)
        return lambda: self._tells.remove(tell)

    def arrive(self) -> None:
        self.somebody_is_there = True
        for tell in self._tells:
            tell()

    async def next_words(self) -> str:
        """Return the next words that are said; sounds alone are passed over."""
        async with asyncio.timeout(HEARD_S):
            while not (words := await self.said.get()):
                pass
        return words


class MovedTime:
    """A clock that stands until it is moved, and the pauses that wait for it."""

    def __init__(self) -> None:
        self.present = START
        self._pauses: list[tuple[datetime, asyncio.Event]] = []
        self._threads = 0

    def now(self) -> datetime:
        return self.present

    async def pause(self, event: asyncio.Event, seconds: float) -> None:
        over = asyncio.Event()
        pause = self.present + timedelta(seconds=seconds), over
        self._pauses.append(pause)
        waits = [asyncio.ensure_future(each.wait()) for each in (event, over)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
            self._pauses.remove(pause)

    async def in_thread(self, work: Callable[..., Any], *given: Any) -> Any:
        """Stand in for `asyncio.to_thread`, so that no time passes while a thread works."""
        self._threads += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(None, work, *given)
        finally:
            self._threads -= 1

    async def pass_by(self, seconds: float) -> None:
        """Move the clock on, from one pause's end to the next."""
        end = self.present + timedelta(seconds=seconds)
        await self.settled()
        while (first := min((moment for moment, _ in self._pauses), default=end)) <= end:
            self.present = max(first, self.present)
            for moment, over in self._pauses:
                if moment <= self.present:
                    over.set()
            await self.settled()
        self.present = end

    async def settled(self) -> None:
        """Wait until everything waits for the clock, or for what a test does next."""
        async with asyncio.timeout(HEARD_S):
            quiet = 0
            while quiet < _STEPS:
                await asyncio.sleep(0)
                quiet = 0 if self._threads else quiet + 1


def services_of(folder: Path, announcer: HeardAnnouncer, time: MovedTime) -> ToolsetServices:
    return ToolsetServices(
        state=folder,
        timezone=BERLIN,
        now=time.now,
        announcer=announcer,
        events=Events(announcer),
    )
