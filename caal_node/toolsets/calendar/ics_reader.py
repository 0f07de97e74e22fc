"""Reads the events of a span of time out of iCalendar text, recurring ones each time they are.

It takes milliseconds to seconds, so it belongs in a thread.
"""

# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# The libraries leave the types of their properties open.

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import date, datetime, timedelta, tzinfo
from itertools import islice
from typing import Any, Final, cast

from caal_node.core.errors import ToolBroke
from caal_node.toolsets.calendar.calendar_event import (
    TITLE_CHARS_MAX,
    CalendarEvent,
    home_moment,
    in_order,
)
from caal_node.toolsets.calendar.ics_text import TooManyEvents, blocks_in, is_calendar
from caal_node.toolsets.when import later

# Which recurring events are expanded: those whose times are few enough to be counted.

FIRST_YEAR: Final = 1900
"""A rule is followed from its beginning, so one from the year 1 takes seconds."""
A_DAY_MAX: Final = 48
"""Times a day: every half hour. More is no event that a person goes to."""
LENGTH_MAX: Final = timedelta(days=366)
"""The longest of a series' events: all that began so long before a span may reach into it."""
RULES_MAX: Final = 4
_TOO_OFTEN: Final = frozenset({"SECONDLY", "MINUTELY"})


def is_bounded(start: object, end: object, rules: object) -> bool:
    """Say whether the rules of an event can be followed in bounded time.

    Args:
        start: The event's DTSTART.
        end: Its DTEND, or its DURATION; None without either.
        rules: Its RRULE, one or a list of several, each a mapping of lists; None without one.
    """
    if not isinstance(start, date | datetime) or start.year < FIRST_YEAR:
        return False
    length = end - _alike(start, end) if isinstance(end, date | datetime) else end
    if isinstance(length, timedelta) and length > LENGTH_MAX:
        return False
    several: list[Any] = [rules] if rules else []
    if isinstance(rules, list):
        several = cast("list[Any]", rules)
    return len(several) <= RULES_MAX and all(_is_seldom(rule) for rule in several)


def _alike(start: date, end: date) -> Any:
    """Return `start` as what `end` can be compared with; a day's difference does not matter."""
    if isinstance(end, datetime):
        return datetime(start.year, start.month, start.day, tzinfo=end.tzinfo)
    return date(start.year, start.month, start.day)


def _is_seldom(rule: Mapping[str, Any]) -> bool:
    frequency = {str(each).upper() for each in _values(rule, "FREQ")}
    if frequency & _TOO_OFTEN or any(int(each) < 1 for each in _values(rule, "INTERVAL")):
        return False
    a_day = 24 if "HOURLY" in frequency else 1
    for name in ("BYHOUR", "BYMINUTE", "BYSECOND"):
        a_day *= max(1, len(_values(rule, name)))
    return a_day <= A_DAY_MAX


def _values(rule: Mapping[str, Any], name: str) -> list[Any]:
    value: Any = rule.get(name, [])
    return cast("list[Any]", value) if isinstance(value, list) else [value]


logger = logging.getLogger("caal_node.toolsets.calendar")

OCCURRENCES_MAX: Final = 10_000
"""Events of one calendar that a span may have, and that are parsed for it."""
EXPAND_S: Final = 8.0
"""Seconds in which the events of a calendar have to be parsed and expanded."""
_SHORTER: Final = "ask about a shorter time"
_REPEATS: Final = ("RRULE", "RDATE", "RECURRENCE-ID")
_BROKEN: Final = (ValueError, LookupError, AttributeError, TypeError, ArithmeticError)
"""What the libraries raise for events that make no sense."""
_NO_TITLE: Final = "something without a title"


def events_in(
    texts: list[str], start: datetime, end: datetime, zone: tzinfo, calendar: str
) -> list[CalendarEvent]:
    """Return the events of calendars' texts that are on between two moments, in order.

    An event that cannot be read is left out, and so is one that was cancelled.

    Raises:
        ToolBroke: a text is no calendar.
        TooManyEvents: there are more events than can be read.
    """
    import icalendar

    first, last = start.astimezone(zone).date(), end.astimezone(zone).date()
    # By its id: a moved time of a series is an event of its own beside the series.
    series: dict[str, list[Any]] = {}
    left_out = 0
    stop = time.monotonic() + EXPAND_S

    def check(number: int) -> None:
        if number > OCCURRENCES_MAX or time.monotonic() > stop:
            raise TooManyEvents.of(calendar, "too many events in that time", _SHORTER)

    for at, text in enumerate(texts):
        if not is_calendar(text):
            raise ToolBroke(f"The calendar {calendar} gave something that is no calendar.")
        blocks = blocks_in(text, first, last, calendar)
        check(len(blocks.events))
        for block in blocks.zones:
            _parsed(icalendar.Timezone, block)  # events name them
        for block in blocks.events:
            check(len(series))
            event = _parsed(icalendar.Event, block)
            if event is None or _value(event, "DTSTART") is None:
                left_out += 1
            else:
                series.setdefault(str(event.get("UID") or f"{at} {len(series)}"), []).append(event)
    # By one zone on both sides: of two zones, it would take the days of the first one.
    span = start.astimezone(zone), max(end, start + timedelta(seconds=1)).astimezone(zone)
    found: list[CalendarEvent] = []
    for events in series.values():
        check(len(found))
        if (times := _times_of(events, span)) is None:
            left_out += 1
            continue
        made = (_event_of(each, zone, calendar) for each in times)
        found += [each for each in made if each is not None and each.overlaps(start, end)]
    if left_out:
        logger.warning("%d events of a calendar could not be read and were left out", left_out)
    return sorted(found, key=in_order)


def _times_of(events: list[Any], span: tuple[datetime, datetime]) -> list[Any] | None:
    """Return each time that the events of one id are on, or None where they make no sense."""
    if not any(event.get(name) for event in events for name in _REPEATS):
        return events
    import icalendar
    import recurring_ical_events

    read = icalendar.Calendar()
    for event in events:
        ends = _value(event, "DTEND") or _value(event, "DURATION")
        if not _is_bounded(event, ends):
            return None
        read.add_component(event)
    try:
        query = recurring_ical_events.of(read)
        return list(islice(query.between(*span), OCCURRENCES_MAX))
    except _BROKEN:
        return None


def _is_bounded(event: Any, ends: Any) -> bool:
    try:
        return is_bounded(_value(event, "DTSTART"), ends, event.get("RRULE"))
    except _BROKEN:
        return False


def _parsed(kind: Any, block: str) -> Any:
    try:
        return kind.from_ical(block)
    except _BROKEN:
        return None


def _value(event: Any, name: str) -> Any:
    try:
        return getattr(event.get(name), "dt", None)
    except _BROKEN:
        return None


def _event_of(event: Any, zone: tzinfo, calendar: str) -> CalendarEvent | None:
    begins, ends = _value(event, "DTSTART"), _value(event, "DTEND")
    if not isinstance(begins, date) or _text(event, "STATUS").upper() == "CANCELLED":
        return None
    all_day = not isinstance(begins, datetime)
    try:
        start = home_moment(begins, zone)
        length = _value(event, "DURATION")
        if isinstance(ends, date):
            end = home_moment(ends, zone)
        elif isinstance(length, timedelta) and all_day:
            end = home_moment(begins + length, zone)
        else:
            end = later(start, length.total_seconds()) if isinstance(length, timedelta) else start
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
