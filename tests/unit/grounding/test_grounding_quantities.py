"""Figures, times and dates in a text are read by value, however they are said."""

from __future__ import annotations

import datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.grounding.meanings import at_said_time
from caal_node.grounding.quantities import Misfit, in_own_units, refuse_misfits, stated_in, unit_of
from caal_node.grounding.spoken_numbers import UNITS, WORDS, numbers
from caal_node.grounding.spoken_times import weekday_of

SMALL = [word for word, value in WORDS["small_numbers"].items() if value < 20]
TENS = [word for word, value in WORDS["small_numbers"].items() if value >= 20]


def in_words(number: int) -> str:
    """A number below a billion as English says it."""
    if number < 20:
        return SMALL[number]
    if number < 100:
        tens, rest = divmod(number, 10)
        return TENS[tens - 2] + (f"-{SMALL[rest]}" if rest else "")
    for size, name in ((1_000_000, "million"), (1_000, "thousand"), (100, "hundred")):
        if number >= size:
            many, rest = divmod(number, size)
            joint = " and " if rest and rest < 100 else " "
            return f"{in_words(many)} {name}" + (f"{joint}{in_words(rest)}" if rest else "")
    raise AssertionError(number)


@given(st.integers(0, 999_999_999))
def test_a_whole_number_is_read_in_words_and_in_digits(number: int) -> None:
    for said in (in_words(number), f"{number:,}", str(number)):
        (found,) = numbers(f"there are {said} of them")
        assert found.value == number, said


@given(st.integers(-99_999, 99_999), st.integers(1, 3))
def test_decimals_are_read_with_the_size_of_their_last_place(number: int, places: int) -> None:
    value = number / 10**places
    (found,) = numbers(f"it is {value:.{places}f} now")
    assert found.value == pytest.approx(value)
    assert found.step == pytest.approx(10**-places)


@given(st.integers(0, 23), st.integers(0, 59))
def test_a_time_is_the_same_by_every_clock(hour: int, minute: int) -> None:
    half = "AM" if hour < 12 else "PM"
    twelve = (hour + 11) % 12 + 1
    said = [f"{hour:02}:{minute:02}", f"{twelve}:{minute:02} {half}", f"{twelve}:{minute:02}{half}"]
    if 0 < minute <= 30:
        said.append(f"{in_words(minute)} minutes past {in_words(twelve)}")
    if minute > 30:
        later = (hour + 12) % 12 + 1
        said.append(f"{in_words(60 - minute)} minutes to {in_words(later)}")
    known = stated_in(f"2026-03-05T{hour:02}:{minute:02}:00").times[0]
    for words in said:
        times = [time for time in stated_in(f"it is at {words}.").times if time.is_sure]
        assert len(times) == 1, words
        assert times[0].is_same(known), words


@pytest.mark.parametrize(
    ("said", "minute"),
    [
        ("half past seven", 450),
        ("a quarter to two", 105),
        ("quarter past three in the afternoon", 915),
        ("seven past two", 127),
        ("nine o'clock", 540),
        ("noon", 720),
        ("9am", 540),
        ("7 p.m.", 1140),
    ],
)
def test_a_time_in_words_has_its_minute(said: str, minute: int) -> None:
    (time,) = (time for time in stated_in(f"at {said}").times if time.is_sure)
    assert time.minute == minute


def test_a_time_of_one_half_of_the_day_is_not_one_of_the_other() -> None:
    (evening,), (morning,), (either,) = (
        stated_in(said).times for said in ("at 9:30 in the evening", "at 9:30 AM", "at 9:30")
    )
    assert not evening.is_same(morning)
    assert either.is_same(evening)
    assert either.is_same(morning)


@given(st.dates(datetime.date(1583, 1, 1), datetime.date(2999, 12, 31)))
def test_a_date_knows_its_weekday(date: datetime.date) -> None:
    (day,) = stated_in(date.isoformat()).days
    assert weekday_of(day) == date.weekday()
    for said in (
        f"{date:%B} {date.day}, {date.year}",
        f"the {date.day}th of {date:%B} {date.year}",
    ):
        (day,) = (day for day in stated_in(said).days if day.month)
        assert (day.year, day.month, day.day) == (date.year, date.month, date.day)
        assert weekday_of(day) == date.weekday()


@pytest.mark.parametrize(
    ("said", "value", "unit"),
    [
        ("twenty-one degrees Celsius", 21, "celsius"),
        ("-3 °C", -3, "celsius"),
        ("two degrees below zero", -2, "degree"),
        ("minus four", -4, None),
        ("seven and a half", 7.5, None),
        ("two and a half hours", 2.5, "hour"),
        ("an hour and a half", 1.5, "hour"),
        ("three quarters of an hour", 0.75, "hour"),
        ("half a litre", 0.5, "litre"),
        ("two minutes and thirty seconds", 2.5, "minute"),
        ("34 euros fifty", 34.5, "euro"),
        ("forty-six euros and eight cents", 46.08, "euro"),
        ("$1,200.50", 1200.5, "dollar"),
        ("1.2 million", 1_200_000, None),
        ("96k", 96_000, None),
        ("a dozen", 12, None),
        ("twenty one point five", 21.5, None),
        ("57 %", 57, "percent"),
        ("9 km/h", 9, "kilometres_per_hour"),
        ("63.7 kilowatt-hours", 63.7, "kilowatt_hour"),
    ],
)
def test_a_figure_is_read_with_its_unit(said: str, value: float, unit: str | None) -> None:
    (figure,) = stated_in(f"it says {said} here").figures
    assert figure.value == pytest.approx(value)
    assert (figure.unit.name if figure.unit else None) == unit


@pytest.mark.parametrize("said", ["the first one", "one of them", "on the one hand", "no one"])
def test_the_word_one_is_no_figure_by_itself(said: str) -> None:
    assert stated_in(said).figures == ()


def test_two_numbers_beside_each_other_stay_two() -> None:
    assert [figure.value for figure in stated_in("they won three two").figures] == [3, 2]
    assert [figure.value for figure in stated_in("it ended 98-91").figures] == [98, 91]


def test_a_telephone_number_is_a_code_and_no_figure() -> None:
    stated = stated_in("call +43 316 555 019 please")
    assert [code.digits for code in stated.codes] == ["43316555019"]
    assert stated.figures == ()


PIECES = st.sampled_from(
    [
        *(*SMALL, *TENS, *UNITS, "hundred", "thousand", "and", "a", "half", "past", "to", "point"),
        *("minus", "7", "12:30", "2026-11-24", "monday", "march", "pm", ",", ".", "-", "%", "$"),
        *("°", "İ", "ß", "\n"),
    ]
)


@given(st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=40).map(" ".join)))
def test_any_text_can_be_read_and_what_is_found_lies_in_it(text: str) -> None:
    stated = stated_in(text)
    for found in (*stated.figures, *stated.times, *stated.days, *stated.codes):
        assert 0 <= found.start < found.end <= len(text)
    figures = stated.figures
    assert all(one.end <= other.start for one, other in pairwise(figures))


# -- the units of a tool's parameters ----------------------------------------------------------


def of_time(unit: str, kind: str = "number") -> dict[str, Any]:
    return {"properties": {unit: {"type": kind}}}


@pytest.mark.parametrize(
    ("said", "unit", "given", "right"),
    [
        ("start a ninety second countdown", "minutes", 90, 1.5),
        ("90 s please", "minutes", 90, 1.5),
        ("Start a ninety second countdown", "duration_minutes", 90, 1.5),
        ("half an hour", "minutes", 0.5, 30),
        ("an hour and a half", "minutes", 1.5, 90),
        ("two hours", "timeoutSec", 2, 7200),
        ("3 days", "hours", 3, 72),
        ("36 hours", "days", 36, 1.5),
        ("2 weeks", "days", 2, 14),
        ("an hour and thirty minutes", "minutes", 30, 90),
        ("five seconds", "delay_ms", 5, 5000),
        ("a 90 second timer", "minutes", 1, 1.5),
        ("a 90 second timer", "minutes", 2, 1.5),
        ("wake me in an hour", "minutes", 1, 60),
        ("stell einen Timer auf zwei Stunden", "minutes", 2, 120),
        # It is right already, stands elsewhere too, is of no length, or of no unit.
        ("half an hour", "minutes", 30, 30),
        ("ninety minutes", "minutes", 90, 90),
        ("timer number 90 for 90 seconds", "minutes", 90, 90),
        ("I waited two hours, set one for 10", "minutes", 10, 10),
        ("I waited two hours, set a short one", "minutes", 5, 5),
        ("wake me in 7 minutes", "hour", 7, 7),
        ("the last two months", "days", 60, 60),
        ("ninety percent", "minutes", 90, 90),
        ("90 seconds", "price_min", 90, 90),
        ("90 seconds", "rooms", 90, 90),
    ],
)
def test_a_length_of_time_reaches_a_parameter_in_its_own_unit(
    said: str, unit: str, given: float, right: float
) -> None:
    assert in_own_units(of_time(unit), {unit: given}, said) == {unit: right}


@pytest.mark.parametrize(
    ("said", "given", "right"),
    [
        ("set a timer for a quarter of an hour", 30, 15),
        ("half hour timer please", 60, 30),
        ("wake me in an hour and a half", 60, 90),
        ("set a timer for half an hour", 30, 30),
        ("set a timer for two hours", 5, 5),
        ("half an hour of pasta and 10 minutes of sauce", 5, 5),
        ("Timer auf eine Viertelstunde", 30, 15),
        ("weck mich in einer halben Stunde", 60, 30),
        ("in einer Dreiviertelstunde", 30, 45),
        ("anderthalb Stunden bitte", 60, 90),
        ("eine Stunde und fünfzehn Minuten", 60, 75),
        ("stell einen Timer auf zwei Stunden", 5, 5),
    ],
)
def test_a_required_length_is_the_part_of_a_unit_that_was_said(
    said: str, given: float, right: float
) -> None:
    schema = {**of_time("minutes", "integer"), "required": ["minutes"]}
    assert in_own_units(schema, {"minutes": given}, said) == {"minutes": right}
    assert in_own_units(of_time("minutes"), {"minutes": given}, said) == {"minutes": given}


@pytest.mark.parametrize(
    ("said", "given", "right"),
    [
        ("remind me in a quarter of an hour", "in 30 minutes", "in a quarter of an hour"),
        ("a timer for an hour and a half", "1 hour", "an hour and a half"),
        ("in einer Dreiviertelstunde", "30 Minuten", "einer Dreiviertelstunde"),
        ("half an hour timer", "30 minutes", "30 minutes"),
        ("a timer for two hours", "20 minutes", "20 minutes"),
        ("half an hour of pasta and 10 minutes of sauce", "10 minutes", "10 minutes"),
        ("half an hour before the film", "at 7:30 pm", "at 7:30 pm"),
        ("play something for half an hour", "some jazz", "some jazz"),
    ],
)
def test_a_required_text_has_the_part_of_a_unit_that_was_said(
    said: str, given: str, right: str
) -> None:
    schema = {**of_time("length", "string"), "required": ["length"]}
    assert in_own_units(schema, {"length": given}, said) == {"length": right}
    assert in_own_units(of_time("length", "string"), {"length": given}, said) == {"length": given}


@pytest.mark.parametrize(
    ("said", "minutes"),
    [
        ("eine Viertelstunde", 15),
        ("eine halbe Stunde", 30),
        ("drei Viertelstunden", 45),
        ("einer dreiviertel Stunde", 45),
        ("anderthalb Stunden", 90),
        ("zweieinhalb Stunden", 150),
        ("fünfundvierzig Minuten", 45),
        ("1,5 Stunden", 90),
        ("30 Sekunden", 0.5),
        ("zwei Tage", 2880),
        ("eine Stunde und fünf Minuten", 65),
    ],
)
def test_a_length_is_read_in_german(said: str, minutes: float) -> None:
    (figure,) = stated_in(f"Bitte in {said}!").figures
    assert figure.unit is not None
    assert figure.value * figure.unit.factor == pytest.approx(minutes * 60)


@pytest.mark.parametrize("said", ["die letzte Stunde", "Guten Tag", "halb acht", "der Tagesplan"])
def test_a_word_of_time_alone_is_no_length_in_german(said: str) -> None:
    assert not any(figure.unit for figure in stated_in(said).figures)


def test_two_parameters_may_share_a_length() -> None:
    schema = {"properties": {"hours": {"type": "integer"}, "minutes": {"type": "integer"}}}
    arguments = {"hours": 1, "minutes": 30}
    said = "1 hour and 30 minutes"
    assert in_own_units(schema, arguments, said) is arguments
    refuse_misfits(schema, arguments, said)


def test_a_parameter_of_whole_numbers_is_refused_what_is_none_and_the_error_says_what_it_is() -> (
    None
):
    schema = of_time("minutes", "integer")
    assert in_own_units(schema, {"minutes": 90}, "ninety seconds") == {"minutes": 90}
    with pytest.raises(Misfit, match=r"'ninety seconds' was said, which is 1\.5 in the unit"):
        refuse_misfits(schema, {"minutes": 90}, "ninety seconds")
    assert in_own_units(schema, {"minutes": 2}, "two hours") == {"minutes": 120}
    refuse_misfits(of_time("days", "integer"), {"days": 2}, "the next 36 hours")


def test_a_text_of_digits_stays_a_text() -> None:
    assert in_own_units(of_time("minutes", "string"), {"minutes": "90"}, "90 s") == {
        "minutes": "1.5"
    }


def test_of_a_long_story_no_length_is_taken() -> None:
    story = "one hour, two hours, three hours, four hours, five days and ninety seconds"
    assert in_own_units(of_time("minutes"), {"minutes": 90}, story) == {"minutes": 90}


@pytest.mark.parametrize(
    ("name", "about", "unit"),
    [
        ("minutes", {}, "minute"),
        ("fade_seconds", {"description": "as minutes go"}, "second"),
        ("length", {"description": "Length of the event in minutes"}, "minute"),
        ("length", {"unit": "s"}, "second"),
        ("length", {"description": "In minutes, and not in hours"}, None),
        ("length", {"description": "The second one of the day"}, None),
        ("hour", {}, None),
        ("s", {}, None),
        ("speed", {"unit": "km/h"}, None),
    ],
)
def test_a_parameter_states_its_unit(name: str, about: dict[str, Any], unit: str | None) -> None:
    found = unit_of(name, about)
    assert (found.name if found else None) == unit


@given(
    st.text(max_size=60),
    st.dictionaries(st.sampled_from(["minutes", "hours", "x"]), st.integers() | st.text()),
)
def test_any_words_and_arguments_can_be_compared(said: str, arguments: dict[str, Any]) -> None:
    schema = {"properties": {"minutes": {"type": "integer"}, "hours": {"type": "number"}}}
    once = in_own_units(schema, arguments, said)
    assert once.keys() == arguments.keys()
    assert in_own_units(schema, once, said) == once


@given(number=st.integers(1, 99), unit=st.sampled_from(["seconds", "minutes", "hours", "days"]))
def test_what_was_said_is_kept_in_any_unit(number: int, unit: str) -> None:
    for own in ("seconds", "minutes", "hours", "days"):
        (value,) = in_own_units(of_time(own), {own: number}, f"for {number} {unit}").values()
        factor = UNITS[own].factor
        assert value * factor == pytest.approx(number * UNITS[unit].factor, rel=1e-6)


@pytest.mark.parametrize(
    ("said", "given", "meant"),
    [
        ("book a table for tonight at seven", "20:00", "19:00"),
        ("reserve it at half past seven for four of us", "17:00", "19:30"),
        ("wake me at quarter to eight", "06:45", "07:45"),
        ("lunch at 12:30 please", "13:00", "12:30"),
        ("try half past eight then", "20:30", "20:30"),
        ("try half past eight then", "8:30", "8:30"),
        # Another time may be meant where these words stand, or where two times do.
        ("wake me an hour before eight", "07:00", "07:00"),
        ("some time before eight", "07:30", "07:30"),
        ("move it from three to four", "15:30", "15:30"),
        ("in two hours at the earliest", "18:00", "18:00"),
        ("book a table", "20:00", "20:00"),
        ("set it for 4 people at 4", "10:00", "10:00"),
        ("at seven", "soon", "soon"),
    ],
)
def test_the_one_time_that_was_said_takes_the_place_of_another(
    said: str, given: str, meant: str
) -> None:
    assert at_said_time({"time": given, "people": 4}, said) == {"time": meant, "people": 4}


def test_where_a_call_has_two_times_none_of_them_is_changed() -> None:
    times = {"begin": "09:00", "end": "10:00"}
    assert at_said_time(times, "book it for eight o'clock") == times


@given(st.integers(0, 23), st.integers(0, 59), st.text(max_size=80))
def test_a_time_stays_or_becomes_a_time_of_day(hour: int, minute: int, said: str) -> None:
    found = at_said_time({"time": f"{hour:02d}:{minute:02d}"}, said)["time"]
    told_hour, told_minute = map(int, found.split(":"))
    assert len(found) == 5
    assert 0 <= told_hour < 24
    assert 0 <= told_minute < 60
