"""Lengths of time: "an hour and a half", "90 seconds", "2 weeks"."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

from caal_node.grounding.quantities import stated_in
from caal_node.grounding.spoken_numbers import WORDS, Number, numbers

# Brings words about time into one form: small letters, numbers in digits, units written out.

TEXT_CHARS: Final = 200
"""Characters of one text that are read. People say a time in a few words."""

_ORDINALS: Final = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"),
    *("tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth"),
    *("seventeenth", "eighteenth", "nineteenth", "twentieth"),
)
_ORDINAL_OF: Final = {
    **{word: at for at, word in enumerate(_ORDINALS, 1)},
    "thirtieth": 30,
    **{f"twenty {word}": 20 + at for at, word in enumerate(_ORDINALS[:9], 1)},
    "thirty first": 31,
}
_ORDINAL: Final = re.compile(
    rf"\b({'|'.join(sorted(_ORDINAL_OF, key=len, reverse=True)).replace(' ', '[ -]')})\b(?! half)"
)
_DAY_FOLLOWS: Final = re.compile(rf"\b(?:the|{'|'.join(WORDS['months'])}) $")
_UNIT: Final = r"(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)"
_REWRITTEN: Final = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"[‘’]", "'"),
        (r"[\s ]+", " "),
        (r"\b([ap])\.? ?m\b\.?", r"\1m"),
        (r"\bo'? ?clock\b", "o'clock"),
        (r"\b(\d{1,2})\.([0-5]\d)\b(?! ?(?:h|m|s|d|w))", r"\1:\2"),
        (r"\b(\d{1,2})h ?([0-5]\d)(?:m|mins?)?\b", r"\1 hours \2 minutes"),
        (r"(\d) ?-?(?:h|hrs?)\b", r"\1 hours"),
        (r"(\d) ?-?(?:m|mins?)\b", r"\1 minutes"),
        (r"(\d) ?-?(?:s|secs?)\b", r"\1 seconds"),
        (rf"(\w)-({_UNIT})\b", r"\1 \2"),
        (
            r"(?<!and )(?<!and a )\b(half|quarter)[ -](second|minute|hour|day|year)\b",
            r"\1 of an \2",
        ),
        (r"\bhalf of an? ", "half an "),
        (r"\ba couple(?: of)? ", "2 "),
        (rf" (?:more|extra|further) (?={_UNIT}\b)", " "),
        (r"\banother (?=(?:second|minute|hour|day|week|month|year)\b)", "1 "),
        (rf"(?<!half )(?<!of )\ban? ({_UNIT})\b(?! and an? (?:half|quarter))", r"1 \1"),
        (
            r"\bhalf (?=(?:\d|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b)",
            "half past ",
        ),
        (r"\b(\w+) oh (\w+)\b", r"\1 0 \2"),
    )
)
_ONE_OF_TIME: Final = re.compile(
    r"(?:\b(?:at|by|from|to|past|until|till|between|and|before|after|around|about|for|in)\s)$"
)


def plain_words(text: str) -> str:
    """Return the first TEXT_CHARS of `text` in the one form that the other modules read.

    "Half an hour" stays as it is, "half hour" becomes it; "7 p.m." becomes "7 pm", "third" "3rd".
    """
    text = " ".join(text[:TEXT_CHARS].lower().split())
    for pattern, replacement in _REWRITTEN:
        text = pattern.sub(replacement, text)
    text = _ORDINAL.sub(_ordinal, text)
    for number in reversed(numbers(text)):
        if _is_said_in_words(text, number):
            text = f"{text[: number.start]}{number.value:g}{text[number.end :]}"
    return text


def _ordinal(match: re.Match[str]) -> str:
    words = match[0].replace("-", " ")
    if words.endswith("second") and not _DAY_FOLLOWS.search(match.string, 0, match.start()):
        return match[0]  # "a 45 second timer", "one second"
    return f"{_ORDINAL_OF[words]}th"


def _is_said_in_words(text: str, number: Number) -> bool:
    if not number.is_word or number.ordinal or text.startswith(" quarters", number.end):
        return False
    if not number.is_bare_one:
        return True
    behind = re.match(rf"(?: {_UNIT}|o'clock| [ap]m| \d\d)\b", text[number.end :])
    before = _ONE_OF_TIME.search(text, 0, number.start)
    return behind is not None or (before is not None and text[number.end :][:2] != " o")


# Wall-clock times in a time zone, right across the changes of its clocks.
#
# A time that a change leaves out becomes the one as long after it: 2:30 becomes 3:30. Of a time
# that comes twice the first is meant, or the second once the first has passed. Moments are compared
# by their timestamps, since Python compares two of one zone by what their clocks show.

LAST_YEAR: Final = 9_990
"""No day is read beyond this year, so that sums of days stay within what a date can be."""


def at_wall_clock(
    day: date, minute: int, zone: tzinfo | None, *, not_before: datetime | None = None
) -> datetime:
    """Return the moment at which clocks of `zone` show `minute`, counted from midnight of `day`.

    A minute of 1440 or more is on a later day. Where the clocks show the time twice, it is the
    second time if the first is before `not_before`.
    """
    days, minute = divmod(minute, 24 * 60)
    day += timedelta(days=days)
    shown = datetime.combine(day, time(minute // 60, minute % 60), zone)
    first = shown.astimezone(UTC).astimezone(zone)
    if not_before is None or first.timestamp() >= not_before.timestamp():
        return first
    second = shown.replace(fold=1).astimezone(UTC).astimezone(zone)
    return second if second.replace(tzinfo=None) == shown.replace(tzinfo=None) else first


def later(moment: datetime, seconds: float) -> datetime:
    """Return the moment so many seconds of real time after an aware `moment`, in its own zone."""
    return (moment.astimezone(UTC) + timedelta(seconds=seconds)).astimezone(moment.tzinfo)


def days_later(moment: datetime, days: int) -> datetime:
    """Return the moment at which the clocks show the same, `days` days after `moment`."""
    minute = moment.hour * 60 + moment.minute
    there = at_wall_clock(moment.date() + timedelta(days=days), minute, moment.tzinfo)
    return later(there, moment.second + moment.microsecond / 1e6)


def months_later(day: date, months: int) -> date:
    """Return the same day of a month `months` later, or that month's last day."""
    years, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(years, month + 1, min(day.day, monthrange(years, month + 1)[1]))


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
