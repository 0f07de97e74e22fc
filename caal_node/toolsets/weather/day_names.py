"""What people call a span of time, seen from the present: "this afternoon", "on Friday"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Final

from caal_node.toolsets.weather.outlook import Outlook

_PARTS: Final[Mapping[tuple[int, int], str]] = {
    (6, 12): "morning",
    (12, 14): "lunchtime",
    (12, 18): "afternoon",
    (18, 24): "evening",
}
"""The parts of a day by their hours."""
_WEEK: Final = 7
_NEAR: Final = {-1: "yesterday", 0: "today", 1: "tomorrow"}


def day_name(day: date, today: date) -> str:
    """Return what a day is called: "today", "on Friday", or "on Friday, December 4"."""
    ahead = (day - today).days
    if (near := _NEAR.get(ahead)) is not None:
        return near
    if 0 < ahead < _WEEK:
        return f"on {day:%A}"
    return f"on {day:%A, %B} {day.day}"


def span_name(outlook: Outlook, today: date) -> str:
    """Return what the span of an outlook is called, as it stands at the end of a sentence."""
    day = day_name(outlook.start.date(), today)
    if outlook.kind == "now":
        return "right now"
    if outlook.kind == "day":
        return day
    if outlook.kind == "time":
        return f"at {clock_time(outlook.start)}" + ("" if day == "today" else f" {day}")
    if (part := _part_of(outlook)) is None:
        span = f"from {clock_time(outlook.start)} to {clock_time(outlook.end)}"
        return span if day == "today" else f"{day} {span}"
    if day == "today":
        return "tonight" if part == "evening" else f"this {part}"
    return f"{day.split(',')[0]} {part}" if "," not in day else f"{day}, in the {part}"


def whole_days(outlooks: Sequence[Outlook], today: date) -> str:
    """Return what the days from the first to the last of `outlooks` are called."""
    first, last = (_plain_day(each.start.date(), today) for each in (outlooks[0], outlooks[-1]))
    return f"from {first} to {last}"


def listed_days(outlooks: Sequence[Outlook], today: date) -> str:
    """Return the names of days as a list: "Monday, Wednesday and Friday"."""
    names = [_plain_day(each.start.date(), today) for each in outlooks]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _plain_day(day: date, today: date) -> str:
    near = _NEAR.get((day - today).days)
    return near or (f"{day:%A}" if 0 < (day - today).days < 2 * _WEEK else f"{day:%B} {day.day}")


def clock_time(at: datetime) -> str:
    """Return a time of day as it is said: "5 PM", "8:21 AM", "noon"."""
    if at.minute == 0 and at.hour in (0, 12):
        return "noon" if at.hour else "midnight"
    minutes = f":{at.minute:02}" if at.minute else ""
    return f"{at.hour % 12 or 12}{minutes} {'PM' if at.hour >= 12 else 'AM'}"


def _part_of(outlook: Outlook) -> str | None:
    midnight = datetime.combine(outlook.start.date(), datetime.min.time())
    hours = [(each - midnight).total_seconds() / 3600 for each in (outlook.start, outlook.end)]
    return _PARTS.get((round(hours[0]), round(hours[1]))) if hours == [*map(round, hours)] else None
