"""The calculator is exact, says where it rounds, and takes nothing for a program."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.errors import InvalidArguments
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.calculator import (
    Calculator,
    CalculatorOptions,
    between,
    months_later,
    read_day,
)
from caal_node.toolsets.calculator.arithmetic import CannotReckon, reckon, shown, spoken
from caal_node.toolsets.calculator.units import UNITS, convert

NOW = datetime(2026, 11, 23, 20, tzinfo=ZoneInfo("Europe/Berlin"))
PIECES = [
    *"1 2 9 0.5 99999 + - * / ^ ! % ( )".split(),  # noqa: SIM905 - signs read better as signs
    *"sqrt of off mod pi half percent the".split(),  # noqa: SIM905 - as above
]
SLOW_S = 0.5
"""What no input may take; the longest took 6 ms."""


def calculator(measures: Any = "us") -> Calculator:
    services = ToolsetServices(timezone=ZoneInfo("Europe/Berlin"), now=lambda: NOW.astimezone(UTC))
    return Calculator(CalculatorOptions(measures=measures), services)


def words(result: Any) -> str:
    assert isinstance(result, VerbatimResult)
    return result.words


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("17 * 23", "391"),
        ("what is seventeen times twenty three", "391"),
        ("15 percent of 80", "12"),
        ("15% of 80", "12"),
        ("20% off 50", "40"),
        ("80 plus 19 percent", "95.2"),
        ("100 minus 20%", "80"),
        ("what percent of 80 is 12", "15%"),
        ("12 is what percent of 80?", "15%"),
        ("40 as a percentage of 160", "25%"),
        ("0.1 + 0.2", "0.3"),
        ("(3 + 4) / 2", "3.5"),
        ("3 plus 4 times 2", "11"),
        ("2 - 3 - 4", "-5"),
        ("2^3^2", "512"),
        ("-3^2", "-9"),
        ("two to the power of ten", "1024"),
        ("3 squared plus 4 squared", "25"),
        ("square root of 144", "12"),
        ("the cube root of 27", "3"),
        ("5 factorial", "120"),
        ("half of 90", "45"),
        ("two thirds of 90", "60"),
        ("five and a half times 2", "11"),
        ("1.5 million divided by 12", "125000"),
        ("1,234 + 1", "1235"),
        ("split 86.40 by 3", "28.8"),
        ("divide 120 dollars between 4 people", "30"),
        ("subtract 7 from 20", "13"),
        ("$45.50 plus 18%", "53.69"),
        ("1/3 + 1/6", "0.5"),
        ("17 mod 5", "2"),
        ("one hundred and five minus six", "99"),
        ("2**100", "1267650600228229401496703205376"),
        ("10 / 3", "3.33333333333"),
        ("2 ^ 0.5", "1.41421356237"),
        ("4 ^ 0.5", "2"),
        ("4 ^ -1", "0.25"),
        ("0 ^ 0", "1"),
        ("1 ^ 99999999999", "1"),
        ("pi times 3 squared", "28.2743338823"),
    ],
)
def test_an_expression_has_its_value(said: str, wanted: str) -> None:
    assert shown(reckon(said)) == wanted


@pytest.mark.parametrize(
    "said",
    [
        "",
        "3 +",
        "1 / 0",
        "7 mod 0",
        "0 ^ -1",
        "square root of -4",
        "(-8) ^ 0.5",
        "9 ^ 9 ^ 9",
        "10 ^ (10 ^ 10)",
        "2 ^ 0.5 ^ -100000",
        "3000 factorial",
        "2.5!",
        "(" * 200 + "1",
        "((1)",
        "1 2",
        "__import__('os').system('id')",
        "lambda: 1",
        "1e400",
        "9" * 200,
        "1+" * 200 + "1",
        "the weather",
    ],
)
def test_what_has_no_value_says_why(said: str) -> None:
    with pytest.raises(CannotReckon) as raised:
        reckon(said)
    assert str(raised.value)


def expressions() -> st.SearchStrategy[str]:
    number = st.integers(0, 999).map(str)
    return st.recursive(
        number,
        lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(
            lambda each: f"({each[0]} {each[1]} {each[2]})"
        ),
        max_leaves=12,
    )


@given(expressions())
def test_it_agrees_with_fractions(text: str) -> None:
    exact = "".join(f"Fraction({part})" if part.isdigit() else part for part in _split(text))
    try:
        wanted = eval(exact, {"Fraction": Fraction})
    except ZeroDivisionError:
        with pytest.raises(CannotReckon):
            reckon(text)
        return
    made = reckon(text)
    assert made.number == wanted
    assert made.is_exact


def _split(text: str) -> list[str]:
    return text.replace("(", "( ").replace(")", " )").split(" ")


@given(
    st.one_of(
        st.text(max_size=320),
        st.lists(
            st.sampled_from(PIECES),
            max_size=60,
        ).map(" ".join),
    )
)
def test_nothing_else_than_a_value_or_a_reason_comes_of_any_text(text: str) -> None:
    began = time.thread_time()
    with suppress(CannotReckon):
        made = reckon(text)
        shown(made)
        spoken(made)
    assert time.thread_time() - began < SLOW_S


@pytest.mark.parametrize(
    ("amount", "to", "wanted"),
    [
        ("5 feet 3 inches", "cm", "160.02"),
        ("6 foot 2", "cm", "187.96"),
        ("5'3\"", "centimeters", "160.02"),
        ("26 miles", "kilometers", "41.842944"),
        ("350 degrees Fahrenheit", "celsius", "176.666666667"),
        ("98.6 f", "c", "37"),
        ("-40 c", "f", "-40"),
        ("20 degrees", "fahrenheit", "68"),
        ("half a cup", "milliliters", "118.29411825"),
        ("3 1/2 cups", "ml", "828.05882775"),
        ("8 ounces", "cups", "1"),
        ("8 ounces", "grams", "226.796185"),
        ("two and a half pounds", "grams", "1133.980925"),
        ("12 stone", "kg", "76.20351816"),
        ("10 stone 4 pounds", "kg", "65.31730128"),
        ("three quarters of a mile", "meters", "1207.008"),
        ("2 hours 5 minutes and 10 seconds", "seconds", "7510"),
        ("90 km/h", "meters per second", "25"),
        ("1 gigabyte", "megabytes", "1000"),
        ("1 gibibyte", "mebibytes", "1024"),
        ("one acre", "square meters", "4046.8564224"),
    ],
)
def test_an_amount_is_converted_by_exact_factors(amount: str, to: str, wanted: str) -> None:
    assert shown(convert(amount, to).value) == wanted


def test_pints_are_those_of_the_home() -> None:
    assert shown(convert("1 pint", "ml", "imperial").value) == "568.26125"
    assert shown(convert("1 pint", "ml", "us").value) == "473.176473"


@pytest.mark.parametrize("measures", ["us", "imperial"])
def test_every_unit_comes_back_from_every_other_of_its_kind(measures: Any) -> None:
    units = {unit.name: unit for unit in UNITS[measures].values()}
    for one in units.values():
        for other in units.values():
            if one.dimension == other.dimension:
                there = (Fraction(7) * one.factor + one.offset - other.offset) / other.factor
                back = (there * other.factor + other.offset - one.offset) / one.factor
                assert back == 7
    assert len({unit.dimension for unit in units.values()}) == 12


@pytest.mark.parametrize(
    ("amount", "to"),
    [("5 apples", "kg"), ("3 kg", "meters"), ("", "kg"), ("kg", "g"), ("20 c 5 f", "kelvin")],
)
def test_what_cannot_be_converted_says_why(amount: str, to: str) -> None:
    with pytest.raises(CannotReckon):
        convert(amount, to)


@given(st.text(max_size=320), st.text(max_size=40))
def test_any_amount_is_converted_or_refused(amount: str, to: str) -> None:
    with suppress(CannotReckon):
        shown(convert(amount, to).value)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("today", date(2026, 11, 23)),
        ("90 days from today", date(2027, 2, 21)),
        ("in 90 days", date(2027, 2, 21)),
        ("3 weeks before christmas", date(2026, 12, 4)),
        ("three months after 30 november", date(2027, 2, 28)),
        ("a week from tuesday", date(2026, 12, 1)),
        ("today plus 45 days", date(2027, 1, 7)),
        ("what day is christmas", date(2026, 12, 25)),
        ("what day of the week is 4 july 2027", date(2027, 7, 4)),
        ("halloween", date(2027, 10, 31)),
        ("halloween 2020", date(2020, 10, 31)),
        ("new year's eve", date(2026, 12, 31)),
        ("14.3.2020", date(2020, 3, 14)),
        ("easter", date(2027, 3, 28)),
        ("good friday 2024", date(2024, 3, 29)),
        ("easter 2000", date(2000, 4, 23)),
        ("easter 2038", date(2038, 4, 25)),
    ],
)
def test_a_day_is_read(said: str, wanted: date) -> None:
    assert read_day(said, NOW) == wanted


@pytest.mark.parametrize("said", ["", "gibberish", "31 february", "400000 years from today", "7"])
def test_what_is_no_day_is_refused(said: str) -> None:
    with pytest.raises(CannotReckon):
        read_day(said, NOW)


@given(st.text(max_size=150))
def test_any_words_are_a_day_or_refused(text: str) -> None:
    with suppress(CannotReckon):
        assert isinstance(read_day(text, NOW), date)


DAYS = st.dates(date(1900, 1, 1), date(2200, 12, 31))


@given(DAYS, DAYS)
def test_years_months_and_days_add_up_to_the_other_day(one: date, other: date) -> None:
    first, last = sorted((one, other))
    apart = between(first, last)
    again = months_later(first, apart.years * 12 + apart.months) + timedelta(days=apart.rest)
    assert again == last
    assert apart.days == (last - first).days == -between(last, first).days
    assert 0 <= apart.months < 12
    assert 0 <= apart.rest < 31


async def test_the_tools_speak_plainly_and_give_data() -> None:
    tools = calculator()
    result = await tools.calculate(expression="17 * 23")
    assert (words(result), result.value) == ("That's 391.", {"result": "391"})
    result = await tools.calculate(expression="10 / 3")
    assert words(result) == "That's about 3.33333."
    assert result.value == {"result": "3.33333333333", "rounded": True}
    result = await tools.convert_units(amount="26 miles", to="km")
    assert words(result) == "26 miles are about 41.8429 kilometers."
    assert result.value["result"] == "41.842944"
    assert words(await tools.convert_units(amount="350 f", to="celsius")) == (
        "350 degrees Fahrenheit are about 176.7 degrees Celsius."
    )
    assert words(await tools.find_date(when="90 days from today")) == (
        "That is Sunday, 21 February 2027."
    )
    result = await tools.days_between(end="christmas")
    assert words(result).startswith("It's 32 days until Friday, 25 December 2026")
    assert result.value["days"] == 32
    assert words(await tools.days_between(end="14 march 2020")).startswith(
        "Saturday, 14 March 2020 was 2445 days ago"
    )
    with pytest.raises(InvalidArguments, match="divided by zero"):
        await tools.calculate(expression="1 / 0")


async def test_today_is_the_home_s_day() -> None:
    late = datetime(2026, 11, 23, 23, 30, tzinfo=UTC)  # half past midnight in Berlin
    services = ToolsetServices(timezone=ZoneInfo("Europe/Berlin"), now=lambda: late)
    result = await Calculator(None, services).find_date(when="today")
    assert result.value["date"] == "2026-11-24"


@pytest.mark.parametrize(
    "text",
    ["5 as a percent of " * 60_000 + "5", "what percent of " * 60_000, " " * 1_000_000 + "1"],
)
def test_a_text_without_end_is_refused_before_it_is_looked_at(text: str) -> None:
    began = time.process_time()
    with pytest.raises(CannotReckon, match="longer than 300 characters"):
        reckon(text)
    with pytest.raises(CannotReckon, match="longer than 300 characters"):
        convert(text, "metres")
    assert time.process_time() - began < SLOW_S
