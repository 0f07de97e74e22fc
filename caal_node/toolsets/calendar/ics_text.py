"""iCalendar text taken apart by lines, so that one broken event costs itself alone.

It also leaves out, before anything parses it, what cannot fall into the span that is asked for:
parsing an event takes a third of a millisecond, and calendars have thousands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, Self

from caal_node.core.errors import ToolBroke

EVENTS_MAX: Final = 50_000
"""Events of one calendar that are looked at: a household's of a century."""
ZONES_MAX: Final = 600
"""Time zones of one calendar: there are some 500."""
EVENT_CHARS_MAX: Final = 1_000_000
"""Characters of one event without what nobody uses; one with more is left out."""
PIECE_CHARS: Final = 65_536
"""Characters that are searched at once: under a millisecond."""
OLD_ONES: Final = "move old events into a calendar that is not read"
_MARGIN: Final = timedelta(days=2)
"""Zones are up to 14 hours apart from UTC, on either side."""
_FOLD: Final = re.compile(r"\r?\n[ \t]")
_MARK: Final = re.compile(
    r"^(?P<side>BEGIN|END):(?P<kind>VEVENT|VTIMEZONE|VALARM)[ \t]*(?:\r?\n|\Z)", re.M | re.I
)
_DATE: Final = re.compile(
    r"^(?P<name>DTSTART|DTEND)(?:;[^:\n]*)?:(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)",
    re.M | re.I,
)
_SEVERAL: Final = re.compile(r"^(?:RRULE|RDATE|RECURRENCE-ID|DURATION)[;:]", re.M | re.I)
_UNUSED: Final = re.compile(
    r"^(?![ \t]|(?:BEGIN|END|UID|SEQUENCE|DTSTART|DTEND|DURATION|STATUS|R(?:RULE|DATE)"
    r"|EX(?:RULE|DATE)|RECURRENCE-ID|SUMMARY|LOCATION|TRANSP)(?:\r?\n[ \t])?[;:])"
    r"[^\n]*+(?:\n[ \t][^\n]*+)*+(?:\n|\Z)",
    re.M | re.I,
)
"""A property, with the lines that it goes on in, of which nothing is told: files, lists of guests,
300,000 categories."""


class TooManyEvents(ToolBroke):
    """A calendar has more than is read, as of a part of it "you are free" would be told."""

    @classmethod
    def of(cls, calendar: str, why: str, advice: str) -> Self:
        """Return the error for a calendar that has too much: `why`, and what helps."""
        words = f"The calendar {calendar} has more events than I can read. Please {advice}."
        return cls.told(f"The calendar {calendar} has {why}: {advice}.", words)

    @classmethod
    def told(cls, message: str, words: str) -> Self:
        """Return it again as another process has told it."""
        error = cls(message)
        error.words = words
        return error


@dataclass(frozen=True, slots=True)
class Blocks:
    """The parts of a calendar, each a whole text from BEGIN to END with unfolded lines."""

    zones: tuple[str, ...]
    events: tuple[str, ...]


def is_calendar(text: str) -> bool:
    """Say whether a text is iCalendar at all, and no page of a sign-in, say."""
    return text.lstrip("\ufeff \r\n\t")[:15].upper() == "BEGIN:VCALENDAR"


def blocks_in(text: str, first: date, last: date, calendar: str = "") -> Blocks:
    """Return the time zones of a calendar, and the events that may be on the days asked for.

    Raises:
        TooManyEvents: `calendar` has more than EVENTS_MAX.
    """
    zones, events = dict[str, None](), list[str]()
    first, last = _shifted(first, -_MARGIN), _shifted(last, _MARGIN)
    for at, (kind, folded) in enumerate(_bodies(text)):
        if at >= EVENTS_MAX:
            raise TooManyEvents.of(calendar, f"more than {EVENTS_MAX:,} events", OLD_ONES)
        used = folded if kind == "VTIMEZONE" else _UNUSED.sub("", folded)
        if len(used) > EVENT_CHARS_MAX:
            continue
        body = _FOLD.sub("", used)
        if kind == "VTIMEZONE":
            if len(zones) < ZONES_MAX:
                zones[f"BEGIN:VTIMEZONE\r\n{body}END:VTIMEZONE\r\n"] = None
        elif _may_be_within(body, first, last):
            events.append(f"BEGIN:VEVENT\r\n{body}END:VEVENT\r\n")
    return Blocks(tuple(zones), tuple(events))


def _bodies(text: str) -> Iterator[tuple[str, str]]:
    """Yield what stands within each event and zone, without events' alarms, in one pass."""
    kind, pieces, since = "", list[str](), 0
    for mark in _marks(text):
        named, begins = mark["kind"].upper(), mark["side"].upper() == "BEGIN"
        if begins and named != "VALARM":
            kind, pieces, since = named, [], mark.end()
        elif not kind:
            continue
        elif begins:
            pieces.append(text[since : mark.start()])
            since = len(text)
        elif named == "VALARM":
            since = mark.end()
        elif named == kind:
            yield kind, "".join([*pieces, text[since : mark.start()]])
            kind = ""


def _marks(text: str) -> Iterator[re.Match[str]]:
    """Yield the lines that begin and end something, searching a piece of the text at a time.

    A search lets no other thread run, that of the event loop included.
    """
    start = 0
    while start < len(text):
        end = text.find("\n", start + PIECE_CHARS) + 1 or len(text)
        if end - start <= 2 * PIECE_CHARS:
            yield from _MARK.finditer(text, start, end)
        else:  # all but the first lines of it is one line, of a picture
            yield from _MARK.finditer(text, start, start + PIECE_CHARS)
        start = end


def _shifted(day: date, by: timedelta) -> date:
    try:
        return day + by
    except OverflowError:
        return day


def _may_be_within(body: str, first: date, last: date) -> bool:
    if _SEVERAL.search(body):
        return True
    days: dict[str, date] = {}
    for match in _DATE.finditer(body):
        try:
            day = date(int(match["year"]), int(match["month"]), int(match["day"]))
        except ValueError:
            return False
        days[match["name"].upper()] = day
    if (start := days.get("DTSTART")) is None:
        return False
    return start <= last and max(days.get("DTEND", start), start) >= first
