"""iCalendar text is read as it is meant, whoever wrote it, and in bounded time."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caal_node.core.errors import ToolBroke
from caal_node.models import child_process
from caal_node.toolsets.calendar import ics_events, ics_process
from caal_node.toolsets.calendar.ics_events import (
    CalendarEvent,
    NewEvent,
    TooManyEvents,
    blocks_in,
    calendar_of,
    events_in,
    with_event,
)
from caal_node.toolsets.calendar.ics_process import read_events
from caal_node.toolsets.calendar.known_calendars import ADDED_TO_BYTES_MAX, IcsFile

OSLO = ZoneInfo("Europe/Oslo")
NEW_YORK = ZoneInfo("America/New_York")


def moment(text: str, zone: ZoneInfo = OSLO) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone)


def wrapped(*events: str, before: str = "") -> str:
    blocks = "".join(f"BEGIN:VEVENT\n{event.strip()}\nEND:VEVENT\n" for event in events)
    return f"BEGIN:VCALENDAR\n{before}{blocks}END:VCALENDAR\n".replace("\n", "\r\n")


def read(
    text: str, start: str = "2026-01-01", end: str = "2027-01-01", zone: ZoneInfo = OSLO
) -> list[CalendarEvent]:
    return events_in([text], moment(start, zone), moment(end, zone), zone, "Home")


def starts(text: str, *span: str, zone: ZoneInfo = OSLO) -> list[str]:
    return [f"{event.start:%m-%d %H:%M}" for event in read(text, *span, zone=zone)]


# One event.


@pytest.mark.parametrize(
    ("lines", "start", "end"),
    [
        ("DTSTART:20260601T120000Z\nDTEND:20260601T130000Z", "06-01 14:00", "06-01 15:00"),
        ("DTSTART:20260601T120000\nDTEND:20260601T130000", "06-01 12:00", "06-01 13:00"),
        ("DTSTART;TZID=Asia/Tokyo:20260601T190000\nDURATION:PT1H", "06-01 12:00", "06-01 13:00"),
        ("DTSTART;TZID=W. Europe Standard Time:20260601T120000", "06-01 12:00", "06-01 12:00"),
        ("DTSTART;TZID=Nowhere/Atall:20260601T120000", "06-01 12:00", "06-01 12:00"),
        ("DTSTART;VALUE=DATE:20260601", "06-01 00:00", "06-02 00:00"),
        ("DTSTART;VALUE=DATE:20260601\nDTEND;VALUE=DATE:20260603", "06-01 00:00", "06-03 00:00"),
        ("DTSTART;VALUE=DATE:20260601\nDURATION:P1D", "06-01 00:00", "06-02 00:00"),
        ("DTSTART:20260329T013000Z\nDURATION:PT1H", "03-29 03:30", "03-29 04:30"),
        ("DTSTART;TZID=Europe/Oslo:20260329T013000\nDURATION:PT1H", "03-29 01:30", "03-29 03:30"),
        ("DTSTART:20260601T120000Z\nDTEND:20260601T110000Z", "06-01 14:00", "06-01 14:00"),
    ],
)  # fmt: skip
def test_a_time_is_that_of_the_home(lines: str, start: str, end: str) -> None:
    (event,) = read(wrapped(f"UID:1\nSUMMARY:x\n{lines}"))
    assert (f"{event.start:%m-%d %H:%M}", f"{event.end:%m-%d %H:%M}") == (start, end)


def test_a_zone_that_the_calendar_itself_describes() -> None:
    zone = """BEGIN:VTIMEZONE
TZID:Own Zone
BEGIN:STANDARD
DTSTART:19700101T000000
TZOFFSETFROM:+0300
TZOFFSETTO:+0300
TZNAME:OWN
END:STANDARD
END:VTIMEZONE
"""
    event = 'UID:1\nSUMMARY:x\nDTSTART;TZID="Own Zone":20260601T120000'
    assert starts(wrapped(event, before=zone)) == ["06-01 11:00"]


@pytest.mark.parametrize(
    ("lines", "busy"),
    [
        ("DTSTART:20260601T120000Z", True),
        ("DTSTART:20260601T120000Z\nTRANSP:TRANSPARENT", False),
        ("DTSTART:20260601T120000Z\nSTATUS:TENTATIVE", False),
        ("DTSTART;VALUE=DATE:20260601", False),
        ("DTSTART;VALUE=DATE:20260601\nTRANSP:OPAQUE", True),
    ],
)
def test_what_takes_time(lines: str, busy: bool) -> None:
    (event,) = read(wrapped(f"UID:1\nSUMMARY:x\n{lines}"))
    assert event.is_busy is busy


def test_what_was_cancelled_is_not_on() -> None:
    assert read(wrapped("UID:1\nSUMMARY:x\nSTATUS:CANCELLED\nDTSTART:20260601T120000Z")) == []


def test_long_lines_alarms_and_pictures() -> None:
    text = wrapped(
        "UID:1\nSUMMARY:A very lo\n ng \\, title\n"
        "BEGIN:VALARM\nTRIGGER:-PT5M\nDTSTART:1\nEND:VALARM\n"
        "ATTACH:" + "x" * 200_000 + "\nDTSTART:20260601T120000Z\nLOCATION:Here"
    )
    (event,) = read(text)
    assert (event.title, event.place) == ("A very long , title", "Here")


@pytest.mark.parametrize(
    ("start", "end", "count"),
    [
        ("2026-06-01T12:00", "2026-06-01T13:00", 1),
        ("2026-06-01T12:30", "2026-06-01T12:31", 1),
        ("2026-06-01T11:00", "2026-06-01T12:00", 0),
        ("2026-06-01T13:00", "2026-06-01T14:00", 0),
        ("2026-06-01T12:30", "2026-06-01T12:30", 1),
    ],
)
def test_an_event_is_on_from_its_start_until_before_its_end(
    start: str, end: str, count: int
) -> None:
    text = wrapped("UID:1\nSUMMARY:x\nDTSTART:20260601T100000Z\nDTEND:20260601T110000Z")
    if start == end:
        start, end = start, end[:-2] + "45"
    assert len(read(text, start, end)) == count


# Series.


def test_a_series_across_a_clock_change_keeps_its_hour() -> None:
    text = wrapped(
        "UID:1\nSUMMARY:x\nDTSTART;TZID=Europe/Oslo:20261020T090000\nRRULE:FREQ=WEEKLY;COUNT=3"
    )
    assert starts(text) == ["10-20 09:00", "10-27 09:00", "11-03 09:00"]
    utc = [event.start.astimezone(UTC).hour for event in read(text)]
    assert utc == [7, 8, 8]


def test_a_series_of_another_zone_moves_when_the_clocks_differ() -> None:
    event = (
        "UID:1\nSUMMARY:x\nDTSTART;TZID=America/New_York:20261020T090000\nRRULE:FREQ=WEEKLY;COUNT=3"
    )
    assert starts(wrapped(event)) == ["10-20 15:00", "10-27 14:00", "11-03 15:00"]


def test_a_moved_and_a_cancelled_time_of_a_series() -> None:
    text = wrapped(
        "UID:1\nSUMMARY:Choir\nDTSTART;TZID=Europe/Oslo:20260601T190000\nRRULE:FREQ=DAILY;COUNT=4\n"
        "EXDATE;TZID=Europe/Oslo:20260602T190000",
        "UID:1\nSUMMARY:Choir (late)\nRECURRENCE-ID;TZID=Europe/Oslo:20260603T190000\n"
        "DTSTART;TZID=Europe/Oslo:20260603T210000",
    )
    assert starts(text) == ["06-01 19:00", "06-03 21:00", "06-04 19:00"]
    assert [event.title for event in read(text)] == ["Choir", "Choir (late)", "Choir"]


def test_a_time_that_was_moved_out_of_the_span_is_not_in_it() -> None:
    text = wrapped(
        "UID:1\nSUMMARY:x\nDTSTART:20260601T120000Z\nRRULE:FREQ=DAILY;COUNT=3",
        "UID:1\nSUMMARY:moved\nRECURRENCE-ID:20260602T120000Z\nDTSTART:20260901T120000Z",
    )
    assert starts(text, "2026-06-01", "2026-07-01") == ["06-01 14:00", "06-03 14:00"]


def test_a_time_that_was_moved_into_the_span_from_far_away() -> None:
    text = wrapped(
        "UID:1\nSUMMARY:x\nDTSTART:20250101T120000Z\nRRULE:FREQ=YEARLY;COUNT=2",
        "UID:1\nSUMMARY:moved\nRECURRENCE-ID:20250101T120000Z\nDTSTART:20260715T120000Z",
    )
    assert starts(text, "2026-07-01", "2026-08-01") == ["07-15 14:00"]


@pytest.mark.parametrize(
    ("rule", "days"),
    [
        ("FREQ=MONTHLY;BYDAY=-1FR", ["01-30", "02-27", "03-27"]),
        ("FREQ=MONTHLY;BYMONTHDAY=31", ["01-31", "03-31"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE;UNTIL=20260127T235959Z", ["01-12", "01-14", "01-26"]),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", []),
    ],
)  # fmt: skip
def test_rules(rule: str, days: list[str]) -> None:
    start = {"W": "20260112", "M": "20260130" if "BYDAY" in rule else "20260131"}.get(
        rule[5], "20240229"
    )
    text = wrapped(f"UID:1\nSUMMARY:x\nDTSTART:{start}T120000Z\nRRULE:{rule}")
    assert [each[:5] for each in starts(text, "2026-01-01", "2026-04-01")] == days


def test_whole_days_that_repeat_are_of_the_home_wherever_that_is() -> None:
    text = wrapped("UID:1\nSUMMARY:x\nDTSTART;VALUE=DATE:20200601\nRRULE:FREQ=YEARLY")
    for zone in (OSLO, NEW_YORK, ZoneInfo("Pacific/Auckland")):
        assert starts(text, "2026-06-01", "2026-06-02", zone=zone) == ["06-01 00:00"]
        assert starts(text, "2026-06-02", "2026-06-03", zone=zone) == []


# What is broken.


def test_a_broken_event_costs_itself_alone(caplog: pytest.LogCaptureFixture) -> None:
    text = wrapped(
        "UID:1\nSUMMARY:good\nDTSTART:20260601T120000Z",
        "UID:2\nSUMMARY:no time",
        "UID:3\nSUMMARY:bad\nDTSTART:20269999T120000Z",
        "UID:4\nSUMMARY:bad\nDTSTART:20260601T990000Z",
        "UID:5\nSUMMARY:bad\nDTSTART:20260601T120000Z\nRRULE:FREQ=SOMETIMES",
        "UID:6\nSUMMARY:odd\nno colon\nDTSTART:20260601T130000Z",
        "UID:7\nSUMMARY:last\nDTSTART:20260601T140000Z",
    ).replace("END:VCALENDAR", "BEGIN:VEVENT\r\nDTSTART:20260601T150000Z\r\nSUMMARY:cut off")
    caplog.set_level(logging.WARNING)
    assert [event.title for event in read(text)] == ["good", "odd", "last"]
    assert "2 events of a calendar could not be read" in caplog.text


@pytest.mark.parametrize("text", ["", "<html></html>", "milk", "BEGIN:VCARD\nEND:VCARD"])
def test_what_is_no_calendar_is_told(text: str) -> None:
    with pytest.raises(ToolBroke, match="Home gave something that is no calendar"):
        read(text)


@pytest.mark.parametrize(
    "lines",
    [
        "DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY;INTERVAL=0",
        "DTSTART:20260101T000000Z\nRRULE:FREQ=SECONDLY",
        "DTSTART:20260101T000000Z\nRRULE:FREQ=MINUTELY",
        "DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY;BYHOUR=1,2,3,4,5,6,7,8;BYMINUTE=1,2,3,4,5,6,7,8",
        "DTSTART:00010101T000000Z\nRRULE:FREQ=DAILY",
        "DTSTART:20200101T000000Z\nDURATION:P100000W\nRRULE:FREQ=DAILY",
        "DTSTART:20200101T000000Z\nDTEND:99991231T000000Z\nRRULE:FREQ=DAILY",
        "DTSTART;VALUE=DATE:20200101\nDTEND:99991231T000000Z\nRRULE:FREQ=DAILY",
    ],
)
def test_a_series_without_bounds_is_left_out_at_once(
    lines: str, caplog: pytest.LogCaptureFixture
) -> None:
    began = time.thread_time()
    good = "UID:2\nSUMMARY:good\nDTSTART:20260601T120000Z"
    assert [event.title for event in read(wrapped(f"UID:1\n{lines}", good))] == ["good"]
    assert time.thread_time() - began < 5
    assert "1 events of a calendar could not be read" in caplog.text


def test_more_than_can_be_read_is_an_error_and_no_part_of_the_truth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ics_events, "OCCURRENCES_MAX", 3)
    events = [f"UID:{at}\nSUMMARY:x\nDTSTART:20260601T1{at}0000Z" for at in range(6)]
    with pytest.raises(ToolBroke, match="Home has too many events"):
        read(wrapped(*events))


@pytest.mark.parametrize(
    "text",
    [
        "BEGIN:VEVENT\n" * 300_000,
        "BEGIN:VEVENT\nBEGIN:VALARM\n" * 150_000,
        "BEGIN:VEVENT\n" + "BEGIN:VALARM\nEND:VALARM\n" * 100_000 + "END:VEVENT\n",
        "BEGIN:VEVENT\n" + " x\n" * 1_000_000,
    ],
)
def test_taking_a_text_apart_takes_time_by_its_length(text: str) -> None:
    began = time.thread_time()
    blocks_in("BEGIN:VCALENDAR\n" + text, datetime(2026, 1, 1).date(), datetime(2027, 1, 1).date())
    assert time.thread_time() - began < 5


def test_the_pieces_that_are_searched_at_once_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    days = datetime(2026, 1, 1).date(), datetime(2027, 1, 1).date()
    text = wrapped(
        "UID:1\nSUMMARY:x\nBEGIN:VALARM\nTRIGGER:1\nEND:VALARM\nDTSTART:20260601T120000Z",
        "UID:2\nATTACH:" + "x" * 300 + "\nDTSTART:20260601T120000Z",
    )
    whole = blocks_in(text, *days)
    assert len(whole.events) == 2
    for size in range(30, 400, 7):  # a line that begins an event is shorter
        monkeypatch.setattr(ics_events, "PIECE_CHARS", size)
        assert blocks_in(text, *days) == whole


@given(
    st.lists(
        st.sampled_from(
            (
                *("UID:1", "SUMMARY:x", " folded", "\tand on", "STATUS:TENTATIVE", "TRANSP:OPAQUE"),
                *(
                    "DTSTART:20260601T120000Z",
                    "DTEND:20260601T130000Z",
                    "LOCATION;X=1:here",
                    "SUMMARY",
                ),
                *(
                    "RRULE:FREQ=DAILY;COUNT=3",
                    "EXDATE:20260602T120000Z",
                    "SEQUENCE:2",
                    " :y",
                    "summary:z",
                ),
            )
        ),
        max_size=8,
    ),
    st.sampled_from(("CATEGORIES:a", "ATTENDEE;CN=x:y", "x-foo:1", "COLOR:red")),
)
def test_only_what_is_used_of_an_event_is_parsed(lines: list[str], unused: str) -> None:
    days = datetime(2026, 1, 1).date(), datetime(2027, 1, 1).date()
    used = ["SUMMARY:first", *lines]
    more = [unused, " on", *used, unused, "\tand on", " on"]
    assert blocks_in(wrapped("\n".join(more)), *days) == blocks_in(wrapped("\n".join(used)), *days)


def test_300_000_categories_of_an_event_are_not_parsed_and_it_is_there() -> None:
    lines = ["UID:1", "SUMMARY:Fair", "DTSTART:20260601T120000Z"]
    text = wrapped("\n".join([*lines, *(f"CATEGORIES:{each}" for each in range(300_000))]))
    (block,) = blocks_in(text, datetime(2026, 1, 1).date(), datetime(2027, 1, 1).date()).events
    assert len(block) < 200
    assert [event.title for event in read(text)] == ["Fair"]


def test_a_calendar_of_more_events_than_are_looked_at_says_what_helps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ics_events, "EVENTS_MAX", 3)
    events = [f"UID:{at}\nSUMMARY:x\nDTSTART:20200601T1{at}0000Z" for at in range(4)]
    assert read(wrapped(*events[:3])) == []
    with pytest.raises(TooManyEvents) as caught:
        read(wrapped(*events))
    assert caught.value.words == (
        "The calendar Home has more events than I can read. "
        "Please move old events into a calendar that is not read."
    )


def test_no_more_events_are_parsed_than_a_span_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ics_events, "OCCURRENCES_MAX", 3)
    monkeypatch.setattr(ics_events, "_parsed", lambda *_: pytest.fail("it was parsed"))
    with pytest.raises(TooManyEvents, match="ask about a shorter time"):
        read(wrapped(*(f"UID:{at}\nDTSTART:20260601T1{at}0000Z" for at in range(6))))


# Long ones, in a child process.


@pytest.fixture
def only_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ics_process, "AT_ONCE_BYTES", 0)


@pytest.mark.usefixtures("only_children")
@pytest.mark.parametrize("zone", [OSLO, timezone(timedelta(hours=-5))])
async def test_a_child_reads_what_a_thread_reads(zone: tzinfo) -> None:
    text = wrapped(
        "UID:1\nSUMMARY:Käse, \\n und mehr\nDTSTART:20261025T003000Z\nDTEND:20261025T013000Z",
        "UID:2\nSUMMARY:Yoga\nDTSTART:20261020T170000Z\nRRULE:FREQ=WEEKLY\nLOCATION:Hall",
        "UID:3\nSUMMARY:Off\nDTSTART;VALUE=DATE:20261024\nTRANSP:OPAQUE",
    )
    span = moment("2026-10-20"), moment("2026-11-20")
    here = events_in([text], *span, zone, "Home")
    data = text.encode()
    assert len(here) == 7
    assert await read_events("ics", data, len(data), *span, zone, "Home") == here


@pytest.mark.usefixtures("only_children")
async def test_a_child_says_why_it_cannot_read(monkeypatch: pytest.MonkeyPatch) -> None:
    span = moment("2026-01-01"), moment("2027-01-01"), OSLO, "Home"
    with pytest.raises(ToolBroke, match="Home gave something that is no calendar"):
        await read_events("ics", b"<html>", 6, *span)
    with pytest.raises(ToolBroke, match="Home cannot be read: the answer is no XML"):
        await read_events("dav", b"<html>", 6, *span)
    data = wrapped(*(f"UID:{at}\nDTSTART:20260601T120000Z" for at in range(10_001))).encode()
    with pytest.raises(TooManyEvents) as caught:
        await read_events("ics", data, len(data), *span)
    assert str(caught.value.words).endswith("Please ask about a shorter time.")
    monkeypatch.setattr(ics_process, "READ_S", 0.01)
    with pytest.raises(TooManyEvents, match="move old events"):
        await read_events("ics", data, len(data), *span)
    monkeypatch.setattr(child_process, "_MAIN", Path("/nowhere.py"))
    monkeypatch.setattr(ics_process, "READ_S", 5.0)
    with pytest.raises(ToolBroke, match="is damaged, or too large"):
        await read_events("ics", data, len(data), *span)


async def test_a_long_calendar_is_not_read_into_this_process(tmp_path: Path) -> None:
    """What is too long is not even opened by a child."""
    path = tmp_path / "a.ics"
    with path.open("wb") as file:
        file.truncate(ics_process.BYTES_MAX + 1)
    with pytest.raises(TooManyEvents, match="more than 20 MB"):
        await IcsFile("Home", path).events(moment("2026-01-01"), moment("2027-01-01"), OSLO)


async def test_a_file_too_long_to_be_added_to_is_left_alone_and_says_what_helps(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.ics"
    text = b"BEGIN:VCALENDAR\n" + b"X-A:" + b"a" * ADDED_TO_BYTES_MAX + b"\nEND:VCALENDAR\n"
    path.write_bytes(text)
    at = moment("2026-06-01T12:00")
    with pytest.raises(TooManyEvents, match="more than 8 MB: move old events"):
        await IcsFile("Home", path).add(NewEvent("Visit", at, at + timedelta(hours=1), at))
    assert path.read_bytes() == text


frames = st.sampled_from(
    ("BEGIN:VEVENT", "END:VEVENT", "BEGIN:VALARM", "END:VALARM", "BEGIN:VTIMEZONE", "END:VCALENDAR")
)
properties = st.sampled_from(
    (
        *("UID:1", "UID:2", "SUMMARY:x", " folded", "TZID:A", "STATUS:CANCELLED"),
        *("DTSTART:20260601T120000Z", "DTSTART;VALUE=DATE:20260601", "DTSTART:x"),
        *("DTSTART;TZID=A:20260601T120000", "DTEND:20260601T130000Z", "DTEND:20260501T130000"),
        *("DTEND;VALUE=DATE:20260605", "DURATION:PT1H", "DURATION:-P1D", "DURATION:x"),
        *(
            "RRULE:FREQ=DAILY;COUNT=3",
            "RRULE:FREQ=WEEKLY;UNTIL=20260701",
            "RRULE:",
            "RRULE:COUNT=2",
        ),
        *("RDATE:20260603T120000Z", "EXDATE:20260602T120000Z", "RDATE;VALUE=DATE:20260603"),
        *("RECURRENCE-ID:20260602T120000Z", "RECURRENCE-ID;VALUE=DATE:20260602"),
    )
)
whole_events = st.lists(properties, max_size=8).map(
    lambda lines: "\n".join(["BEGIN:VEVENT", *lines, "END:VEVENT"])
)


@settings(max_examples=150)
@given(st.lists(whole_events | frames | properties, max_size=6))
def test_any_lines_are_read_without_an_error(lines: list[str]) -> None:
    for event in read("BEGIN:VCALENDAR\n" + "\n".join(lines)):
        assert event.start.timestamp() <= event.end.timestamp()
        assert event.start.tzinfo is OSLO


# What is written.

whens = st.datetimes(datetime(2001, 1, 1), datetime(2035, 1, 1)).map(
    lambda each: each.replace(second=0, microsecond=0, tzinfo=UTC).astimezone(OSLO)
)


@settings(max_examples=60)
@given(st.text(min_size=1, max_size=60), whens, st.integers(5, 600), st.text(max_size=20))
def test_what_is_written_is_read_again(
    title: str, start: datetime, minutes: int, place: str
) -> None:
    end = (start.astimezone(UTC) + timedelta(minutes=minutes)).astimezone(OSLO)
    new = NewEvent(title, start, end, start, place)
    text = calendar_of(new).decode()
    around = start - timedelta(days=1), end + timedelta(days=1)
    (event,) = events_in([text], *around, OSLO, "Home")
    assert (event.start, event.end) == (start, end)
    if title.isprintable() and title.split() == [title]:
        assert event.title == title


def test_a_second_event_in_a_file_brings_no_second_zone() -> None:
    new = NewEvent(
        "Visit", moment("2026-06-01T12:00"), moment("2026-06-01T13:00"), moment("2026-05-01")
    )
    once = with_event(None, new)
    twice = with_event(once, NewEvent("Again", new.start, new.end, new.made_at))
    assert twice.startswith(once.rpartition(b"END:VCALENDAR")[0])
    assert twice.count(b"BEGIN:VTIMEZONE") == 1
    assert [event.title for event in read(twice.decode())] == ["Again", "Visit"]
    with pytest.raises(ValueError, match="no iCalendar file"):
        with_event(b"milk", new)
