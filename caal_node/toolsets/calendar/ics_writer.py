"""Writes new events as iCalendar: a calendar of their own, or into a file beside what is there.

It loads libraries at its first use, so it belongs in a thread.
"""

# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false
# The library leaves the types of its properties open.

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

_END: Final = re.compile(rb"^END:VCALENDAR[ \t]*\r?\n?", re.M | re.I)
_TAIL_BYTES: Final = 65_536
"""Where the end of a calendar is looked for: one step of C over 20 MB would hold the event loop."""
_PRODID: Final = "-//caal-node//calendar//EN"


def _new_uid() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event that is to be written. Moments are in the home's time zone."""

    title: str
    start: datetime
    end: datetime
    """The first moment after it; of whole days, the midnight at their end."""
    made_at: datetime
    place: str = ""
    all_day: bool = False
    rule: str = ""
    """How it repeats, as the value of an RRULE: "FREQ=WEEKLY"; "" for once."""
    uid: str = field(default_factory=_new_uid)


def calendar_of(event: NewEvent) -> bytes:
    """Return a whole calendar with the one event, as a CalDAV server takes it."""
    import icalendar

    calendar: Any = icalendar.Calendar()
    calendar.add("PRODID", _PRODID)
    calendar.add("VERSION", "2.0")
    calendar.add_component(_component(event))
    calendar.add_missing_timezones()
    return calendar.to_ical()


def with_event(data: bytes | None, event: NewEvent) -> bytes:
    """Return a calendar's file with the event at its end; the rest stays byte for byte.

    Raises:
        ValueError: the file is no calendar that has an end.
    """
    if not data or not data.strip():
        return calendar_of(event)
    ends = list(_END.finditer(data, max(0, len(data) - _TAIL_BYTES)))
    if not ends:
        raise ValueError("it is no iCalendar file")
    import icalendar

    calendar: Any = icalendar.Calendar.from_ical(calendar_of(event))
    new = b""
    for part in calendar.subcomponents:
        if part.name == "VTIMEZONE" and _has_zone(data, str(part.get("TZID"))):
            continue
        new += part.to_ical()
    if b"\r\n" not in data:
        new = new.replace(b"\r\n", b"\n")
    at = ends[-1].start()
    return data[:at] + new + data[at:]


def _has_zone(data: bytes, name: str) -> bool:
    line = re.compile(rb"\nTZID(?:;[^:\n]*)?:" + re.escape(name.encode()))
    at = data.find(b"\nTZID")
    while at >= 0:
        if line.match(data, at):
            return True
        at = data.find(b"\nTZID", at + 1)
    return False


def _component(event: NewEvent) -> Any:
    import icalendar

    made: Any = icalendar.Event()
    made.add("UID", event.uid)
    made.add("DTSTAMP", event.made_at.astimezone(UTC).replace(microsecond=0))
    made.add("SUMMARY", event.title)
    start, end = event.start, event.end
    made.add("DTSTART", start.date() if event.all_day else _zoned(start))
    made.add("DTEND", end.date() if event.all_day else _zoned(end))
    if event.rule:
        made.add("RRULE", icalendar.vRecur.from_ical(event.rule))
    if event.place:
        made.add("LOCATION", event.place)
    return made


def _zoned(moment: datetime) -> datetime:
    """Return the moment as it can be written: with a zone that has a name, else in UTC."""
    moment = moment.replace(microsecond=0)
    return moment if getattr(moment.tzinfo, "key", None) else moment.astimezone(UTC)
