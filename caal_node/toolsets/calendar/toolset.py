"""Calendars by voice: what is on, whether a time is free, and new events."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime, timedelta
from importlib.util import find_spec
from typing import ClassVar, Final

from caal_node.core.errors import ConfigError, InvalidArguments, ToolFailure
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets.base import ConfiguredToolset, ToolsetOptions, ToolsetServices, tool
from caal_node.toolsets.calendar.answers import (
    asks_for_next,
    events_about,
    events_of,
    free_or_not,
)
from caal_node.toolsets.calendar.calendar_event import TITLE_CHARS_MAX, CalendarEvent
from caal_node.toolsets.calendar.ics_writer import NewEvent
from caal_node.toolsets.calendar.known_calendars import KnownCalendars
from caal_node.toolsets.calendar.options import CalendarOptions
from caal_node.toolsets.calendar.repetition import repetition_in
from caal_node.toolsets.calendar.spoken_moments import said_when
from caal_node.toolsets.when import When, asked_length, asked_when, later

SPAN_MAX: Final = timedelta(days=366)
"""The longest span that is read at once; a search without a time goes so far ahead."""
USUAL_LENGTH: Final = timedelta(hours=1)
"""How long an event is where nobody says it, and a time that is asked about."""
_LIBRARIES: Final = ("icalendar", "recurring_ical_events")
_PART_OF_DAY: Final = re.compile(r"\b(?:morning|lunchtime|afternoon|evening|night|tonight)\b", re.I)
_PARTS_H: Final = frozenset({(6, 12), (12, 14), (12, 18), (18, 0)})
"""The first and last hours of what those words mean."""


class Calendar(ConfiguredToolset):
    """Reads calendars on CalDAV servers, in files and at addresses, and adds events."""

    NAME = "calendar"
    SUMMARY = "Says what is in your calendars and when you are free, and adds events."
    EXTRA = "calendar"
    Options: ClassVar[type[ToolsetOptions]] = CalendarOptions

    def __init__(
        self, options: CalendarOptions | None = None, services: ToolsetServices | None = None
    ) -> None:
        if missing := [name for name in _LIBRARIES if find_spec(name) is None]:
            raise ConfigError(f"{missing[0]} is missing; run: pip install 'caal-node[calendar]'")
        super().__init__(options, services)
        self._calendars: Final = KnownCalendars(self.options)

    @property
    def secrets(self) -> tuple[str, ...]:
        return (*super().secrets, *(each.place for each in self.options.published))

    async def check(self) -> str:
        """Say which calendars there are, after each was read.

        Raises:
            ToolFailure: the account or a calendar cannot be read.
        """
        now = self._now()
        sources = await self._calendars.all()
        for each in sources:
            await each.events(now, now + USUAL_LENGTH, self.services.timezone)
        if self.options.add_to:
            await self._calendars.to_write("")
        shown = [each.name + ("" if each.is_writable else " (to read)") for each in sources]
        return f"calendars: {', '.join(shown)}"

    async def aclose(self) -> None:
        await super().aclose()
        await self._calendars.aclose()

    @tool("read")
    async def check_calendar(
        self, when: str = "", about: str = "", calendar: str = ""
    ) -> VerbatimResult:
        """Say what is in the calendar at a time, or when something is.

        Example: what's on tomorrow -> {"when": "tomorrow"}
        Example: when is my dentist appointment -> {"about": "dentist"}
        Example: what's in the work calendar today -> {"when": "today", "calendar": "work"}

        Args:
            when: The time, as it was said, such as "today" or "next week".
            about: What the event is about, in a word or two; "next" for the next one.
            calendar: The calendar's name, if one was named.
        """
        now = self._now()
        if asks_for_next(when):
            when, about = "", about or when
        if about.strip() and not when.strip():
            span = When(now, now + SPAN_MAX, "hours")
        else:
            span = self._span(when or "today", now)
        found = await self._calendars.events(calendar, span.start, span.end, self.services.timezone)
        if about.strip():
            return await asyncio.to_thread(events_about, about.strip(), found, span, now.date())
        return await asyncio.to_thread(events_of, found, span, now.date())

    @tool("read")
    async def check_free_time(self, when: str) -> VerbatimResult:
        """Say whether the person is free at a time.

        Example: am I free on friday afternoon -> {"when": "friday afternoon"}
        Example: do I have time tomorrow at three -> {"when": "tomorrow at three"}

        Args:
            when: The time, as it was said.
        """
        now = self._now()
        span = self._span(when, now)
        is_past = span.end.timestamp() <= now.timestamp()
        start = span.start if is_past else max(span.start, now, key=datetime.timestamp)
        found = await self._calendars.events("", start, span.end, self.services.timezone)
        return await asyncio.to_thread(free_or_not, found, start, span.end, now.date())

    @tool("write")
    async def add_event(
        self, title: str, when: str, length: str = "", calendar: str = "", place: str = ""
    ) -> VerbatimResult:
        """Put an event into the calendar.

        Example: the dentist is on friday at 3 -> {"title": "Dentist", "when": "friday at 3"}
        Example: add yoga every tuesday at six -> {"title": "Yoga", "when": "every tuesday at six"}

        Args:
            title: What it is.
            when: The day and time, as they were said.
            length: How long it takes, if that was said.
            calendar: The calendar's name, if one was named.
            place: Where it is, if that was said.
        """
        now = self._now()
        if not (title := " ".join(title.split())[:TITLE_CHARS_MAX]):
            raise _asking("What shall I put into the calendar?")
        repetition, once = repetition_in(when)
        if repetition is None:
            raise _asking("I can repeat it every day, week, month or year. Which is it?")
        span = asked_when("when", once, now)
        if _is_part_of_day(span, once):
            raise _asking(f"At what time is {title}?")
        end, all_day = span.end, span.kind == "days"
        if length.strip():
            if all_day:
                raise _asking(f"At what time does {title} begin?")
            end = later(span.start, asked_length("length", length).total_seconds())
        elif span.kind == "time":
            end = later(span.start, USUAL_LENGTH.total_seconds())
        if end.timestamp() <= now.timestamp():
            raise _asking("That time is past. When is it?")
        target = await self._calendars.to_write(calendar)
        event = NewEvent(
            title,
            span.start,
            end,
            now,
            " ".join(place.split())[:TITLE_CHARS_MAX],
            all_day,
            repetition.rule,
        )
        await target.add(event)
        made = CalendarEvent(title, span.start, end, target.name, event.place, all_day)
        said = f"I've put {title} into the calendar, {said_when(made, now.date())}"
        said += f", {repetition.words}" if repetition.words else ""
        value = {"added": made.as_record()} | (
            {"repeats": repetition.words} if repetition.words else {}
        )
        return VerbatimResult(value, f"{said}.")

    def _now(self) -> datetime:
        return self.services.now().astimezone(self.services.timezone)

    def _span(self, when: str, now: datetime) -> When:
        """Return a span of time in words; a point lasts as long as most events do."""
        found = asked_when("when", when, now)
        if found.end - found.start > SPAN_MAX:
            raise InvalidArguments("when: ask for a year at most.")
        if found.kind == "time":
            return When(found.start, later(found.start, USUAL_LENGTH.total_seconds()), "hours")
        return found


def _is_part_of_day(span: When, said: str) -> bool:
    """Say whether only "friday afternoon" was said, at which nothing begins."""
    hours = (span.start.hour, span.end.hour)
    return span.kind == "hours" and hours in _PARTS_H and _PART_OF_DAY.search(said) is not None


def _asking(sentence: str) -> ToolFailure:
    failure = InvalidArguments(sentence)
    failure.words = sentence
    return failure
