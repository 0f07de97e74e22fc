"""Timers, alarms and reminders: they ring in the room, and outlive restarts and empty rooms."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal, Self

from livekit.agents.llm import Tool, Toolset
from livekit.agents.utils import aio
from pydantic import Field

from caal_node.core.errors import InvalidArguments, ToolBroke, ToolUnavailable
from caal_node.core.prompt_files import sentence
from caal_node.tools.source import Undoable, VerbatimResult
from caal_node.tools.undo import not_undone
from caal_node.toolsets.base import (
    ConfiguredToolset,
    NoAnnouncer,
    ToolsetOptions,
    ToolsetServices,
    tool,
)
from caal_node.toolsets.timers.entry import (
    LOST_WORDS,
    Entry,
    How,
    Kind,
    asked_time,
    called,
    changed,
    left_words,
    length_words,
    list_words,
    moment_words,
    next_due,
    next_time,
    plain_name,
    plain_text,
    set_words,
    snoozed,
    told_apart,
)
from caal_node.toolsets.timers.ringer import Pause, Ringer, pause
from caal_node.toolsets.timers.store import TimerStore
from caal_node.toolsets.when import asked_length, read_length, read_when

# Finds which of the things that are set a person means: "the pasta one", "my 7 o'clock alarm".

_WORD: Final = re.compile(r"[^\W_]+")
_SAYS_NOTHING: Final = frozenset(
    """a an and at for in is it it's its me mine my of on one ones please set that the them this
    to timer timers alarm alarms reminder reminders request requests all every both
    current running ringing i s everything""".split()  # noqa: SIM905 - a list of words reads better as words
)
_ALL: Final = frozenset(
    {"all", "every", "everything", "both", "timers", "alarms", "reminders", "requests"}
)
_NEAR_S: Final = 30.0
"""Seconds by which "with ten minutes left" may be off, as time passes while people speak."""
_KINDS: Final = ("timer", "alarm", "reminder", "request")


def entries_meant(which: str, entries: Sequence[Entry], now: datetime) -> list[Entry]:
    """Return the entries that words may mean: one, none, or several that they don't tell apart.

    Words that say nothing ("the timer", "it") mean all of the kind that they name, else all; and of
    these the ones that ring, if any do.
    """
    words = _WORD.findall(which.casefold())
    kinds = [kind for kind in _KINDS if kind in words or f"{kind}s" in words]
    of_kind = [entry for entry in entries if entry.kind in kinds] or list(entries)
    telling = {_stem(word) for word in words} - {_stem(word) for word in _SAYS_NOTHING}
    if not telling:
        ringing = [entry for entry in of_kind if entry.state == "ringing"]
        return of_kind if means_all(which) or not ringing else ringing
    for pool in (of_kind, entries):
        if named := _named(telling, pool):
            return (_timed(which, named, now) or named) if len(named) > 1 else named
        if timed := _timed(which, pool, now):
            return timed
    if len(of_kind) > 1 and telling & {"last", "newest", "latest"}:
        return [max(of_kind, key=lambda entry: entry.number)]
    if len(of_kind) > 1 and telling & {"first", "next", "oldest"}:
        return [min(of_kind, key=lambda entry: entry.due)]
    return []


def means_all(which: str) -> bool:
    """Say whether words mean every one of a kind: "all timers", "both", "my alarms"."""
    return bool(_ALL.intersection(_WORD.findall(which.casefold())))


def _stem(word: str) -> str:
    return word[:-1] if word.endswith("s") and len(word) > 3 else word


def _named(telling: set[str], pool: Sequence[Entry]) -> list[Entry]:
    """Return the entries whose names share the most words with what was said."""
    shared = [
        len(telling & {_stem(word) for word in _WORD.findall(entry.name.casefold())})
        for entry in pool
    ]
    best = max(shared, default=0)
    found = [entry for entry, count in zip(pool, shared, strict=True) if count == best > 0]
    exact = [
        entry
        for entry in found
        if {_stem(word) for word in _WORD.findall(entry.name.casefold())} <= telling
    ]
    return exact or found


def _timed(which: str, pool: Sequence[Entry], now: datetime) -> list[Entry]:
    """Return the entries with the length or the time that was said."""
    length = read_length(which)
    if length is not None:
        seconds = length.total_seconds()
        return [entry for entry in pool if entry.length_s == seconds] or [
            entry for entry in pool if abs(entry.due - now.timestamp() - seconds) < _NEAR_S
        ]
    when = read_when(which, now)
    if when is None or when.kind == "days":
        return []
    return [
        entry
        for entry in pool
        if _shows(entry, now) % 720 == (when.start.hour * 60 + when.start.minute) % 720
    ]


def _shows(entry: Entry, now: datetime) -> int:
    due = entry.due_in(now.tzinfo)
    return due.hour * 60 + due.minute


_log = logging.getLogger(__name__)

_MINUTE_S: Final = 60.0
_NAMED_MAX: Final = 5
"""Names of what may be meant that the model and the person are told."""


class TimersOptions(ToolsetOptions):
    """The keys of `[toolsets.timers]`. All of them have a default."""

    snooze_minutes: float = Field(
        10, ge=1, le=120, description="Minutes that a snoozed alarm waits"
    )
    alarm_minutes: float = Field(
        5, ge=0.5, le=60, description="Minutes that an alarm rings if nobody stops it"
    )
    requests: bool = Field(
        default=False,
        description='May requests be kept, such as "lights off at ten"? Each asks for a yes',
    )


class Timers(ConfiguredToolset):
    """Timers, alarms and reminders, several at once. They are kept in a file."""

    NAME = "timers"
    SUMMARY = "Sets timers, alarms and reminders that ring in the room, also after a restart."
    Options = TimersOptions

    def __init__(
        self,
        options: ToolsetOptions | None = None,
        services: ToolsetServices | None = None,
        *,
        pause: Pause = pause,
    ) -> None:
        super().__init__(options, services)
        self._store: Final = TimerStore(self.services.state)
        alarm_s = self.options.alarm_minutes * _MINUTE_S
        self._ringer: Final = Ringer(
            self._store,
            self.services,
            alarm_s=alarm_s,
            asks=self.options.requests,
            pause=pause,
        )
        self._running: asyncio.Task[None] | None = None

    @property
    def tools(self) -> Sequence[Tool | Toolset]:
        """The tools, without `schedule` where the owner wants no requests to be kept."""
        given = super().tools
        return given if self.options.requests else [t for t in given if t.id != "schedule"]

    async def setup(self) -> Self:
        """Begin to ring what is due."""
        await super().setup()
        if self._running is None:
            try:
                await self._follow_zone()
            except ToolBroke as error:  # every call says so, too
                _log.warning("%s", error)
            self._running = asyncio.create_task(self._ringer.run(), name="caal-timers")
        return self

    async def aclose(self) -> None:
        """End the ringing; what is set stays in the file."""
        running, self._running = self._running, None
        if running is not None:
            await aio.cancel_and_wait(running)
        await self._store.aclose()
        await super().aclose()

    async def check(self) -> str:
        """Read the file, and count what is set."""
        count = len(await self._store.all())
        await self._store.aclose()
        return f"{count} set, in {self._store.path}"

    @tool("write")
    async def set_timer(self, length: str, name: str = "") -> Undoable:
        """Start a timer that rings after a length of time.

        Example: set a timer for ten minutes -> {"length": "10 minutes"}
        Example: start a pasta timer, an hour and a half -> {"length": "1.5 hours", "name": "pasta"}

        Args:
            length: How long, in the person's words, with its unit.
            name: What it is for, if the person said it.
        """
        seconds = asked_length("length", length).total_seconds()
        due = self._now.timestamp() + seconds
        return await self._set(
            Entry("timer", plain_name(name), due, seconds, place=self.services.announcer.place)
        )

    @tool("write")
    async def set_alarm(self, when: str, name: str = "") -> Undoable:
        """Set an alarm that wakes people at a time of day, once or on several days.

        Example: wake me at half past six tomorrow -> {"when": "half past six tomorrow"}
        Example: set an alarm for seven every weekday -> {"when": "every weekday at 7"}

        Args:
            when: When it rings, in the person's words.
            name: What it is for, if the person said it.
        """
        return await self._set_at("alarm", plain_name(name), when)

    @tool("write")
    async def set_reminder(self, text: str, when: str) -> Undoable:
        """Remind the person of something at a time.

        Example: remind me to call mum at 6 -> {"text": "call mum", "when": "at 6"}
        Example: remind me about the oven in an hour -> {"text": "the oven", "when": "in an hour"}

        Args:
            text: What to remind of.
            when: When, in the person's words.
        """
        name = plain_text(text).strip(" .") or "something"
        return await self._set_at("reminder", name.removeprefix("to ").removeprefix("about "), when)

    # What it does later may destroy, so it needs a yes, with the words read back.
    @tool("destructive")
    async def schedule(self, request: str, when: str) -> Undoable:
        """Do something at a later time: the request is made then, as if the person said it.

        Example: turn the heater off at ten -> {"request": "turn the heater off", "when": "at ten"}
        Example: lock up in an hour -> {"request": "lock up", "when": "in an hour"}

        Args:
            request: What to do then, in the person's words, without the time.
            when: When, in the person's words.
        """
        words = plain_text(request).strip(" .")
        if not words:
            raise _asking("request: it says nothing.", "What shall I do then?")
        return await self._set_at("request", words, when)

    @tool("read")
    async def list_timers(
        self, kind: Literal["timer", "alarm", "reminder", "all"] = "all", which: str = ""
    ) -> VerbatimResult:
        """Tell which timers, alarms and reminders are set, and how long is left.

        Example: how long is left on the pasta timer -> {"kind": "timer", "which": "pasta"}
        Example: what alarms do I have -> {"kind": "alarm"}

        Args:
            kind: What is asked about.
            which: The one that is asked about, if the person said which.
        """
        now, entries = self._now, await self._open_entries()
        lost = f"{LOST_WORDS} " if await self._store.take_lost() else ""
        of_kind = [entry for entry in entries if kind in ("all", entry.kind)]
        if which.strip() and (meant := entries_meant(which, of_kind or entries, now)):
            of_kind = meant
        words = list_words(of_kind, now, "" if kind == "all" else kind)
        return VerbatimResult([_record(entry, now) for entry in of_kind], f"{lost}{words}")

    @tool("write")
    async def change_timer(
        self, which: str, time: str, how: How = "set"
    ) -> Undoable | VerbatimResult:
        """Change a timer, alarm or reminder that is set already.

        Example: add five minutes to the pasta -> {"which": "pasta", "time": "5 min", "how": "add"}
        Example: make my alarm eight o'clock -> {"which": "alarm", "time": "8 o'clock"}

        Args:
            which: Which one, in the person's words.
            time: The new time or length, or how much more or less.
            how: Whether it is the new time, or more, or less.
        """
        now, entry = self._now, await self._one(which)
        later = replace(changed(entry, time, how, now), zone=str(self.services.timezone))
        await self._replace(entry, later)
        words = f"{left_words(later, now)}."
        return self._undoable(_record(later, now), words, [later], [entry])

    @tool("write")
    async def cancel_timer(self, which: str = "") -> Undoable | VerbatimResult:
        """Cancel a timer, alarm or reminder, or stop the one that is ringing.

        Example: stop -> {}
        Example: cancel the egg timer -> {"which": "egg timer"}
        Example: delete all my alarms -> {"which": "all alarms"}

        Args:
            which: Which one, in the person's words; empty for the one that rings.
        """
        entries = await self._open_entries()
        meant = entries_meant(which, entries, self._now)
        ringing = [entry for entry in meant if entry.state == "ringing"]
        if not (means_all(which) or (ringing and len(ringing) == len(meant))):
            meant = [_only(meant, entries, which, self._now)]
        for entry in meant:
            await self._ringer.stop(entry)
            again = next_time(entry, self._now) if entry.state == "ringing" else None
            if again is None:
                await self._store.remove(entry)
            else:
                await self._store.update(again)
        self._ringer.look()
        if ringing and len(ringing) == len(meant):
            words = "Okay, stopped."
        elif len(meant) == 1:
            words = f"The {called(meant[0])} is cancelled."
        else:
            words = f"All {len(meant)} are cancelled." if meant else "Nothing is set."
        return self._undoable({"cancelled": [called(each) for each in meant]}, words, [], meant)

    @tool("write")
    async def snooze_alarm(self, length: str = "") -> VerbatimResult:
        """Let the alarm or timer that is ringing ring again a little later.

        Example: snooze -> {}
        Example: five more minutes, please -> {"length": "5 minutes"}

        Args:
            length: How much later, if the person said it.
        """
        seconds = self.options.snooze_minutes * _MINUTE_S
        if length.strip():
            seconds = asked_length("length", length).total_seconds()
        entries = await self._open_entries()
        ringing = [entry for entry in entries if entry.state == "ringing"]
        if not ringing:
            raise _asking("Nothing is ringing.", "Nothing is ringing.")
        for entry in ringing:
            later, again = snoozed(entry, seconds, self._now), next_time(entry, self._now)
            await self._replace(entry, later if again is None else again)
            if again is not None:
                await self._store.add(replace(later, number=0))
        self._ringer.look()
        words = f"Okay, again in {length_words(seconds)}."
        return VerbatimResult({"snoozed": [called(entry) for entry in ringing]}, words)

    @property
    def _now(self) -> datetime:
        return self.services.now().astimezone(self.services.timezone)

    async def _open_entries(self) -> list[Entry]:
        return [entry for entry in await self._store.all() if entry.state != "missed"]

    async def _set_at(self, kind: Kind, name: str, when: str) -> Undoable:
        at = asked_time(when, kind, self._now)
        return await self._set(
            Entry(
                kind,
                name,
                at.moment.timestamp(),
                wall=at.wall,
                weekdays=at.weekdays,
                zone=str(self.services.timezone),
                place=self.services.announcer.place,
            )
        )

    async def _set(self, entry: Entry) -> Undoable:
        if isinstance(self.services.announcer, NoAnnouncer):
            silent = ToolUnavailable("No timer can ring here, as no announcer is given.")
            silent.words = "I can't set that, as nothing here could ring."
            raise silent
        now, entry = self._now, await self._store.add(entry)
        self._ringer.look()
        back = partial(self._put_back, [entry], [])
        return Undoable(_record(entry, now), back, set_words(entry, now))

    async def _one(self, which: str) -> Entry:
        entries = await self._open_entries()
        return _only(entries_meant(which, entries, self._now), entries, which, self._now)

    def _undoable(
        self, value: Any, words: str, left: Sequence[Entry], before: Sequence[Entry]
    ) -> Undoable | VerbatimResult:
        """Return the result of a call that left the entries `left` of those `before`, with its
        undo; what was ringing is not made to ring again."""
        if not before or any(each.state == "ringing" for each in before):
            return VerbatimResult(value, words)
        return Undoable(value, partial(self._put_back, left, before), words)

    async def _put_back(self, left: Sequence[Entry], before: Sequence[Entry]) -> VerbatimResult:
        """Undo a call: set again, for the same moments, what was set `before` it.

        Raises:
            ToolFailure: what it left has changed or rung since, or those moments have passed.
        """
        now = self._now
        again = [each if each.due > now.timestamp() else next_time(each, now) for each in before]
        kept = [each for each in again if each is not None]
        if before and not kept:
            raise not_undone("undo_too_late")
        if not await self._store.swap(left, kept):
            raise not_undone("undo_changed")
        self._ringer.look()
        words = sentence("undo_timer_set").replace("{timer}", called(left[0])) if left else ""
        words = list_words(kept, now) if kept else words
        return VerbatimResult([_record(each, now) for each in kept], words)

    async def _replace(self, entry: Entry, changed: Entry) -> None:
        await self._ringer.stop(entry)
        await self._store.update(changed)
        self._ringer.look()

    async def _follow_zone(self) -> None:
        """Move what was set by the clock to the same time of the zone that the home has now."""
        zone = self.services.timezone
        for entry in await self._store.all():
            if entry.wall and entry.zone != str(zone) and entry.state == "waiting":
                wall = datetime.fromisoformat(entry.wall)
                due = next_due(wall, entry.weekdays, zone, self._now).timestamp()
                await self._store.update(replace(entry, due=due, zone=str(zone)))


def _record(entry: Entry, now: datetime) -> dict[str, Any]:
    """Return an entry as data for the model and for later turns."""
    record: dict[str, Any] = {"kind": entry.kind, "name": entry.name}
    if entry.kind == "timer":
        record["left"] = length_words(entry.due - now.timestamp())
    record["rings"] = moment_words(entry.due_in(now.tzinfo), now)
    if entry.state == "ringing":
        record["ringing"] = True
    return record


def _only(meant: Sequence[Entry], entries: Sequence[Entry], which: str, now: datetime) -> Entry:
    """Return the one entry that is meant.

    Raises:
        InvalidArguments: there is none, or more than one; the person is asked.
    """
    if len(meant) == 1:
        return meant[0]
    if not entries:
        raise _asking("Nothing is set.", "Nothing is set.")
    pool = (meant or entries)[:_NAMED_MAX]
    names = told_apart(pool, now)
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    if meant:
        raise _asking(f"which: several fit: {listed}. Ask which.", f"Which one: {listed}?")
    raise _asking(
        f"which: nothing that is set fits {which[:40]!r}. There is {listed}.",
        f"I can't find that one. There is {listed.replace(' or ', ' and ')}.",
    )


def _asking(text: str, words: str) -> InvalidArguments:
    error = InvalidArguments(text)
    error.words = words
    return error
