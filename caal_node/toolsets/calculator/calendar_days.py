"""Days of the calendar in words, and what lies between two of them."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from caal_node.toolsets.calculator.exact import CannotReckon
from caal_node.toolsets.when import read_when
from caal_node.toolsets.when.lengths import lengths_in
from caal_node.toolsets.when.plain_words import plain_words

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
    found = _day(_ASKING.sub("", text).strip(), now) or _day(text, now)
    if found is None:
        raise CannotReckon(
            f"{words[:40]!r} is no day; write it as 'friday', '25 december' or '90 days from today'"
        )
    return found


def _day(text: str, now: datetime) -> date | None:
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
    start = _day(point, now)
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
