"""Events, and their iCalendar text: those of a span of time are read, and new ones are written.

Reading and writing load libraries and take milliseconds to seconds, so they belong in a thread.
"""

# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# The libraries leave the types of their properties open.

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import islice
from typing import Any, Final, Self, cast

from caal_node.core.errors import ToolBroke
from caal_node.toolsets.when import at_wall_clock, later

TITLE_CHARS_MAX = 200
"""Characters of a title or a place that are kept."""


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


# Text taken apart by lines, so that one broken event costs itself alone.
#
# It also leaves out, before anything parses it, what cannot fall into the span that is asked for:
# parsing an event takes a third of a millisecond, and calendars have thousands.

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


# Writes new events: a calendar of their own, or into a file beside what is there.

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
