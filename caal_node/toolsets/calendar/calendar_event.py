"""One event of a calendar, at its place in the home's time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import Any, Final

from caal_node.grounding.spoken_numbers import WORDS
from caal_node.toolsets.when import at_wall_clock

# Days, times of day and spans as they are said: "tomorrow", "on Friday", "from 3 to 4:30 pm".

_NEAR_DAYS: Final = 7
"""Up to then a weekday says which day is meant."""
_PARTS: Final = {
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
    if start.minute == end.minute == 0 and (part := _PARTS.get((start.hour, ends_at))):
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


TITLE_CHARS_MAX = 200
"""Characters of a title or a place that are kept."""
_DAY_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class CalendarEvent:
    """One event, or one time of a recurring one. Moments are in the home's time zone."""

    title: str
    start: datetime
    end: datetime
    """The first moment after it; of whole days, the midnight at their end."""
    calendar: str = ""
    place: str = ""
    all_day: bool = False
    is_busy: bool = True
    """Whether it takes the person's time: a birthday and what is only pencilled in do not."""

    def overlaps(self, start: datetime, end: datetime) -> bool:
        """Say whether any of it lies between two moments; one without length has its start."""
        first, last = self.start.timestamp(), self.end.timestamp()
        if first == last or start == end:
            return start.timestamp() <= first < max(end.timestamp(), start.timestamp() + 1)
        return first < end.timestamp() and last > start.timestamp()

    @property
    def last_day(self) -> date:
        """The last day that it is on."""
        ends_at_midnight = self.end.hour == self.end.minute == 0 and self.end > self.start
        return (self.end - timedelta(days=1) if ends_at_midnight else self.end).date()

    def as_record(self) -> dict[str, Any]:
        """Return it as a tool's result has it, in the home's clock."""
        record: dict[str, Any] = {"title": self.title}
        if self.all_day:
            record["day"] = self.start.date().isoformat()
            if self.last_day != self.start.date():
                record["last_day"] = self.last_day.isoformat()
        else:
            record["start"] = self.start.strftime("%Y-%m-%d %H:%M")
            record["end"] = self.end.strftime("%Y-%m-%d %H:%M")
        if self.place:
            record["place"] = self.place
        if self.calendar:
            record["calendar"] = self.calendar
        return record


def in_order(event: CalendarEvent) -> tuple[float, bool, str]:
    """Return what events are sorted by: their start, whole days first."""
    return event.start.timestamp(), not event.all_day, event.title


def home_moment(value: date | datetime, zone: tzinfo) -> datetime:
    """Return a date's midnight, or a time, in the home's zone; one without a zone is of there."""
    if not isinstance(value, datetime):
        return at_wall_clock(value, 0, zone)
    if value.tzinfo is None:
        minute = value.hour * 60 + value.minute
        return at_wall_clock(value.date(), minute, zone) + timedelta(seconds=value.second)
    return value.astimezone(zone)
