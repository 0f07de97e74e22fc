"""The calendar by voice, on calendars in files."""

# ruff: noqa: ASYNC240 - nothing else runs on these tests' event loop

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from caal_node.core.errors import InvalidArguments, ToolBroke, ToolFailure
from caal_node.toolsets.base import BASE, ToolsetServices
from caal_node.toolsets.calendar import Calendar
from caal_node.toolsets.calendar.ics_events import CalendarEvent, TooManyEvents
from caal_node.toolsets.calendar.ics_process import BYTES_MAX
from caal_node.toolsets.calendar.known_calendars import CalendarOptions, FoundEvents
from caal_node.toolsets.calendar.toolset import (
    GAP,
    events_about,
    events_of,
    free_or_not,
    gaps_in,
    repetition_in,
    said_day,
    said_span,
    said_time,
    said_times,
)
from caal_node.toolsets.when import When

OSLO = ZoneInfo("Europe/Oslo")
NOW = datetime(2026, 11, 23, 9, 30, tzinfo=OSLO)
"""A Monday."""

FAMILY = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//test//EN
BEGIN:VEVENT
UID:1
SUMMARY:Dentist
LOCATION:Main Street 4
DTSTART;TZID=Europe/Oslo:20261127T150000
DTEND;TZID=Europe/Oslo:20261127T160000
END:VEVENT
BEGIN:VEVENT
UID:2
SUMMARY:Ann's birthday
DTSTART;VALUE=DATE:20261127
DTEND;VALUE=DATE:20261128
END:VEVENT
BEGIN:VEVENT
UID:3
SUMMARY:Yoga
DTSTART;TZID=Europe/Oslo:20260901T180000
DTEND;TZID=Europe/Oslo:20260901T190000
RRULE:FREQ=WEEKLY
EXDATE;TZID=Europe/Oslo:20261201T180000
END:VEVENT
END:VCALENDAR
"""
WORK = """BEGIN:VCALENDAR
BEGIN:VEVENT
UID:9
SUMMARY:Call with Boston
DTSTART:20261124T160000Z
DURATION:PT45M
END:VEVENT
END:VCALENDAR
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Family.ics").write_text(FAMILY)
    (tmp_path / "work.ics").write_text(WORK)
    return tmp_path


@pytest.fixture
def calendar(folder: Path) -> Calendar:
    return calendar_of(f"{folder}/Family.ics", f"Work={folder}/work.ics")


def calendar_of(*files: str, **more: Any) -> Calendar:
    services = ToolsetServices(timezone=OSLO, now=lambda: NOW)
    return Calendar(CalendarOptions(files=files, **more), services)


async def said(call: Any) -> str:
    """The sentence that a person hears."""
    try:
        return (await call).words
    except ToolFailure as failure:
        return failure.words or f"model: {failure}"


# What is on.


async def test_what_is_on_is_told_by_the_day(calendar: Calendar) -> None:
    assert await said(calendar.check_calendar()) == "There is nothing in the calendar today."
    assert await said(calendar.check_calendar("tomorrow")) == (
        "Tomorrow: Call with Boston from 5 to 5:45 pm and Yoga from 6 to 7 pm."
    )
    result = await calendar.check_calendar("friday")
    assert result.words == "On Friday: Ann's birthday, all day and Dentist from 3 to 4 pm."
    assert result.value["events"] == [
        {"title": "Ann's birthday", "day": "2026-11-27", "calendar": "Family"},
        {
            "title": "Dentist",
            "start": "2026-11-27 15:00",
            "end": "2026-11-27 16:00",
            "place": "Main Street 4",
            "calendar": "Family",
        },
    ]
    assert await said(calendar.check_calendar("this week")) == (
        "Tomorrow: Call with Boston from 5 to 5:45 pm and Yoga from 6 to 7 pm. "
        "On Friday: Ann's birthday, all day and Dentist from 3 to 4 pm."
    )


async def test_a_series_has_its_exceptions(calendar: Calendar) -> None:
    assert await said(calendar.check_calendar("december 1st")) == (
        "There is nothing in the calendar on Tuesday 1 December."
    )
    assert await said(calendar.check_calendar("december 8th")) == (
        "On Tuesday 8 December: Yoga from 6 to 7 pm."
    )


async def test_one_calendar_is_read_by_its_name(calendar: Calendar) -> None:
    for name in ("work", "my work calendar", "Wrok"):
        assert await said(calendar.check_calendar("tomorrow", calendar=name)) == (
            "Tomorrow: Call with Boston from 5 to 5:45 pm."
        )
    assert await said(calendar.check_calendar("tomorrow", calendar="football")) == (
        "There is no calendar of that name. There are: Family, Work."
    )


async def test_an_event_is_found_by_its_words(calendar: Calendar) -> None:
    assert await said(calendar.check_calendar(about="the dentist")) == (
        "Dentist is on Friday from 3 to 4 pm."
    )
    assert await said(calendar.check_calendar(about="birthday")) == "Ann's birthday is on Friday."
    assert await said(calendar.check_calendar(about="plumber")) == (
        "I can't find plumber in the calendar in the next year."
    )
    assert await said(calendar.check_calendar("tomorrow", about="dentist")) == (
        "I can't find dentist in the calendar tomorrow."
    )
    words = await said(calendar.check_calendar(about="yoga"))
    assert words.startswith("Yoga is tomorrow from 6 to 7 pm, Yoga is on Tuesday 8 December")


async def test_the_next_event_is_found(calendar: Calendar, folder: Path) -> None:
    next_one = "Call with Boston is tomorrow from 5 to 5:45 pm."
    for about in ("next", "my next appointment", "the next event"):
        assert await said(calendar.check_calendar(about=about)) == next_one
        assert await said(calendar.check_calendar(about)) == next_one
    words = await said(calendar.check_calendar(about="next", calendar="family"))
    assert words == "Yoga is tomorrow from 6 to 7 pm."
    empty = calendar_of(f"{folder}/none.ics")
    assert await said(empty.check_calendar(about="next")) == (
        "There is nothing in the calendar in the next year."
    )


async def test_words_that_say_no_time_are_told_to_the_model(calendar: Calendar) -> None:
    with pytest.raises(InvalidArguments, match="when: 'the usual' says no time"):
        await calendar.check_calendar("the usual")
    with pytest.raises(InvalidArguments, match="a year at most"):
        await calendar.check_calendar("the next 20 years")


# Free or not.


async def test_whether_somebody_is_free(calendar: Calendar) -> None:
    result = await calendar.check_free_time("friday afternoon")
    assert result.words == (
        "Not all of it: on Friday afternoon there is Dentist from 3 to 4 pm. You are free "
        "from noon to 3 pm and from 4 to 6 pm. There is also Ann's birthday."
    )
    assert result.value["free"] is False
    assert result.value["free_times"] == [
        {"start": "2026-11-27 12:00", "end": "2026-11-27 15:00"},
        {"start": "2026-11-27 16:00", "end": "2026-11-27 18:00"},
    ]
    assert await said(calendar.check_free_time("thursday")) == "Yes, you are free on Thursday."
    assert await said(calendar.check_free_time("friday at 3:30 pm")) == (
        "Not all of it: on Friday from 3:30 to 4:30 pm there is Dentist from 3 to 4 pm. "
        "You are free from 4 to 4:30 pm. There is also Ann's birthday."
    )
    assert await said(calendar.check_free_time("friday from 3 to 4 pm")) == (
        "No: on Friday from 3 to 4 pm there is Dentist from 3 to 4 pm."
        " There is also Ann's birthday."
    )
    assert await said(calendar.check_free_time("friday")) == (
        "Not all of it: on Friday there is Dentist from 3 to 4 pm. You are free from 8 am to 3 pm"
        " and from 4 to 10 pm. There is also Ann's birthday."
    )
    assert await said(calendar.check_free_time("this week")) == (
        "No: from today to Sunday there is Call with Boston tomorrow from 5 to 5:45 pm, "
        "Yoga tomorrow from 6 to 7 pm and Dentist on Friday from 3 to 4 pm. "
        "There is also Ann's birthday."
    )


async def test_today_is_what_is_left_of_it(calendar: Calendar) -> None:
    result = await calendar.check_free_time("today")
    assert result.value["free_times"] == [{"start": "2026-11-23 09:30", "end": "2026-11-24 00:00"}]


async def test_nobody_is_called_free_by_half_of_the_calendars(folder: Path) -> None:
    (folder / "broken.ics").write_text("<html>Sign in</html>")
    calendar = calendar_of(f"{folder}/Family.ics", f"Work={folder}/broken.ics")
    result = await calendar.check_free_time("thursday")
    assert result.words == "I see nothing on Thursday. I can't reach Work right now."
    assert result.value["free"] is False
    assert result.value["not_reached"] == ["Work"]
    words = await said(calendar.check_calendar("friday"))
    assert words.endswith("Dentist from 3 to 4 pm. I can't reach Work right now.")
    with pytest.raises(ToolFailure):
        await calendar.check_calendar("friday", calendar="work")


async def test_a_calendar_with_too_much_says_what_helps_and_nobody_is_free(folder: Path) -> None:
    with (folder / "old.ics").open("wb") as file:
        file.truncate(BYTES_MAX + 1)
    calendar = calendar_of(f"{folder}/Family.ics", f"Work={folder}/old.ics")
    result = await calendar.check_free_time("thursday")
    advice = (
        "The calendar Work has more events than I can read. "
        "Please move old events into a calendar that is not read."
    )
    assert result.words == f"I see nothing on Thursday. {advice}"
    assert result.value["free"] is False
    assert result.value["not_read"] == [advice]
    with pytest.raises(TooManyEvents) as caught:
        await calendar.check_calendar("friday", calendar="work")
    assert caught.value.words == advice


def test_the_model_is_shown_so_many_events_and_how_many_more_there_are() -> None:
    start = datetime(2026, 11, 26, 9, tzinfo=UTC)
    event = CalendarEvent("Meeting", start, start + timedelta(hours=1))
    found = FoundEvents((event,) * 10_000)
    span = When(start, start + timedelta(days=1), "hours")
    for result in (
        events_of(found, span, start.date()),
        events_about("meeting", found, span, start.date()),
        free_or_not(found, span.start, span.end, start.date()),
    ):
        assert len(result.value["events"]) == 100
        assert result.value["more_events"] == 9_900
        assert len(result.words) < 1_000


# New events.


@pytest.mark.parametrize(
    ("arguments", "words", "lines"),
    [
        (
            {"title": "Haircut", "when": "friday at three"},
            "I've put Haircut into the calendar, on Friday from 3 to 4 pm.",
            ["SUMMARY:Haircut", "DTSTART;TZID=Europe/Oslo:20261127T150000"],
        ),
        (
            {"title": "Lunch", "when": "tomorrow at noon", "length": "90 minutes", "place": "Roma"},
            "I've put Lunch into the calendar, tomorrow from noon to 1:30 pm.",
            ["LOCATION:Roma", "DTEND;TZID=Europe/Oslo:20261124T133000"],
        ),
        (
            {"title": "Visit", "when": "tomorrow from 2 to 4 pm"},
            "I've put Visit into the calendar, tomorrow from 2 to 4 pm.",
            ["DTEND;TZID=Europe/Oslo:20261124T160000"],
        ),
        (
            {"title": "Holiday", "when": "december 5th to december 7th"},
            "I've put Holiday into the calendar, from Saturday 5 December to Monday 7 December.",
            ["DTSTART;VALUE=DATE:20261205", "DTEND;VALUE=DATE:20261208"],
        ),
        (
            {"title": "Choir", "when": "every thursday at 7 pm"},
            "I've put Choir into the calendar, on Thursday from 7 to 8 pm, every thursday.",
            ["RRULE:FREQ=WEEKLY", "DTSTART;TZID=Europe/Oslo:20261126T190000"],
        ),
    ],
)
async def test_an_event_is_put_in(
    folder: Path, arguments: dict[str, str], words: str, lines: list[str]
) -> None:
    calendar = calendar_of(f"New={folder}/new.ics")
    assert await said(calendar.add_event(**arguments)) == words
    text = (folder / "new.ics").read_text()
    for line in [*lines, "BEGIN:VCALENDAR", "END:VCALENDAR"]:
        assert f"\n{line}\n" in f"\n{text}\n"
    assert (await calendar.check_calendar(about=arguments["title"])).value["events"]


async def test_what_is_in_a_file_stays_byte_for_byte(calendar: Calendar, folder: Path) -> None:
    for at in range(2):
        await calendar.add_event("Visit", f"tomorrow at {at + 2} pm")
    text = (folder / "Family.ics").read_text()
    assert text.startswith(FAMILY.removesuffix("END:VCALENDAR\n"))
    assert text.endswith("END:VEVENT\nEND:VCALENDAR\n")
    assert text.count("TZID:Europe/Oslo") == 1
    assert "\r" not in text


async def test_the_calendar_of_new_events_is_chosen(folder: Path) -> None:
    files = (f"{folder}/Family.ics", f"Work={folder}/work.ics")
    result = await calendar_of(*files, add_to="work").add_event("Visit", "tomorrow at 2 pm")
    assert result.value["added"]["calendar"] == "Work"
    result = await calendar_of(*files).add_event("Visit", "tomorrow at 2 pm", calendar="work")
    assert result.value["added"]["calendar"] == "Work"
    calendar = calendar_of(addresses=SecretStr("Days=https://example.org/days.ics"))
    assert await said(calendar.add_event("Visit", "tomorrow")) == "That calendar can only be read."


@pytest.mark.parametrize(
    ("when", "length", "words"),
    [
        ("friday afternoon", "", "At what time is Visit?"),
        ("tomorrow", "2 hours", "At what time does Visit begin?"),
        ("yesterday at 3 pm", "", "That time is past. When is it?"),
        ("every leap year", "", "I can repeat it every day, week, month or year. Which is it?"),
        ("soonish", "", "model: when: 'soonish' says no time."),
        ("tomorrow at 2", "a bit", "model: length: 'a bit' says no length of time."),
    ],
)
async def test_what_is_not_clear_is_asked(
    calendar: Calendar, folder: Path, when: str, length: str, words: str
) -> None:
    assert (await said(calendar.add_event("Visit", when, length))).startswith(words)
    assert (folder / "Family.ics").read_text() == FAMILY


async def test_a_file_that_is_no_calendar_is_left_alone(folder: Path) -> None:
    (folder / "notes.ics").write_text("milk")
    calendar = calendar_of(f"Notes={folder}/notes.ics")
    assert await said(calendar.add_event("Visit", "tomorrow")) == (
        "I can't use the calendar Notes right now."
    )
    assert (folder / "notes.ics").read_text() == "milk"


# Options.


async def test_a_file_that_is_not_utf_8_is_read_and_left_alone(folder: Path) -> None:
    data = FAMILY.replace("Dentist", "Zahnärztin").encode("latin-1")
    (folder / "Family.ics").write_bytes(data)
    calendar = calendar_of(f"{folder}/Family.ics")
    with pytest.raises(ToolBroke, match=r"Family\.ics is not UTF-8; save it as UTF-8"):
        await calendar.add_event("Visit", "tomorrow at 6 pm")
    assert (folder / "Family.ics").read_bytes() == data


async def test_who_names_no_calendar_has_one_in_a_file(tmp_path: Path) -> None:
    options = CalendarOptions.model_validate({}, context={BASE: tmp_path})
    calendar = Calendar(options, ToolsetServices(timezone=OSLO, now=lambda: NOW))
    assert await said(calendar.check_calendar()) == "There is nothing in the calendar today."
    await calendar.add_event("Visit", "tomorrow at 2 pm")
    assert await said(calendar.check_calendar("tomorrow")) == "Tomorrow: Visit from 2 to 3 pm."
    assert [path.name for path in tmp_path.glob("*.ics")] == ["calendar.ics"]
    assert CalendarOptions(url="https://a.example/").file_places == []


def test_what_is_no_address_is_told() -> None:
    with pytest.raises(ValidationError, match="write it with https://"):
        CalendarOptions(url="cloud.example.org")
    with pytest.raises(ValidationError, match="write each as Name=https"):
        CalendarOptions(addresses=SecretStr("somewhere"))


def test_files_start_from_the_folder_of_the_settings(tmp_path: Path) -> None:
    options = CalendarOptions.model_validate(
        {"files": ["School=a/b.ics", "c.ics"]}, context={BASE: tmp_path}
    )
    assert [(each.name, each.place) for each in options.file_places] == [
        ("School", str(tmp_path / "a/b.ics")),
        ("c", str(tmp_path / "c.ics")),
    ]


def test_published_calendars_have_names_and_their_addresses_are_secret(tmp_path: Path) -> None:
    text = "Bank holidays=https://a.example/x?a=1,2, webcal://b.example/team%20one.ics"
    options = CalendarOptions(addresses=SecretStr(text))
    assert [(each.name, each.place) for each in options.published] == [
        ("Bank holidays", "https://a.example/x?a=1,2"),
        ("team one", "https://b.example/team%20one.ics"),
    ]
    assert "a.example" not in repr(options)
    toolset = Calendar(options, ToolsetServices(timezone=OSLO))
    assert "https://a.example/x?a=1,2" in toolset.secrets


async def test_the_check_names_the_calendars(calendar: Calendar, folder: Path) -> None:
    assert await calendar.check() == "calendars: Family, Work"
    with pytest.raises(ToolFailure, match="no calendar 'Garden'"):
        await calendar_of(f"{folder}/Family.ics", add_to="Garden").check()


# How it is said.


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=OSLO)


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        ("2026-11-23T00:00", "2026-11-24T00:00", "today"),
        ("2026-11-24T12:00", "2026-11-24T18:00", "tomorrow afternoon"),
        ("2026-11-23T18:00", "2026-11-24T00:00", "this evening"),
        ("2026-11-29T09:00", "2026-11-29T11:30", "on Sunday from 9 to 11:30 am"),
        ("2026-11-30T09:00", "2026-11-30T13:00", "on Monday 30 November from 9 am to 1 pm"),
        ("2026-11-28T00:00", "2026-12-01T00:00", "from Saturday to Monday 30 November"),
        ("2027-01-02T00:00", "2027-01-03T00:00", "on Saturday 2 January 2027"),
        ("2026-11-24T15:00", "2026-11-24T15:00", "tomorrow at 3 pm"),
    ],
)  # fmt: skip
def test_spans_are_said_as_people_say_them(start: str, end: str, words: str) -> None:
    assert said_span(moment(start), moment(end), NOW.date()) == words


def test_times_of_day() -> None:
    said = [
        said_time(moment(f"2026-11-23T{time}"))
        for time in ("00:00", "00:05", "12:00", "12:30", "23:59")
    ]
    assert said == ["midnight", "12:05 am", "noon", "12:30 pm", "11:59 pm"]
    assert (
        said_times(moment("2026-11-23T11:00"), moment("2026-11-23T12:00")) == "from 11 am to noon"
    )
    assert said_day(moment("2026-11-22T00:00").date(), NOW.date()) == "yesterday"


@pytest.mark.parametrize(
    ("when", "rule", "words", "rest"),
    [
        ("tomorrow at 7", "", "", "tomorrow at 7"),
        ("every tuesday at 7", "FREQ=WEEKLY", "every tuesday", "tuesday at 7"),
        ("at 7 every other friday", "FREQ=WEEKLY;INTERVAL=2", "every other friday", "at 7 friday"),
        ("daily at 8 am", "FREQ=DAILY", "every day", "at 8 am"),
        ("every evening at 8", "FREQ=DAILY", "every day", "evening at 8"),
        ("5 June every year", "FREQ=YEARLY", "every year", "5 June"),
    ],
)
def test_how_often_is_read(when: str, rule: str, words: str, rest: str) -> None:
    repetition, left = repetition_in(when)
    assert repetition is not None
    assert (repetition.rule, repetition.words, left) == (rule, words, rest)


minutes = st.integers(0, 24 * 60)


@given(st.lists(st.tuples(minutes, minutes)))
def test_free_times_and_events_share_the_span_between_them(spans: list[tuple[int, int]]) -> None:
    start, end = moment("2026-11-24T00:00"), moment("2026-11-25T00:00")
    events = [
        CalendarEvent("x", start + span[0] * (GAP / 30), start + span[1] * (GAP / 30))
        for span in map(sorted, spans)
    ]
    gaps = gaps_in(events, start, end)
    last = start
    for begin, finish in gaps:
        assert last <= begin < finish <= end
        assert finish - begin >= GAP
        assert not any(event.start < finish and event.end > begin for event in events)
        last = finish
