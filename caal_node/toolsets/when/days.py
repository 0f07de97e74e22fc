"""Days in a text of `plain_words`: "tomorrow", "next friday", "the 28th", "this weekend"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from caal_node.grounding.fact_words import WORDS
from caal_node.grounding.spoken_times import days as stated_days
from caal_node.toolsets.when.wall_clock import LAST_YEAR, months_later

_SHORT: Final = {name[:3]: at for at, name in enumerate(WORDS["weekdays"])}
_NAMED: Final = re.compile(
    r"\b(?:(?P<far>(?:the )?day after tomorrow)|(?P<before>(?:the )?day before yesterday)"
    r"|(?P<next>tomorrow)|(?P<today>today|tonight|this (?=morning|afternoon|evening|noon))"
    r"|(?P<last>yesterday|last (?=night|evening)))\b ?"
)
_WHICH: Final = r"(?:\b(?P<which>this|next|last|coming|the coming|the next|on|the)(?: coming)? )?"
_WEEKDAY: Final = re.compile(
    rf"{_WHICH}\b(?P<day>{'|'.join(WORDS['weekdays'])})(?:'?s)?\b"
    rf"|\b(?P<short>{'|'.join(_SHORT)})\b[.,]?(?= \d)"
)
_PERIOD: Final = re.compile(rf"{_WHICH}\b(?P<period>weekend|week|month|year)\b")
_OF_MONTH: Final = re.compile(r"\b(?:on )?(?:the )?(?P<day>\d{1,2})(?:st|nd|rd|th)\b")
_JOIN: Final = re.compile(r",? ?(?:to|and|until|till|through|-|–|—) ?(?:on )?(?:the )?")
_WEEK: Final = 7
_SATURDAY: Final = 5


@dataclass(frozen=True, slots=True)
class Days:
    """One day or several: `start` and `end` are characters, `last` is the last day itself."""

    start: int
    end: int
    first: date
    last: date


def days_in(plain: str, today: date) -> list[Days]:
    """Return the days that a text says, seen from `today`, in order; spans of days as one."""
    text, found = plain, list[Days]()
    for read in (_dates, _named, _weekdays, _periods, _of_month):
        for days in read(text, today):
            found.append(days)
            text = f"{text[: days.start]}{'|' * (days.end - days.start)}{text[days.end :]}"
    found.sort(key=lambda days: days.start)
    return _spans(plain, found)


def _spans(plain: str, found: list[Days]) -> list[Days]:
    """Join "monday to wednesday", and let "friday the 28th" be the 28th."""
    joined = list[Days]()
    for days in found:
        before = joined[-1] if joined else None
        if before is not None and _JOIN.fullmatch(plain, before.end, days.start):
            last = days.last
            while last < before.first and (before.first - last).days < _WEEK:
                last += timedelta(_WEEK)  # "friday to monday", said on a Sunday
            if last >= before.first:
                joined[-1] = Days(before.start, days.end, before.first, last)
                continue
        if before is not None and plain[before.end : days.start].strip(" ,") in ("", "the"):
            joined[-1] = Days(before.start, days.end, days.first, days.last)
            continue
        joined.append(days)
    return joined


def _day(start: int, end: int, day: date) -> Days:
    return Days(start, end, day, day)


def _dates(text: str, today: date) -> Iterator[Days]:
    for said in stated_days(text):
        if said.weekday is not None or said.year > LAST_YEAR:
            continue
        for year in (said.year,) if said.year else range(today.year, today.year + 9):
            # Of a day without a year the next is meant, and of the 29th of February the next one.
            try:
                day = date(year, said.month, said.day)
            except ValueError:
                continue
            if said.year or day >= today:
                yield _day(said.start, said.end, day)
                break


def _named(text: str, today: date) -> Iterator[Days]:
    offsets = {"far": 2, "before": -2, "next": 1, "today": 0, "last": -1}
    for match in _NAMED.finditer(text):
        # "tonight" says the part of the day as well, so it stays.
        end = match.start() if match[0].strip() == "tonight" else match.end()
        yield _day(match.start(), end, today + timedelta(offsets[str(match.lastgroup)]))


def _weekdays(text: str, today: date) -> Iterator[Days]:
    for match in _WEEKDAY.finditer(text):
        weekday = _SHORT[(match["day"] or match["short"])[:3]]
        ahead = (weekday - today.weekday()) % _WEEK
        if match["which"] in ("next", "the next"):
            ahead = weekday - today.weekday() + _WEEK  # the one of the next calendar week
        elif match["which"] == "last":
            ahead = ahead - _WEEK
        yield _day(match.start(), match.end(), today + timedelta(ahead))


def _periods(text: str, today: date) -> Iterator[Days]:
    for match in _PERIOD.finditer(text):
        period, which = match["period"], match["which"]
        if which is None or (which in ("on", "the") and period != "weekend"):
            continue
        step = {"next": 1, "the next": 1, "last": -1}.get(which, 0)
        if which in ("coming", "the coming") and period != "weekend":
            step = 1
        if period in ("week", "weekend"):
            first = today - timedelta(today.weekday()) + timedelta(step * _WEEK)
            last = first + timedelta(_WEEK - 1)
            if period == "weekend":
                first += timedelta(_SATURDAY)
        else:
            months = 1 if period == "month" else 12
            first = today.replace(day=1, month=today.month if months == 1 else 1)
            first = months_later(first, step * months)
            last = months_later(first, months) - timedelta(1)
        yield Days(match.start(), match.end(), first if step else max(first, today), last)


def _of_month(text: str, today: date) -> Iterator[Days]:
    for match in _OF_MONTH.finditer(text):
        for months in range(3):  # no two months in a row are too short for a day
            month = months_later(today.replace(day=1), months)
            try:
                day = month.replace(day=int(match["day"]))
            except ValueError:
                continue
            if day >= today:
                yield _day(match.start(), match.end(), day)
                break
