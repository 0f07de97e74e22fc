"""What of a span of time the events in it leave free."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from caal_node.toolsets.calendar.calendar_event import CalendarEvent
from caal_node.toolsets.when import at_wall_clock

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
