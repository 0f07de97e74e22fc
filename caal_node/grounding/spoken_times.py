"""Times of day, dates and weekdays in a text, as people and tools write and say them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from caal_node.grounding.spoken_numbers import WORDS, Number

HALF_DAY: Final = 720
"""Minutes."""
_DAYPART_CHARS: Final = 24
"""How far behind a time "in the evening" may stand."""
_MONTHS: Final = {
    name: at for at, full in enumerate(WORDS["months"], 1) for name in (full, full[:3])
}
_WEEKDAYS: Final = {name[:3]: at for at, name in enumerate(WORDS["weekdays"])}
_MONTH: Final = "|".join(sorted(_MONTHS, key=len, reverse=True))
_WEEKDAY: Final = re.compile(
    # Three letters are a word of their own ("sun", "sat") unless a date follows them.
    rf"\b(?:({'|'.join(WORDS['weekdays'])})s?\b|({'|'.join(_WEEKDAYS)})[.,]? (?=\d))"
)
_ISO: Final = re.compile(
    r"(?<![\d-])(\d{4})-(\d\d)-(\d\d)"
    r"(?:[t ](\d\d):(\d\d)(?::\d\d(?:\.\d+)?)?\s?(z|[+-]\d\d:?\d\d)?)?(?![\d-])"
)
_HALF: Final = r"(?:\s?(?P<half{n}>[ap])(?:\.m\.|m\b))"
_CLOCK: Final = re.compile(
    r"(?<![\d:.,])(?P<hour>\d{1,2})[:h](?P<minute>\d\d)(?::\d\d)?(?![\d:])"
    + _HALF.format(n="")
    + r"?"
    r"|(?<![\d:.,])(?P<only>\d{1,2})" + _HALF.format(n="2")
)
_DAY: Final = r"(?P<day{n}>\d{{1,2}})(?:st|nd|rd|th)?"
_DATE: Final = re.compile(
    rf"\b(?P<month>{_MONTH})\b\.? (?:the )?{_DAY.format(n='')}(?![\d:])"
    r"(?:,? (?P<year>\d{4})\b)?"
    rf"|(?<![\d:.]){_DAY.format(n='2')}\.? (?:of )?(?P<month2>{_MONTH})\b"
    r"(?:,? (?P<year2>\d{4})\b)?"
)
_DAY_PARTS: Final = (
    (re.compile(r"\bin the morning\b|\bthis morning\b"), "a"),
    (
        re.compile(r"\bin the (?:afternoon|evening)\b|\btonight\b|\bthis (?:afternoon|evening)\b"),
        "p",
    ),
)
_UTC: Final = frozenset({"z", "+00:00", "+0000", "-00:00", "-0000"})
"""The zone of which a time is rightly said in another one. One with an offset is local already."""
_LED_CHARS: Final = 24
"""How far before its hour the words of a time begin: " twenty-five minutes past "."""
_NAMED: Final = re.compile(r"\b(noon|midday|midnight)\b")
_BEFORE_HOUR: Final = re.compile(
    r"(?:\b(?P<part>half|(?:a )?quarter)|(?P<minutes> minutes?)?) (?P<way>past|to|after|before) $"
)
_AT_HOUR: Final = re.compile(
    r"\b(?:at|by|until|till|from|since|before|after|to|around|and|about|for)\s$"
)
_OCLOCK: Final = re.compile(r" ?o['’]?clock\b")


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day: `start` and `end` are its characters, `minute` counts from midnight."""

    start: int
    end: int
    minute: int
    half_known: bool
    """Whether it is told from the time twelve hours later."""
    zoned: bool = False
    """Whether it is of UTC, so that it may rightly be said in another zone."""
    is_sure: bool = True
    """False where the same words may be numbers: "nine thirty", "ten to eleven", "at four"."""

    def is_same(self, other: Time) -> bool:
        """Say whether one may be said for the other."""
        apart = abs(self.minute - other.minute)
        if apart == 0 or (apart == HALF_DAY and not (self.half_known and other.half_known)):
            return True
        # Zones lie a whole number of half hours apart.
        return (self.zoned or other.zoned) and apart % 30 == 0


def hours_of(hour: int) -> frozenset[int]:
    """Return the numbers by which an hour is told: 7 and 19 of either."""
    return frozenset({hour, hour % 12 or 12, hour % 12 + 12})


@dataclass(frozen=True, slots=True)
class Day:
    """A date or, with a weekday alone, a day of any week."""

    start: int
    end: int
    month: int = 0
    day: int = 0
    year: int = 0
    weekday: int | None = None


def iso_days(text: str) -> list[tuple[Day, Time | None]]:
    """Return dates as tools write them, each with its time where it has one."""
    found: list[tuple[Day, Time | None]] = []
    for match in _ISO.finditer(text):
        year, month, day = (int(match[at]) for at in (1, 2, 3))
        if (weekday := _weekday_of(year, month, day)) is None:
            continue
        time = None
        if match[4] and int(match[4]) < 25 and int(match[5]) < 60:
            minute = int(match[4]) % 24 * 60 + int(match[5])
            zoned = match[6] in _UTC
            time = Time(match.start(4), match.end(), minute, half_known=True, zoned=zoned)
        found.append((Day(match.start(), match.end(), month, day, year, weekday), time))
    return found


def _weekday_of(year: int, month: int, day: int) -> int | None:
    """Return the weekday, Monday being 0, by Zeller; None where there is no such day."""
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    shifted = (year - 1, month + 12) if month < 3 else (year, month)
    century, of_century = divmod(shifted[0], 100)
    start = day + 13 * (shifted[1] + 1) // 5 + of_century + of_century // 4
    return (start + century // 4 + 5 * century + 5) % 7


def weekday_of(day: Day) -> int | None:
    """Return the weekday of a date, Monday being 0; None where its year is not known."""
    if day.weekday is not None or not day.year:
        return day.weekday
    return _weekday_of(day.year, day.month, day.day)


def days(text: str) -> list[Day]:
    """Return the dates and weekdays that a text in lower case says."""
    found: list[Day] = []
    for match in _DATE.finditer(text):
        month = match["month"] or match["month2"]
        day = int(match["day"] or match["day2"])
        if 1 <= day <= 31:
            year = int(match["year"] or match["year2"] or 0)
            found.append(Day(match.start(), match.end(), _MONTHS[month], day, year))
    for match in _WEEKDAY.finditer(text):
        short = (match[1] or match[2])[:3]
        found.append(Day(match.start(), match.end(), weekday=_WEEKDAYS[short]))
    return found


def clock_times(text: str) -> list[Time]:
    """Return times in figures ("7:30 pm", "9am") and named ones ("noon")."""
    found: list[Time] = []
    for match in _CLOCK.finditer(text):
        hour = int(match["hour"] or match["only"])
        minute = int(match["minute"] or 0)
        half = match["half"] or match["half2"]
        if hour < 25 and minute < 60:
            # "05:45" has its nought for a clock of 24 hours.
            known = hour == 0 or hour > 12 or (match["hour"] or "")[:1] == "0"
            found.append(
                _time(text, match.start(), match.end(), (hour % 24, minute), half or "", known)
            )
    for match in _NAMED.finditer(text):
        minute = 0 if match[1] == "midnight" else HALF_DAY
        found.append(Time(match.start(), match.end(), minute, half_known=True))
    return found


def spoken_times(text: str, found: list[Number]) -> Iterator[Time]:
    """Yield times in words, by the numbers of the text: "half past seven", "ten to eleven"."""
    ends = {number.end: number for number in found}
    for at, number in enumerate(found):
        hour = number.value
        if number.ordinal or not 0 <= hour <= 24 or hour != int(hour):
            continue
        led = _led(text, number, ends)
        if led is not None:
            yield _time(text, led[0], number.end, (int(hour) % 24, led[1]), sure=led[2])
            if led[2]:
                continue
        after = found[at + 1] if at + 1 < len(found) else None
        is_at = _AT_HOUR.search(text, 0, number.start) is not None
        if oclock := _OCLOCK.match(text, number.end):
            yield _time(text, number.start, oclock.end(), (int(hour) % 24, 0))
        elif after is not None and _is_minute(text, number, after):
            yield _time(text, number.start, after.end, (int(hour), int(after.value)), sure=False)
        elif is_at or _half_behind(text, number.end):
            yield _time(text, number.start, number.end, (int(hour) % 24, 0), sure=False)


def _led(text: str, hour: Number, ends: dict[int, Number]) -> tuple[int, int, bool] | None:
    """Return where a time begins that ends in `hour`, its minute (below 0: to), if it is sure."""
    match = _BEFORE_HOUR.search(text, max(0, hour.start - _LED_CHARS), hour.start)
    if match is None:
        return None
    way = -1 if match["way"] in ("to", "before") else 1
    if match["part"]:
        return match.start(), way * (30 if match["part"] == "half" else 15), True
    minutes = ends.get(match.start())
    if minutes is None or not 0 < minutes.value < 60:
        return None
    says = match["minutes"] is not None or match["way"] == "past"
    return minutes.start, way * int(minutes.value), says


def _is_minute(text: str, hour: Number, minute: Number) -> bool:
    """Say whether "nine thirty" stands there: one blank between, and nothing larger."""
    if not (hour.is_word and minute.is_word) or minute.start != hour.end + 1:
        return False
    return text[hour.end] == " " and 1 <= hour.value <= 12 and 10 <= minute.value < 60


def _half_behind(text: str, end: int) -> str:
    behind = text[end : end + _DAYPART_CHARS]
    return next((half for part, half in _DAY_PARTS if part.search(behind)), "")


def _time(
    text: str,
    start: int,
    end: int,
    told: tuple[int, int],
    half: str = "",
    known: bool = False,
    *,
    sure: bool = True,
) -> Time:
    hour, minute = told
    half = half or ("" if hour > 12 else _half_behind(text, end))
    if half and hour <= 12:
        hour = hour % 12 + (12 if half == "p" else 0)
    known = known or bool(half) or hour > 12
    return Time(start, end, (hour * 60 + minute) % (2 * HALF_DAY), known, is_sure=sure)
