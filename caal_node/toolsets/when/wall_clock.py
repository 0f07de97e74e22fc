"""Wall-clock times in a time zone, right across the changes of its clocks.

A time that a change leaves out becomes the one as long after it: 2:30 becomes 3:30. Of a time that
comes twice the first is meant, or the second once the first has passed. Moments are compared by
their timestamps, since Python compares two of one zone by what their clocks show.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

LAST_YEAR: Final = 9_990
"""No day is read beyond this year, so that sums of days stay within what a date can be."""


def at_wall_clock(
    day: date, minute: int, zone: tzinfo | None, *, not_before: datetime | None = None
) -> datetime:
    """Return the moment at which clocks of `zone` show `minute`, counted from midnight of `day`.

    A minute of 1440 or more is on a later day. Where the clocks show the time twice, it is the
    second time if the first is before `not_before`.
    """
    days, minute = divmod(minute, 24 * 60)
    day += timedelta(days=days)
    shown = datetime.combine(day, time(minute // 60, minute % 60), zone)
    first = shown.astimezone(UTC).astimezone(zone)
    if not_before is None or first.timestamp() >= not_before.timestamp():
        return first
    second = shown.replace(fold=1).astimezone(UTC).astimezone(zone)
    return second if second.replace(tzinfo=None) == shown.replace(tzinfo=None) else first


def later(moment: datetime, seconds: float) -> datetime:
    """Return the moment so many seconds of real time after an aware `moment`, in its own zone."""
    return (moment.astimezone(UTC) + timedelta(seconds=seconds)).astimezone(moment.tzinfo)


def days_later(moment: datetime, days: int) -> datetime:
    """Return the moment at which the clocks show the same, `days` days after `moment`."""
    minute = moment.hour * 60 + moment.minute
    there = at_wall_clock(moment.date() + timedelta(days=days), minute, moment.tzinfo)
    return later(there, moment.second + moment.microsecond / 1e6)


def months_later(day: date, months: int) -> date:
    """Return the same day of a month `months` later, or that month's last day."""
    years, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(years, month + 1, min(day.day, monthrange(years, month + 1)[1]))
