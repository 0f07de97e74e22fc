"""Reads the events of a span of time out of iCalendar text, recurring ones each time they are.

It takes milliseconds to seconds, so it belongs in a thread.
"""

# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# The libraries leave the types of their properties open.

from __future__ import annotations

import logging
from datetime import date, datetime, timedelta, tzinfo
from itertools import islice
from typing import Any, Final

from caal_node.core.errors import ToolBroke
from caal_node.toolsets.calendar.calendar_event import (
    TITLE_CHARS_MAX,
    CalendarEvent,
    home_moment,
    in_order,
)
from caal_node.toolsets.calendar.ics_text import blocks_in, is_calendar
from caal_node.toolsets.calendar.recurrence_bounds import is_bounded

logger = logging.getLogger("caal_node.toolsets.calendar")

OCCURRENCES_MAX: Final = 2_000
"""Events of one calendar that a span may have."""
_NO_TITLE: Final = "something without a title"


def events_in(
    texts: list[str], start: datetime, end: datetime, zone: tzinfo, calendar: str
) -> list[CalendarEvent]:
    """Return the events of calendars' texts that are on between two moments, in order.

    An event that cannot be read is left out, and so is one that was cancelled.

    Raises:
        ToolBroke: a text is no calendar.
    """
    import icalendar
    import recurring_ical_events

    read = icalendar.Calendar()
    left_out = 0
    for text in texts:
        if not is_calendar(text):
            raise ToolBroke(f"The calendar {calendar} gave something that is no calendar.")
        first, last = start.astimezone(zone).date(), end.astimezone(zone).date()
        blocks = blocks_in(text, first, last)
        for block in blocks.zones:
            _parsed(icalendar.Timezone, block)  # events name them
        for block in blocks.events:
            event = _parsed(icalendar.Event, block)
            if event is None or not is_bounded(_value(event, "DTSTART"), event.get("RRULE")):
                left_out += 1
            else:
                read.add_component(event)
    query = recurring_ical_events.of(read, skip_bad_series=True)
    found: list[CalendarEvent] = []
    # By one zone on both sides: of two zones, it would take the days of the first one.
    span = start.astimezone(zone), max(end, start + timedelta(seconds=1)).astimezone(zone)
    for event in islice(query.between(*span), OCCURRENCES_MAX):
        made = _event_of(event, zone, calendar)
        if made is not None and made.overlaps(start, end):
            found.append(made)
    if left_out:
        logger.warning("%d events of a calendar could not be read and were left out", left_out)
    return sorted(found, key=in_order)


def _parsed(kind: Any, block: str) -> Any:
    try:
        return kind.from_ical(block)
    except (ValueError, KeyError, IndexError, AttributeError, TypeError, OverflowError):
        return None  # what a library makes of broken text is not to be foreseen


def _value(event: Any, name: str) -> Any:
    return getattr(event.get(name), "dt", None)


def _event_of(event: Any, zone: tzinfo, calendar: str) -> CalendarEvent | None:
    begins, ends = _value(event, "DTSTART"), _value(event, "DTEND")
    if not isinstance(begins, date) or _text(event, "STATUS").upper() == "CANCELLED":
        return None
    all_day = not isinstance(begins, datetime)
    try:
        start = home_moment(begins, zone)
        end = home_moment(ends, zone) if isinstance(ends, date) else start
        if all_day and end <= start:
            end = home_moment(begins + timedelta(days=1), zone)
    except (OverflowError, ValueError):
        return None
    shown = _text(event, "TRANSP").upper()
    # Programs write whole days without a word of whether they are taken: mostly they are not.
    busy = shown == "OPAQUE" if all_day else shown != "TRANSPARENT"
    return CalendarEvent(
        _text(event, "SUMMARY") or _NO_TITLE,
        start,
        max(start, end, key=datetime.timestamp),
        calendar,
        _text(event, "LOCATION"),
        all_day,
        busy and _text(event, "STATUS").upper() != "TENTATIVE",
    )


def _text(event: Any, name: str) -> str:
    value = event.get(name)
    if isinstance(value, list):
        value = value[0] if value else ""
    return " ".join(str(value or "").split())[:TITLE_CHARS_MAX]
