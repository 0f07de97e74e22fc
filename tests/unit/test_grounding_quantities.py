"""Figures, times and dates in a text are read by value, however they are said."""

from __future__ import annotations

import datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.grounding.fact_words import UNITS, WORDS
from caal_node.grounding.quantities import stated_in
from caal_node.grounding.spoken_numbers import numbers
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
