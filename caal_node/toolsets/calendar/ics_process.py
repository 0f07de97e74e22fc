"""Reads what a calendar's server or file gave: a short text in a thread, all else in a child.

The libraries build a tree of objects of each event, and a text of some megabytes costs seconds and
ten times its size. The child gets the text as standard input, and writes a line of JSON an event.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, BinaryIO, Final, Literal, TypeAlias
from zoneinfo import ZoneInfo

from caal_node.core.errors import ToolBroke
from caal_node.models.child_process import AT_ONCE_BYTES, TooMuchSaid, answer_of
from caal_node.toolsets.calendar.ics_events import OLD_ONES, CalendarEvent, TooManyEvents, events_in

Form: TypeAlias = Literal["ics", "dav"]

BYTES_MAX: Final = 20_000_000
"""Bytes of a calendar: some 40,000 events."""
READ_S: Final = 12.0
"""Seconds for one calendar: what the events may take, and the start of a process."""
MAX_OUTPUT_BYTES: Final = 16 << 20
_CHILD: Final = "caal_node.toolsets.calendar.ics_process"


async def read_events(
    form: Form,
    given: bytes | BinaryIO,
    size: int,
    start: datetime,
    end: datetime,
    zone: tzinfo,
    calendar: str,
) -> list[CalendarEvent]:
    """Return the events that are on between two moments, in order; see `events_in`.

    Args:
        form: iCalendar, or a CalDAV server's answer with several of them.
        given: The bytes, or a file of them that is open.
        size: How many there are.

    Raises:
        ToolBroke: it is no calendar.
        TooManyEvents: it has more than can be read.
    """
    if size > BYTES_MAX:
        raise too_long(calendar)
    if size <= AT_ONCE_BYTES:

        def read() -> list[CalendarEvent]:
            data = given if isinstance(given, bytes) else given.read(BYTES_MAX)
            return events_in(_texts(form, data, calendar), start, end, zone, calendar)

        return await asyncio.to_thread(read)
    asked = (form, calendar, start.isoformat(), end.isoformat(), _named(zone, start))
    try:
        output = await answer_of(
            _CHILD, asked, given, deadline_s=READ_S, max_bytes=MAX_OUTPUT_BYTES
        )
    except (TimeoutError, TooMuchSaid):
        raise too_long(calendar) from None
    return await asyncio.to_thread(_parsed, output, zone, calendar)


def too_long(calendar: str, most: int = BYTES_MAX) -> TooManyEvents:
    """Return the error for a calendar of more bytes than are read, or written."""
    return TooManyEvents.of(calendar, f"more than {most // 1_000_000} MB", OLD_ONES)


def main() -> None:
    """Answer with the events, one a line and "." behind them, or with a line that says why not."""
    form, calendar, start, end, zone = sys.argv[1:]
    data = sys.stdin.buffer.read(BYTES_MAX + 1)
    moments = datetime.fromisoformat(start), datetime.fromisoformat(end)
    lines: list[Any]
    try:
        if len(data) > BYTES_MAX:
            raise too_long(calendar)
        texts = _texts("dav" if form == "dav" else "ics", data, calendar)
        found = events_in(texts, *moments, _zone(zone), calendar)
        lines = [*map(_row, found), "."]
    except TooManyEvents as error:
        lines = [{"too_many": str(error), "words": error.words}]
    except ToolBroke as error:
        lines = [{"fault": str(error)}]
    for line in lines:
        sys.stdout.buffer.write(json.dumps(line).encode() + b"\n")


def _texts(form: Form, data: bytes, calendar: str) -> list[str]:
    if form == "ics":
        # Old programs write Latin-1; a letter that is wrong is better than no calendar.
        return [data.decode("utf-8-sig", errors="replace")]
    from caal_node.toolsets.calendar.dav_xml import entries_in

    try:
        return [entry.events for entry in entries_in(data) if entry.events]
    except ValueError as error:
        raise ToolBroke(f"The calendar {calendar} cannot be read: {error}.") from error


def _row(event: CalendarEvent) -> list[Any]:
    moments = [each.astimezone(UTC).isoformat() for each in (event.start, event.end)]
    return [event.title, *moments, event.place, event.all_day, event.is_busy]


def _parsed(output: bytes, zone: tzinfo, calendar: str) -> list[CalendarEvent]:
    # Line by line, as one step of C for all of it would hold the event loop.
    try:
        lines: list[Any] = [json.loads(line) for line in output.splitlines()]
        match lines:
            case [{"too_many": why, "words": words}]:
                raise TooManyEvents.told(str(why), str(words))
            case [{"fault": why}]:
                raise ToolBroke(str(why))
            case [*rows, "."]:
                pass
            case _:
                raise ValueError
        return [
            CalendarEvent(
                str(title),
                datetime.fromisoformat(start).astimezone(zone),
                datetime.fromisoformat(end).astimezone(zone),
                calendar,
                str(place),
                bool(all_day),
                bool(is_busy),
            )
            for title, start, end, place, all_day, is_busy in rows
        ]
    except (ValueError, LookupError, TypeError):
        raise ToolBroke(f"The calendar {calendar} is damaged, or too large to read.") from None


def _named(zone: tzinfo, start: datetime) -> str:
    offset = start.astimezone(zone).utcoffset() or timedelta()
    return str(getattr(zone, "key", None) or offset.total_seconds())


def _zone(name: str) -> tzinfo:
    try:
        return timezone(timedelta(seconds=float(name)))
    except ValueError:
        return ZoneInfo(name)
