"""Calendars by voice: what is on, whether a time is free, and new events."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from importlib.util import find_spec
from typing import Any, ClassVar, Final

from caal_node.core.errors import ConfigError, InvalidArguments, ToolFailure
from caal_node.grounding.spoken_numbers import WORDS
from caal_node.policy.heard_words import COMMON, stem, words
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets.base import ConfiguredToolset, ToolsetOptions, ToolsetServices, tool
from caal_node.toolsets.calendar.ics_events import TITLE_CHARS_MAX, CalendarEvent, NewEvent
from caal_node.toolsets.calendar.known_calendars import CalendarOptions, FoundEvents, KnownCalendars
from caal_node.toolsets.when import When, asked_length, asked_when, at_wall_clock, later

# Days, times of day and spans as they are said: "tomorrow", "on Friday", "from 3 to 4:30 pm".

_NEAR_DAYS: Final = 7
"""Up to then a weekday says which day is meant."""
_SAID_PARTS: Final = {
    (6, 12): "morning",
    (12, 18): "afternoon",
    (18, 24): "evening",
}


def said_day(day: date, today: date) -> str:
    """Return a day as an answer has it: "today", "on Friday", "on Friday 5 June"."""
    away = (day - today).days
    if away in (-1, 0, 1):
        return ("yesterday", "today", "tomorrow")[away + 1]
    weekday = str(WORDS["weekdays"][day.weekday()]).capitalize()
    if 0 < away < _NEAR_DAYS:
        return f"on {weekday}"
    month = str(WORDS["months"][day.month - 1]).capitalize()
    year = f" {day.year}" if day.year != today.year else ""
    return f"on {weekday} {day.day} {month}{year}"


def said_time(moment: datetime) -> str:
    """Return a time of day: "3 pm", "half past" as "3:30 pm", noon and midnight by name."""
    if moment.minute == 0 and moment.hour in (0, 12):
        return "noon" if moment.hour else "midnight"
    minute = f":{moment.minute:02d}" if moment.minute else ""
    return f"{(moment.hour - 1) % 12 + 1}{minute} {'pm' if moment.hour >= 12 else 'am'}"


def said_times(start: datetime, end: datetime) -> str:
    """Return a span of one day: "from 3 to 4 pm", "at 3 pm" where it has no length."""
    if start == end:
        return f"at {said_time(start)}"
    begins, ends = said_time(start), said_time(end)
    if begins[-3:] == ends[-3:] and begins[-3:] in (" am", " pm") and start.date() == end.date():
        begins = begins[:-3]
    return f"from {begins} to {ends}"


def said_span(start: datetime, end: datetime, today: date) -> str:
    """Return when a span is: "on Friday", "on Friday afternoon", "from Monday to Wednesday"."""
    last = end - timedelta(seconds=1) if end > start else end
    if start.date() != last.date():
        first, final = (said_day(each.date(), today).removeprefix("on ") for each in (start, last))
        return f"from {first} to {final}"
    day = said_day(start.date(), today)
    ends_at = 24 if end.date() != start.date() else end.hour
    if start.hour == start.minute == 0 and ends_at == 24:
        return day
    if start.minute == end.minute == 0 and (part := _SAID_PARTS.get((start.hour, ends_at))):
        return f"this {part}" if day == "today" else f"{day} {part}"
    return f"{day} {said_times(start, end)}"


def said_event(event: CalendarEvent) -> str:
    """Return an event with its times of day, without its day: "Dentist from 3 to 4 pm"."""
    if event.all_day:
        return f"{event.title}, all day"
    if (event.end - event.start) >= timedelta(days=1):
        return f"{event.title} from {said_time(event.start)}, over several days"
    return f"{event.title} {said_times(event.start, event.end)}"


def said_when(event: CalendarEvent, today: date) -> str:
    """Return when an event is, with its day: "on Friday from 3 to 4 pm"."""
    if not event.all_day:
        return f"{said_day(event.start.date(), today)} {said_times(event.start, event.end)}"
    if event.last_day == event.start.date():
        return said_day(event.start.date(), today)
    return said_span(event.start, event.end, today)


# What of a span of time the events in it leave free.

GAP: Final = timedelta(minutes=30)
"""The shortest free time that is worth a word."""
_DAY_FROM: Final = 8 * 60
_DAY_TO: Final = 22 * 60
"""Minutes of the day between which a free time of a whole day is looked for."""


def gaps_in(
    events: Sequence[CalendarEvent], start: datetime, end: datetime
) -> list[tuple[datetime, datetime]]:
    """Return the free times of GAP or more between two moments, in order."""
    gaps = list[tuple[datetime, datetime]]()
    free_from = start
    for event in sorted(events, key=lambda event: event.start.timestamp()):
        if event.start.timestamp() - free_from.timestamp() >= GAP.total_seconds():
            gaps.append((free_from, min(event.start, end, key=datetime.timestamp)))
        free_from = max(free_from, event.end, key=datetime.timestamp)
    if end.timestamp() - free_from.timestamp() >= GAP.total_seconds():
        gaps.append((free_from, end))
    return gaps


def waking_hours(start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """Return the part of a whole day that people plan: from 8 am to 10 pm."""
    zone = start.tzinfo
    first = at_wall_clock(start.date(), _DAY_FROM, zone)
    last = at_wall_clock(start.date(), _DAY_TO, zone)
    return max(start, first), max(min(end, last), start)


# How often an event is wanted, in words: "every tuesday at 7" is one at 7 that repeats weekly.

_WEEKDAYS: Final = "|".join(WORDS["weekdays"])
_EVERY: Final = re.compile(
    rf"\b(?:every|each) (?:(?P<other>other|second) )?(?:(?P<weekday>{_WEEKDAYS})s?"
    r"|(?P<unit>day|week|month|year|morning|afternoon|evening|night)s?)\b"
    r"|\b(?P<adverb>daily|weekly|monthly|yearly|annually)\b",
    re.I,
)
_OFTEN: Final = re.compile(r"\b(?:every|each)\b", re.I)
_RULES: Final = {
    **dict.fromkeys(("day", "morning", "afternoon", "evening", "night", "daily"), "DAILY"),
    **dict.fromkeys(("week", "weekly"), "WEEKLY"),
    **dict.fromkeys(("month", "monthly"), "MONTHLY"),
    **dict.fromkeys(("year", "yearly", "annually"), "YEARLY"),
}
_PARTS: Final = frozenset({"morning", "afternoon", "evening", "night"})
_SAID: Final = {"DAILY": "every day", "WEEKLY": "every week", "MONTHLY": "every month"}


@dataclass(frozen=True, slots=True)
class Repetition:
    """How an event repeats: an RRULE's value, and the words that say so; "" for once."""

    rule: str = ""
    words: str = ""


def repetition_in(when: str) -> tuple[Repetition | None, str]:
    """Return how often `when` says, and the words that are left, which say the first time.

    It is None where that is in no way that is known here, such as "every other weekday".
    """
    match = _EVERY.search(when)
    if match is None:
        return None if _OFTEN.search(when) else Repetition(), when
    unit = (match["unit"] or match["adverb"] or "").lower()
    weekday = (match["weekday"] or "").lower()
    frequency = "WEEKLY" if weekday else _RULES[unit]
    rule = f"FREQ={frequency}"
    if match["other"]:
        rule += ";INTERVAL=2"
    left = weekday or (unit if unit in _PARTS else "")
    said = _SAID.get(frequency, "every year")
    words = match[0].lower() if match["other"] or weekday else said
    rest = f"{when[: match.start()]}{left}{when[match.end() :]}"
    return Repetition(rule, words), " ".join(rest.split())


# What the calendar's tools answer: the data for the model, and the sentence that is heard.

RECORDS_MAX: Final = 100
"""Events that the model is shown of an answer: some 3,000 tokens. It is told how many more."""
SPOKEN_MAX: Final = 8
"""Events that are read out at once."""
FOUND_MAX: Final = 3
"""Events that are read out of those that were searched for."""
IN_THE_WAY_MAX: Final = 4
"""Events that are read out where somebody asks whether they are free."""
_ANY_EVENT: Final = frozenset(
    map(stem, ("next", "upcoming", "event", "events", "appointment", "thing", "calendar", "soon"))
)
"""Words that name no event: "my next appointment"."""
A_YEAR: Final = timedelta(days=365)
_WHOLE_DAY: Final = timedelta(hours=14)
"""From here on, a span is a day of which the night is not wanted."""


def events_of(found: FoundEvents, span: When, today: date) -> VerbatimResult:
    """Answer what is on in a span of time."""
    when = said_span(span.start, span.end, today)
    if not found.events:
        return _result(found, f"There is nothing in the calendar {when}.")
    shown = found.events[:SPOKEN_MAX]
    more = len(found.events) - len(shown)
    if _is_one_day(span.start, span.end):
        names = spoken_list([said_event(event) for event in shown], more)
        return _result(found, f"{_capital(when)}: {names}.")
    by_day: dict[date, list[str]] = {}
    for event in shown:
        day = max(event.start.date(), span.start.date())
        by_day.setdefault(day, []).append(said_event(event))
    said = [f"{_capital(said_day(day, today))}: {spoken_list(by_day[day])}." for day in by_day]
    return _result(found, " ".join([*said, f"And {more} more."] if more else said))


def events_about(about: str, found: FoundEvents, span: When, today: date) -> VerbatimResult:
    """Answer when something is on, by its words, or what is next."""
    events = _matching(about, found.events)
    if not events and asks_for_next(about):
        events = [e for e in found.events if e.start.timestamp() >= span.start.timestamp()][:1]
        if not events:
            return _result(found, f"There is nothing in the calendar {_ahead(span, today)}.")
    of_them = replace(found, events=tuple(events))
    if not events:
        when = _ahead(span, today)
        return _result(of_them, f"I can't find {about} in the calendar {when}.")
    said = [f"{event.title} is {said_when(event, today)}" for event in events[:FOUND_MAX]]
    return _result(of_them, spoken_list(said, len(events) - FOUND_MAX) + ".")


def asks_for_next(words_: str) -> bool:
    """Say whether words ask for the next event, whatever it is."""
    said = frozenset(map(stem, words(words_)))
    return bool(said & _ANY_EVENT) and said - COMMON <= _ANY_EVENT


def free_or_not(found: FoundEvents, start: datetime, end: datetime, today: date) -> VerbatimResult:
    """Answer whether nothing takes the person's time between two moments."""
    busy = [event for event in found.events if event.is_busy]
    others = [event.title for event in found.events if not event.is_busy]
    note = f" There is also {_some(others)}." if others else ""
    when, one_day = said_span(start, end, today), _is_one_day(start, end)
    gaps = [(start, end)]
    if not busy:
        # Where a calendar is away, nobody can say yes.
        said = f"Yes, you are free {when}." if found.is_whole else f"I see nothing {when}."
    else:
        shown = [said_event(event) if one_day else _with_day(event, today) for event in busy]
        part = waking_hours(start, end) if end - start > _WHOLE_DAY else (start, end)
        gaps = gaps_in(busy, *part) if one_day else []
        free = f" You are free {spoken_list([said_times(*gap) for gap in gaps])}." if gaps else ""
        said = f"{'Not all of it' if gaps else 'No'}: {when} there is {_some(shown)}.{free}"
    free_times = [{"start": _written(each[0]), "end": _written(each[1])} for each in gaps]
    return _result(found, said + note, free=not busy and found.is_whole, free_times=free_times)


def spoken_list(names: Sequence[str], more: int = 0) -> str:
    """Return names as they are said, with how many `more` there are."""
    shown = [*names, f"{more} more"] if more > 0 else list(names)
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _ahead(span: When, today: date) -> str:
    is_year = span.end - span.start > A_YEAR
    return "in the next year" if is_year else said_span(span.start, span.end, today)


def _matching(about: str, events: Sequence[CalendarEvent]) -> list[CalendarEvent]:
    """Return the events that have all the words that were asked for, else those with some."""
    wanted = frozenset(map(stem, words(about))) - COMMON
    said = [frozenset(map(stem, words(f"{event.title} {event.place}"))) for event in events]
    known = list(zip(events, said, strict=True))
    whole = [event for event, names in known if wanted and wanted <= names]
    return whole or [event for event, names in known if wanted & names]


def _some(names: Sequence[str]) -> str:
    return spoken_list(names[:IN_THE_WAY_MAX], len(names) - IN_THE_WAY_MAX)


def _with_day(event: CalendarEvent, today: date) -> str:
    return f"{event.title} {said_when(event, today)}"


def _is_one_day(start: datetime, end: datetime) -> bool:
    return max(start, end - timedelta(seconds=1)).date() == start.date()


def _written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M")


def _result(found: FoundEvents, said: str, **more: Any) -> VerbatimResult:
    shown = found.events[:RECORDS_MAX]
    value: dict[str, Any] = {**more, "events": [event.as_record() for event in shown]}
    if len(found.events) > len(shown):
        value["more_events"] = len(found.events) - len(shown)
    if found.unread:
        value["not_reached"] = list(found.unread)
        said += f" I can't reach {spoken_list(found.unread)} right now."
    if found.too_large:
        value["not_read"] = list(found.too_large)
        said = " ".join([said, *found.too_large])
    return VerbatimResult(value, said)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


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
