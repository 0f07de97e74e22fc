"""Rings what is due, again and again until it is stopped, and tells what nobody has heard.

A request that is due is asked in the room once, as if the person made it then. It is late before
its lease ends, so no other process asks it a second time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeAlias

from livekit.agents.utils import aio

from caal_node.core.errors import ToolBroke
from caal_node.core.events import SetTimer, TimersChanged
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.timers.entry import (
    LOST_WORDS,
    Entry,
    Kind,
    missed_words,
    next_time,
    ring_words,
)
from caal_node.toolsets.timers.store import TimerStore

Pause: TypeAlias = Callable[[asyncio.Event, float], Awaitable[None]]
"""Waits until the event is set, or for so many seconds."""

RING_EVERY_S: Final = 6.0
"""Seconds between two rings, in which a person can say something."""
WORDS_EVERY: Final = 4
"""The words are said with every fourth ring, and only the sound is heard between."""
TIMER_RINGS_S: Final = 60.0
"""Seconds that a timer rings. Who has not come by then may be told by a look at the oven."""
LATE_S: Final = 90.0
"""Seconds behind its time from which on a thing does not ring any more, but is told of."""
LEASE_S: Final = 120.0
"""Seconds for which an entry is one process's; it rings in less, also where people talk."""
GRACE_S: Final = 5.0
"""Seconds after which a thing may ring in another room, as its own has no agent."""
POLL_S: Final = 15.0
"""Seconds between two looks at the file and the clock, as another process may have written, the
clock may have been set, or the machine may have slept."""

SHOWN_MAX: Final = 50
"""Entries that front ends are sent; a screen has no room for more."""

_log = logging.getLogger(__name__)


async def pause(event: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set, or for so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


class Ringer:
    """Rings the entries of a store in one room. `run` is its work, and owns every task of it.

    Args:
        alarm_s: Seconds that an alarm rings before it is given up.
        asks: Whether requests that were kept are made; they are told as missed where not.
    """

    def __init__(
        self,
        store: TimerStore,
        services: ToolsetServices,
        *,
        alarm_s: float,
        asks: bool,
        pause: Pause = pause,
    ) -> None:
        self._store: Final = store
        self._services: Final = services
        self._rings_s: Final[dict[Kind, float]] = {
            "timer": TIMER_RINGS_S,
            "alarm": alarm_s,
            "reminder": 0.0,  # once, as its words say all
            "request": 0.0,
        }
        self._asks: Final = asks
        self._pause: Final = pause
        self._look = asyncio.Event()
        self._tells = True
        self._shown: tuple[tuple[SetTimer, ...], int] | None = (), 0
        """What front ends were sent last, and how many more are set; None where somebody has come
        who may not know it."""
        self._ringing: dict[int, asyncio.Task[None]] = {}
        self._telling: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Have the store looked at now, as something in it was changed."""
        self._look.set()

    async def stop(self, entry: Entry) -> None:
        """End the ringing of an entry here; what becomes of the entry is the caller's."""
        if (task := self._ringing.pop(entry.number, None)) is not None:
            await aio.cancel_and_wait(task)

    async def run(self) -> None:
        """Ring what is due until it is cancelled."""
        end_arrivals = self._services.announcer.on_arrival(self._somebody_came)
        try:
            while True:
                self._look.clear()
                try:
                    wait_s = await self._look_after()
                except ToolBroke as error:
                    _log.warning("%s", error)
                    wait_s = POLL_S
                await self._pause(self._look, wait_s)
        finally:
            end_arrivals()
            tasks = [*self._ringing.values(), *([self._telling] if self._telling else [])]
            await aio.cancel_and_wait(*tasks)

    @property
    def _now(self) -> datetime:
        return self._services.now().astimezone(self._services.timezone)

    def _somebody_came(self) -> None:
        self._tells = True
        self._shown = None
        self._look.set()

    async def _look_after(self) -> float:
        """Begin what is due, and return the seconds until the next look."""
        now, place = self._now.timestamp(), self._services.announcer.place
        for entry in await self._store.claim_due(now, place, GRACE_S, LEASE_S):
            if entry.number in self._ringing:
                continue  # one that waits for another's words has outlived its lease
            if now - entry.due > LATE_S:
                await self._end(entry, heard=False)
            else:
                task = asyncio.create_task(self._ring(entry), name="caal-timer-rings")
                self._ringing[entry.number] = task
        if self._tells and (self._telling is None or self._telling.done()):
            self._tells = False
            self._telling = asyncio.create_task(self._tell_missed(), name="caal-timer-tells")
        entries = await self._store.all()
        self._show(entries)
        waits = [entry.due for entry in entries if entry.state == "waiting"]
        soon = min(waits, default=now + POLL_S) - self._now.timestamp()
        # What is due and was not taken is another room's, whose agent may be gone.
        return min(soon if soon > 0 else GRACE_S, POLL_S)

    def _show(self, entries: Sequence[Entry]) -> None:
        """Send front ends what is set, if they may not know it."""
        is_set = [entry for entry in entries if entry.state != "missed"]
        shown = tuple(
            SetTimer(*(each.number, each.kind, each.name, each.due), each.state == "ringing")
            for each in is_set[:SHOWN_MAX]
        )
        more = len(is_set) - len(shown)
        if (shown, more) != self._shown:
            self._shown = shown, more
            self._services.emit(TimersChanged(self._now.timestamp(), shown, more))

    async def _ring(self, entry: Entry) -> None:
        began, rounds, heard = self._now.timestamp(), 0, False
        never = asyncio.Event()
        try:
            while await self._store.renew(entry, self._now.timestamp() + LEASE_S):
                words = "" if rounds % WORDS_EVERY else ring_words(entry, self._now)
                if entry.kind == "request" and not self._asks:
                    break
                somebody_hears = await self._services.announcer.announce(words, cue="ring")
                if entry.kind == "request":  # a lamp goes off although nobody hears of it
                    until = self._now.timestamp() + LEASE_S
                    # What was cancelled in another room meanwhile is nothing to be told of.
                    is_wanted = await self._store.renew(entry, until)
                    heard = not is_wanted or await self._services.announcer.ask(entry.name)
                    break
                if not somebody_hears:
                    break
                heard, rounds = True, rounds + 1
                if self._now.timestamp() - began >= self._rings_s[entry.kind]:
                    break
                await self._pause(never, RING_EVERY_S)
        except ToolBroke as error:
            _log.warning("%s", error)
        finally:
            if self._ringing.pop(entry.number, None) is not None:  # nobody has stopped it
                with suppress(ToolBroke):
                    await self._end(entry, heard=heard)
                self._look.set()

    async def _end(self, entry: Entry, *, heard: bool) -> None:
        """Forget an entry that has rung, or keep it to be told, or to come again."""
        self._tells |= not heard
        if (again := next_time(entry, self._now)) is not None:
            # First what was missed: between the two it is told twice rather than never.
            if not heard:
                once = replace(entry, weekdays="", state="missed", lease=0.0, number=0)
                await self._store.add(once)
            await self._store.update(again)
        elif heard:
            await self._store.remove(entry)
        else:
            await self._store.update(replace(entry, state="missed", lease=0.0))

    async def _tell_missed(self) -> None:
        if await self._store.take_lost():
            told = False
            try:
                told = await self._services.announcer.announce(LOST_WORDS, cue="ring")
            finally:
                if not told:
                    await self._store.keep_lost()
        missed = await self._store.claim_missed(self._now.timestamp(), LEASE_S)
        if not missed:
            return
        told = False
        try:
            words = missed_words(missed, self._now)
            told = await self._services.announcer.announce(words, cue="ring")
        finally:
            for entry in missed:
                if told:
                    await self._store.remove(entry)
                else:
                    await self._store.update(replace(entry, state="missed", lease=0.0))
