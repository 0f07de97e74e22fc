"""Days, times of day and spans as they are said: "tomorrow", "on Friday", "from 3 to 4:30 pm"."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Final

from caal_node.grounding.fact_words import WORDS
from caal_node.toolsets.calendar.calendar_event import CalendarEvent

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
