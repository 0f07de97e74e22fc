"""Points, spans and lengths of time in people's words, across clock changes too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from caal_node.core.errors import InvalidArguments
from caal_node.toolsets.when import (
    asked_length,
    asked_when,
    at_wall_clock,
    later,
    read_length,
    read_when,
)

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 23, 18, 50, tzinfo=BERLIN)
"""A Monday evening."""
ZONES = [
    ZoneInfo(name)
    for name in (
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",  # its clocks change by half an hour
        "Pacific/Apia",  # it has left out a day
        "Asia/Kolkata",
        "UTC",
    )
]
FORM = "%Y-%m-%d %H:%M"


@pytest.mark.parametrize(
    ("words", "start"),
    [
        ("tomorrow at half past seven", "2026-11-24 07:30"),
        ("in 10 minutes", "2026-11-23 19:00"),
        ("in an hour and a half", "2026-11-23 20:20"),
        ("ten minutes from now", "2026-11-23 19:00"),
        ("2 hours ago", "2026-11-23 16:50"),
        ("at seven", "2026-11-23 19:00"),
        ("7:30 p.m.", "2026-11-23 19:30"),
        ("7.30 am", "2026-11-24 07:30"),
        ("seven thirty in the morning", "2026-11-24 07:30"),
        ("quarter to six", "2026-11-24 05:45"),
        ("half seven", "2026-11-23 19:30"),
        ("at ten to eleven", "2026-11-23 22:50"),
        ("at five past nine", "2026-11-23 21:05"),
        ("seven oh five", "2026-11-23 19:05"),
        ("730 am", "2026-11-24 07:30"),
        ("19:30 tomorrow", "2026-11-24 19:30"),
        ("tomorrow at four", "2026-11-24 16:00"),
        ("tomorrow 7", "2026-11-24 07:00"),
        ("tonight at eight", "2026-11-23 20:00"),
        ("today at five", "2026-11-23 17:00"),
        ("tomorrow night at one", "2026-11-25 01:00"),
        ("at noon", "2026-11-24 12:00"),
        ("at midnight", "2026-11-24 00:00"),
        ("friday at midnight", "2026-11-28 00:00"),
        ("the third of May at noon", "2027-05-03 12:00"),
        ("Friday the 27th at 3", "2026-11-27 15:00"),
        ("2026-11-25T14:00:00Z", "2026-11-25 14:00"),
        ("in 3 days at 9 am", "2026-11-26 09:00"),
        ("20 minutes before noon", "2026-11-24 11:40"),
        ("in 24 hours", "2026-11-24 18:50"),
        ("now", "2026-11-23 18:50"),
    ],
)
def test_a_point_of_time_is_read(words: str, start: str) -> None:
    when = read_when(words, NOW)
    assert when is not None
    assert (when.start.strftime(FORM), when.kind, when.end) == (start, "time", when.start)


@pytest.mark.parametrize(
    ("words", "start", "end", "kind"),
    [
        ("friday afternoon", "2026-11-27 12:00", "2026-11-27 18:00", "hours"),
        ("this evening", "2026-11-23 18:00", "2026-11-24 00:00", "hours"),
        ("in the morning", "2026-11-24 06:00", "2026-11-24 12:00", "hours"),
        ("between two and four on friday", "2026-11-27 14:00", "2026-11-27 16:00", "hours"),
        ("from 3 to 5 pm", "2026-11-24 15:00", "2026-11-24 17:00", "hours"),
        ("from 10 to 11 tomorrow", "2026-11-24 10:00", "2026-11-24 11:00", "hours"),
        ("11 to 1 pm tomorrow", "2026-11-24 11:00", "2026-11-24 13:00", "hours"),
        ("from half past two to four friday", "2026-11-27 14:30", "2026-11-27 16:00", "hours"),
        ("tomorrow 10 pm until 2 am", "2026-11-24 22:00", "2026-11-25 02:00", "hours"),
        ("friday at 3 for an hour", "2026-11-27 15:00", "2026-11-27 16:00", "hours"),
        ("until 9 pm", "2026-11-23 18:50", "2026-11-23 21:00", "hours"),
        ("after 8 pm", "2026-11-23 20:00", "2026-11-24 00:00", "hours"),
        ("the next 2 hours", "2026-11-23 18:50", "2026-11-23 20:50", "hours"),
        ("today", "2026-11-23 00:00", "2026-11-24 00:00", "days"),
        ("yesterday", "2026-11-22 00:00", "2026-11-23 00:00", "days"),
        ("monday", "2026-11-23 00:00", "2026-11-24 00:00", "days"),
        ("next friday", "2026-12-04 00:00", "2026-12-05 00:00", "days"),
        ("last friday", "2026-11-20 00:00", "2026-11-21 00:00", "days"),
        ("on the 28th", "2026-11-28 00:00", "2026-11-29 00:00", "days"),
        ("the 3rd", "2026-12-03 00:00", "2026-12-04 00:00", "days"),
        ("the twenty-first", "2026-12-21 00:00", "2026-12-22 00:00", "days"),
        ("the second of december", "2026-12-02 00:00", "2026-12-03 00:00", "days"),
        ("december twenty-second", "2026-12-22 00:00", "2026-12-23 00:00", "days"),
        ("december 24", "2026-12-24 00:00", "2026-12-25 00:00", "days"),
        ("february 29", "2028-02-29 00:00", "2028-03-01 00:00", "days"),
        ("this weekend", "2026-11-28 00:00", "2026-11-30 00:00", "days"),
        ("next week", "2026-11-30 00:00", "2026-12-07 00:00", "days"),
        ("next month", "2026-12-01 00:00", "2027-01-01 00:00", "days"),
        ("in two weeks", "2026-12-07 00:00", "2026-12-08 00:00", "days"),
        ("the next three days", "2026-11-23 00:00", "2026-11-27 00:00", "days"),
        ("from monday to wednesday", "2026-11-23 00:00", "2026-11-26 00:00", "days"),
        ("friday for 3 days", "2026-11-27 00:00", "2026-11-30 00:00", "days"),
    ],
)
def test_a_span_of_time_is_read(words: str, start: str, end: str, kind: str) -> None:
    when = read_when(words, NOW)
    assert when is not None
    read = when.start.strftime(FORM), when.end.strftime(FORM), when.kind
    assert read == (start, end, kind)


@pytest.mark.parametrize(
    "words",
    ["", "hello", "6:75", "25 potatoes on friday", "at 3 and friday at 5 and 7", "31 february",
     "on friday for two hours", "9" * 500, "the 45th", "in 99999999999 years"],
)  # fmt: skip
def test_words_that_say_no_time_or_only_half_of_one_are_none(words: str) -> None:
    assert read_when(words, NOW) is None


def test_other_words_are_kept_as_the_rest() -> None:
    when = read_when("dentist on Friday at 3 pm", NOW)
    assert when is not None
    assert when.rest == "dentist"


def test_an_alarm_means_the_early_hour_that_a_meeting_does_not() -> None:
    meeting, alarm = (read_when("tomorrow at five", NOW, first_morning_hour=at) for at in (7, 3))
    assert meeting is not None
    assert alarm is not None
    assert (meeting.start.hour, alarm.start.hour) == (17, 5)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("10 minutes", 600),
        ("for twenty-five minutes", 1500),
        ("an hour and a half", 5400),
        ("half an hour", 1800),
        ("a half hour", 1800),
        ("three quarters of an hour", 2700),
        ("two and a half minutes", 150),
        ("an hour and twenty minutes", 4800),
        ("1 hour 20 minutes and 10 seconds", 4810),
        ("1h30m", 5400),
        ("5 min", 300),
        ("90 s", 90),
        ("ninety seconds", 90),
        ("a couple of minutes", 120),
        ("00:10:00", 600),
        ("a 10 minute pasta timer", 600),
        ("a minute", 60),
        ("another minute", 60),
        ("1 second", 1),
        ("a second", 1),
        ("a 45 second timer", 45),
        ("twenty second", 20),
        ("5 more minutes", 300),
    ],
)
def test_a_length_is_read(words: str, seconds: int) -> None:
    assert read_length(words) == timedelta(seconds=seconds)


@pytest.mark.parametrize("words", ["10", "", "pasta", "10 minutes past 7", "0 minutes", "1:30"])
def test_what_is_no_length_is_none(words: str) -> None:
    assert read_length(words) is None


def test_a_tool_is_told_how_a_time_and_a_length_are_written() -> None:
    with pytest.raises(InvalidArguments, match=r"when: 'soon' says no time.*tomorrow at 7 am"):
        asked_when("when", "soon", NOW)
    with pytest.raises(InvalidArguments, match=r"length: '10' says no length.*10 minutes"):
        asked_length("length", "10")


def test_a_time_that_the_clocks_leave_out_is_as_long_after_the_change() -> None:
    before = datetime(2026, 3, 28, 20, 0, tzinfo=BERLIN)
    when = read_when("tomorrow at 2:30 am", before)
    assert when is not None
    assert when.start.strftime(FORM) == "2026-03-29 03:30"


def test_of_a_time_that_comes_twice_the_next_one_is_meant() -> None:
    between = datetime(2026, 10, 25, 0, 40, tzinfo=UTC).astimezone(BERLIN)  # 2:40, the first time
    when = read_when("at 2:30 am", between)
    assert when is not None
    assert when.start.astimezone(UTC) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


def test_minutes_are_real_ones_and_days_keep_the_clock_across_a_change() -> None:
    before = datetime(2026, 10, 24, 20, 0, tzinfo=BERLIN)
    hours, days = read_when("in 24 hours", before), read_when("in 2 days at 8 pm", before)
    assert hours is not None
    assert days is not None
    assert hours.start.strftime(FORM) == "2026-10-25 19:00"
    assert days.start.strftime(FORM) == "2026-10-26 20:00"


def moment_of(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.replace(tzinfo=UTC).astimezone(zone)


MOMENTS = st.builds(
    moment_of, st.datetimes(datetime(2000, 1, 1), datetime(2060, 1, 1)), st.sampled_from(ZONES)
)


@given(MOMENTS, st.integers(1, 12), st.integers(0, 59), st.sampled_from(["am", "pm"]))
def test_a_time_without_a_day_is_the_next_one(
    now: datetime, hour: int, minute: int, half: str
) -> None:
    when = read_when(f"at {hour}:{minute:02d} {half}", now)
    assert when is not None
    assert timedelta(0) <= when.start.astimezone(UTC) - now.astimezone(UTC) < timedelta(hours=50)
    shown = hour % 12 * 60 + minute + (720 if half == "pm" else 0)
    apart = when.start.hour * 60 + when.start.minute - shown
    assert 0 <= apart <= 60  # later only where the clocks leave it out


@given(MOMENTS, st.integers(1, 2000), st.sampled_from(["seconds", "minutes", "hours"]))
def test_a_length_from_now_is_that_long(now: datetime, count: int, unit: str) -> None:
    when = read_when(f"in {count} {unit}", now)
    assert when is not None
    assert when.start.astimezone(UTC) - now.astimezone(UTC) == timedelta(**{unit: count})
    assert read_length(f"{count} {unit}") == timedelta(**{unit: count})


@given(MOMENTS, st.integers(0, 60), st.integers(0, 3000))
def test_no_wall_clock_time_is_earlier_than_what_clocks_have_shown(
    now: datetime, days: int, minute: int
) -> None:
    day = now.date() + timedelta(days)
    moment = at_wall_clock(day, minute, now.tzinfo)
    wanted = datetime.combine(day, datetime.min.time()) + timedelta(minutes=minute)
    assert timedelta(0) <= moment.replace(tzinfo=None) - wanted <= timedelta(days=1)
    assert later(moment, 60) > moment


WORDS = st.lists(
    st.sampled_from(
        """at in on the a an half quarter past to from until for next last this every 3 7 12 28th
        10:30 pm am noon midnight monday friday tomorrow tonight yesterday morning afternoon week
        weekend month minutes hours days ago may december 2026-02-30 o'clock twenty five and - ,
        9999-12-31 0 24 60 years""".split()  # noqa: SIM905 - a list of words reads better as words
    ),
    max_size=10,
).map(" ".join)


@given(WORDS | st.text(max_size=300), MOMENTS)
@example("last year last year", datetime(2000, 2, 29, tzinfo=UTC))
def test_whatever_is_said_gives_a_span_that_does_not_end_before_it_begins(
    words: str, now: datetime
) -> None:
    when = read_when(words, now)
    if when is not None:
        assert when.start.astimezone(UTC) <= when.end.astimezone(UTC)
        assert when.start.tzinfo is now.tzinfo
        if when.kind == "time":
            assert when.start == when.end
    length = read_length(words)
    assert length is None or length > timedelta(0)
