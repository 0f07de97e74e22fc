"""Lengths of time: "an hour and a half", "90 seconds", "2 weeks"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from caal_node.grounding.quantities import stated_in
from caal_node.toolsets.when.plain_words import plain_words
from caal_node.toolsets.when.wall_clock import days_later, later, months_later

_DAY_S: Final = 86_400
_MONTHS_OF: Final = {"month": 1, "year": 12}
_CLOCK_LIKE: Final = re.compile(r"(\d{1,3}):([0-5]\d):([0-5]\d)")
"""Hours, minutes and seconds, as models write lengths. With less it may be a time of day."""
_LENGTH_MAX_S: Final = 100 * 366 * _DAY_S
"""A hundred years. More is misheard, and would leave what a date can be."""


@dataclass(frozen=True, slots=True)
class Length:
    """A length of time in words; `start` and `end` are its characters in the plain text."""

    start: int
    end: int
    seconds: float
    months: int = 0
    """Whole months, in place of seconds: how long they are depends on where they begin."""
    is_days: bool = False
    """Whether it was said in whole days, weeks, months or years: clocks show the same after it."""

    def after(self, moment: datetime, sign: int = 1) -> datetime:
        """Return the moment this long after `moment`, or before it where `sign` is -1."""
        if self.months:
            there = months_later(moment.date(), sign * self.months)
            return days_later(moment, (there - moment.date()).days)
        if self.is_days:
            return days_later(moment, sign * round(self.seconds / _DAY_S))
        return later(moment, sign * self.seconds)


def lengths_in(plain: str) -> Iterator[Length]:
    """Yield the lengths that a text of `plain_words` states, in order."""
    for figure in stated_in(plain).figures:
        unit = figure.unit
        if unit is None or unit.dimension != "duration" or not unit.factor or figure.value < 0:
            continue
        seconds = figure.value * unit.factor
        if seconds > _LENGTH_MAX_S:
            continue
        months = figure.value * _MONTHS_OF.get(unit.name, 0)
        whole = round(months) if months == round(months) else 0
        is_days = whole > 0 or (unit.factor >= _DAY_S and seconds > 0 and seconds % _DAY_S == 0)
        yield Length(figure.start, figure.end, round(seconds, 3), whole, is_days)


def read_length(words: str) -> timedelta | None:
    """Return the length that `words` say, or None where they say none.

    Other words are passed over, other numbers are not: "10" is None, as nobody knows of what, and
    so is "10 minutes past 7". A month counts 30.4 days.
    """
    plain = plain_words(words)
    if match := _CLOCK_LIKE.fullmatch(plain):
        hours, minutes, seconds = (int(match[at]) for at in (1, 2, 3))
        total = float(hours * 3600 + minutes * 60 + seconds)
    else:
        rest, total = plain, 0.0
        for length in lengths_in(plain):
            total += length.seconds
            rest = rest[: length.start] + " " * (length.end - length.start) + rest[length.end :]
        if any(char.isdigit() for char in rest):
            return None
    return timedelta(seconds=total) if 0 < total <= _LENGTH_MAX_S else None
