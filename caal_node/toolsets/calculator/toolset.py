"""The tools of the calculator. What they say is exact or says that it is not."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Any, ClassVar, Final

from pydantic import Field

from caal_node.core.errors import InvalidArguments
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets.base import ConfiguredToolset, ToolsetOptions, tool
from caal_node.toolsets.calculator.calendar_days import Between, between, read_day
from caal_node.toolsets.calculator.exact import CannotReckon
from caal_node.toolsets.calculator.expression import reckon
from caal_node.toolsets.calculator.spoken_value import is_shown_exactly, shown, spoken
from caal_node.toolsets.calculator.units import Measures, convert

CONVERTED_DIGITS: Final = 6
"""Digits that a person hears of a conversion; the data has all."""
TEMPERATURE_DIGITS: Final = 4


class CalculatorOptions(ToolsetOptions):
    """What the calculator cannot know by itself."""

    measures: Measures = Field(
        default="us", description="Cups, pints, gallons and tons: us or imperial"
    )


class Calculator(ConfiguredToolset):
    """Arithmetic, units and dates."""

    NAME = "calculator"
    SUMMARY = "Calculates, converts units and counts days, exactly."
    Options: ClassVar[type[ToolsetOptions]] = CalculatorOptions

    @tool("read")
    async def calculate(self, expression: str) -> Any:
        """Calculate a number: sums, percentages, powers, roots. Use this for all arithmetic.

        Example: what is 17 times 23 -> {"expression": "17 * 23"}
        Example: how much is 15 percent of 80 -> {"expression": "15% of 80"}

        Args:
            expression: The calculation, in signs or in the person's words.
        """
        # In a thread: a number of 2,000 digits takes milliseconds to write.
        return await asyncio.to_thread(_judged, _calculated, expression)

    @tool("read")
    async def convert_units(self, amount: str, to: str) -> Any:
        """Convert an amount to another unit: lengths, weights, volumes, temperatures, speeds.

        Example: how many kilometers is 26 miles -> {"amount": "26 miles", "to": "kilometers"}
        Example: what is 350 fahrenheit in celsius -> {"amount": "350 fahrenheit", "to": "celsius"}

        Args:
            amount: The number with its unit.
            to: The unit that is wanted.
        """
        return await asyncio.to_thread(_judged, _converted, amount, to, self.options.measures)

    @tool("read")
    async def days_between(self, end: str, start: str = "today") -> Any:
        """Count the days from one date to another, until a date, or since one.

        Example: how many days until christmas -> {"end": "christmas"}
        Example: days from 3 march to 10 june -> {"start": "3 march", "end": "10 june"}

        Args:
            end: The date to count to, in the person's words.
            start: The date to count from, "today" if nobody says it.
        """
        now = self._now()

        def count() -> VerbatimResult:
            first, last = read_day(start, now), read_day(end, now)
            return _counted(first, last, now.date())

        return _judged(count)

    @tool("read")
    async def find_date(self, when: str) -> Any:
        """Tell the date and the weekday of a day, such as 90 days from today.

        Example: what date is it in 90 days -> {"when": "90 days from today"}
        Example: what day of the week is 4 july 2027 -> {"when": "4 july 2027"}

        Args:
            when: The day, in the person's words.
        """
        now = self._now()

        def find() -> VerbatimResult:
            day = read_day(when, now)
            value = {"date": day.isoformat(), "weekday": f"{day:%A}"}
            return VerbatimResult(value, f"That is {_day(day)}.")

        return _judged(find)

    def _now(self) -> Any:
        return self.services.now().astimezone(self.services.timezone)


def _judged(make: Any, *arguments: Any) -> VerbatimResult:
    """Return what `make` makes.

    Raises:
        InvalidArguments: it cannot; the text says why.
    """
    try:
        return make(*arguments)
    except CannotReckon as error:
        raise InvalidArguments(f"That cannot be calculated: {error}.") from error


def _calculated(expression: str) -> VerbatimResult:
    made = reckon(expression)
    value: dict[str, Any] = {"result": shown(made)}
    if not is_shown_exactly(made):
        value["rounded"] = True
    said = spoken(made)
    return VerbatimResult(value, f"That's {said}.")


def _converted(amount: str, to: str, measures: Measures) -> VerbatimResult:
    made = convert(amount, to, measures)
    value: dict[str, Any] = {"amount": made.amount, "result": shown(made.value)}
    value["unit"] = made.unit.plural
    if not is_shown_exactly(made.value):
        value["rounded"] = True
    verb = "is" if made.amount.startswith("1 ") else "are"
    digits = TEMPERATURE_DIGITS if made.unit.dimension == "temperature" else CONVERTED_DIGITS
    told = f"{spoken(made.value, digits, digits)} {made.unit.called(made.value)}"
    return VerbatimResult(value, f"{made.amount} {verb} {told}.")


def _counted(first: date, last: date, today: date) -> VerbatimResult:
    apart = between(first, last)
    value = {
        "days": apart.days,
        "from": f"{first:%A} {first.isoformat()}",
        "to": f"{last:%A} {last.isoformat()}",
    }
    count = _counts(abs(apart.days), "day")
    also = f", that is {_whole(apart)}" if apart.years or apart.months else ""
    if first == last:
        said = f"That is the same day, {_day(first)}."
    elif first == today and apart.days > 0:
        said = f"It's {count} until {_day(last)}{also}."
    elif last < first == today:
        said = f"{_day(last)} was {count} ago{also}."
    elif last == today and apart.days > 0:
        said = f"It's {count} since {_day(first)}{also}."
    else:
        start, end = sorted((first, last))
        said = f"It's {count} from {_day(start)} to {_day(end)}{also}."
    return VerbatimResult(value, said)


def _whole(apart: Between) -> str:
    parts = [
        _counts(number, name)
        for number, name in ((apart.years, "year"), (apart.months, "month"), (apart.rest, "day"))
        if number
    ]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _counts(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"


def _day(day: date) -> str:
    return f"{day:%A}, {day.day} {day:%B} {day.year}"
