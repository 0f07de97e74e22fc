"""Exact arithmetic, units and dates, so that no model has to reckon.

The tools are here; what they say is exact or says that it is not. `arithmetic.py` reads and
reckons an expression, and `units.py` converts. Both are pure.
"""

from __future__ import annotations

import asyncio
import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, ClassVar, Final

from pydantic import Field

from caal_node.core.errors import InvalidArguments
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets.base import ConfiguredToolset, ToolsetOptions, tool
from caal_node.toolsets.calculator.arithmetic import (
    CannotReckon,
    is_shown_exactly,
    reckon,
    shown,
    spoken,
)
from caal_node.toolsets.calculator.units import Measures, convert
from caal_node.toolsets.when import read_when
from caal_node.toolsets.when.lengths import lengths_in, plain_words

# Days of the calendar in words, and what lies between two of them.

TEXT_CHARS: Final = 120
_OFFSET: Final = re.compile(r"^(?P<length>.+?) (?P<way>from|after|before|until|to) (?P<point>.+)$")
_AHEAD: Final = frozenset({"from", "after"})
_LATER: Final = re.compile(r"^(?P<point>.+?) (?P<sign>plus|minus|\+|-) (?P<length>\d.*|[a-z].*)$")
_DAY_S: Final = 86_400
_NUMERIC: Final = re.compile(r"^(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})$")
_ASKING: Final = re.compile(
    r"^(?:(?:what|which)(?:'s| is)? )?(?:the )?"
    r"(?:date|weekday|day(?: of the week)?(?= (?:is|was|will|does|falls)))?"
    r"\b ?(?:is |was |will be |does |falls |of |on )*|\?$"
)
_YEAR: Final = re.compile(r" (?:of |in )?(\d{4})$")
_FIXED: Final = {
    "new year": (1, 1),
    "new years day": (1, 1),
    "valentines day": (2, 14),
    "valentines": (2, 14),
    "saint patricks day": (3, 17),
    "st patricks day": (3, 17),
    "halloween": (10, 31),
    "saint nicholas day": (12, 6),
    "christmas eve": (12, 24),
    "christmas": (12, 25),
    "christmas day": (12, 25),
    "xmas": (12, 25),
    "boxing day": (12, 26),
    "new years eve": (12, 31),
    "end of the year": (12, 31),
}
"""Days of one date everywhere. Others differ from country to country."""
_FROM_EASTER: Final = {
    "good friday": -2,
    "easter": 0,
    "easter sunday": 0,
    "easter monday": 1,
    "ascension day": 39,
    "pentecost": 49,
    "whit monday": 50,
}


@dataclass(frozen=True, slots=True)
class Between:
    """How far one day is from another: as days, and as whole years, months and days."""

    days: int
    """Below zero where the second is earlier."""
    years: int
    months: int
    rest: int


def read_day(words: str, now: datetime) -> date:
    """Return the day that words say, seen from the present.

    Raises:
        CannotReckon: they say none.
    """
    text = " ".join(words[:TEXT_CHARS].casefold().replace("’", "'").split())
    found = _read_day(_ASKING.sub("", text).strip(), now) or _read_day(text, now)
    if found is None:
        raise CannotReckon(
            f"{words[:40]!r} is no day; write it as 'friday', '25 december' or '90 days from today'"
        )
    return found


def _read_day(text: str, now: datetime) -> date | None:
    if (match := _NUMERIC.match(text)) is not None:
        return _date(int(match[3]), int(match[2]), int(match[1]))
    if (holiday := _holiday(text, now.date())) is not None:
        return holiday
    if (when := read_when(text, now)) is not None and not when.rest:
        return when.start.date()
    if (match := _OFFSET.match(text)) is not None:
        ahead = match["way"] in _AHEAD
        return _moved(match["length"], match["point"], now, 1 if ahead else -1)
    if (match := _LATER.match(text)) is not None:
        sign = 1 if match["sign"] in ("plus", "+") else -1
        return _moved(match["length"], match["point"], now, sign)
    return None


def _moved(length: str, point: str, now: datetime, sign: int) -> date | None:
    lengths = list(lengths_in(plain_words(length)))
    start = _read_day(point, now)
    if start is None or not lengths or any(not each.is_days for each in lengths):
        return None
    moved = datetime(start.year, start.month, start.day, 12)
    try:
        for each in lengths:
            if each.months:
                moved = datetime.combine(
                    months_later(moved.date(), sign * each.months), moved.time()
                )
            else:
                moved += sign * timedelta(days=round(each.seconds / _DAY_S))
    except (OverflowError, ValueError):
        return None
    return moved.date()


def months_later(day: date, months: int) -> date:
    """Return the same day so many months later, or the last one of a shorter month.

    Raises:
        ValueError, OverflowError: there is no such year.
    """
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    month += 1
    return date(year, month, min(day.day, monthrange(year, month)[1]))


def _holiday(text: str, today: date) -> date | None:
    plain = re.sub(r"['.]", "", text).removeprefix("next ").removeprefix("the ")
    year = 0
    if (match := _YEAR.search(plain)) is not None:
        year, plain = int(match[1]), plain[: match.start()]
    for candidate in [year] if year else [today.year, today.year + 1]:
        found = None
        if plain in _FIXED:
            found = _date(candidate, *_FIXED[plain])
        elif plain in _FROM_EASTER:
            found = _easter(candidate) + timedelta(days=_FROM_EASTER[plain])
        if found is not None and (year or found >= today):
            return found
    return None


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _easter(year: int) -> date:
    """Return Easter Sunday of the Gregorian calendar, by Meeus, Jones and Butcher."""
    golden, (century, of_century) = year % 19, divmod(year, 100)
    leap_centuries, century_rest = divmod(century, 4)
    correction = (century - (century + 8) // 25 + 1) // 3
    moon = (19 * golden + century - leap_centuries - correction + 15) % 30
    leaps, rest = divmod(of_century, 4)
    weekday = (32 + 2 * century_rest + 2 * leaps - moon - rest) % 7
    late = (golden + 11 * moon + 22 * weekday) // 451
    month, day = divmod(moon + weekday - 7 * late + 114, 31)
    return date(year, month, day + 1)


def between(start: date, end: date) -> Between:
    """Return how far `end` is from `start`."""
    first, last = sorted((start, end))
    months = (last.year - first.year) * 12 + last.month - first.month
    if months_later(first, months) > last:
        months -= 1
    rest = (last - months_later(first, months)).days
    return Between((end - start).days, months // 12, months % 12, rest)


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
