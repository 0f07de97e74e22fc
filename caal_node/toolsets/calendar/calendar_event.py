"""One event of a calendar, at its place in the home's time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import Any

from caal_node.toolsets.when import at_wall_clock

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
