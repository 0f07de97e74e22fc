"""Reads a point or a span of time in people's words, seen from the present."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Final, Literal, TypeAlias

from caal_node.core.errors import InvalidArguments
from caal_node.grounding.spoken_times import iso_days
from caal_node.toolsets.when.clock import (
    HALF_DAY,
    ClockTime,
    are_joined,
    as_span,
    clock_times,
)
from caal_node.toolsets.when.days import Days, days_in
from caal_node.toolsets.when.lengths import Length, lengths_in, read_length
from caal_node.toolsets.when.plain_words import plain_words
from caal_node.toolsets.when.wall_clock import LAST_YEAR, at_wall_clock, days_later

Kind: TypeAlias = Literal["time", "hours", "days"]
FIRST_MORNING_HOUR: Final = 7
"""Of another day's hours that could be of either half, those from this one on are before noon:
"tomorrow at eight" is in the morning, and "tomorrow at three" is not."""
_DAY: Final = 2 * HALF_DAY
_PARTS: Final = {
    "morning": (6 * 60, HALF_DAY),
    "lunchtime": (HALF_DAY, 14 * 60),
    "afternoon": (HALF_DAY, 18 * 60),
    "evening": (18 * 60, _DAY),
    "night": (18 * 60, _DAY),
    "tonight": (18 * 60, _DAY),
}
"""The parts of a day in minutes from its midnight."""
_PART: Final = re.compile(rf"\b(?:in the |at )?({'|'.join(_PARTS)})\b")
_SMALL_HOURS: Final = 6 * 60
"""Up to then "at night" is after midnight, in minutes."""
_FILLERS: Final = re.compile(
    r"\b(?:at|on|in|by|the|of|for|from|to|and|around|about|between|until|till|before|after|since"
    r"|starting|please|next|coming|within|over|past|last|now|later|ago|time|all day|long|this|then"
    r"|during|sharp|exactly|again)\b|[|,.;:!?'-]"
)
_LEAD: Final = re.compile(r"\b(until|till|before|after|since) (?:about |around )?$")
_SPAN_LEAD: Final = re.compile(r"\b(next|coming|within|within the|over the|last|past) $")
_FOR: Final = re.compile(r"\bfor (?:about |around |the )?$|\blasting $")
_AGO: Final = re.compile(r" ?(?:ago|back|earlier)\b")
_NOW: Final = re.compile(r"\b(?:right now|now)\b")


@dataclass(frozen=True, slots=True)
class When:
    """What words say of time, in the zone of the present that they were read with."""

    start: datetime
    end: datetime
    """The end of a span, not in it; the start itself for a point."""
    kind: Kind
    """A point, a span of hours, or whole days from midnight to midnight."""
    rest: str = ""
    """What of the words says no time, in small letters: "dentist" of "dentist friday at 3"."""


@dataclass(frozen=True, slots=True)
class _Said:
    """The pieces of a text that say something of time."""

    days: Days | None
    times: list[ClockTime]
    part: str
    length: Length | None = None
    """How long it lasts."""
    ahead: Length | None = None
    """How far it is from now."""
    sign: int = 1
    covers: bool = False
    """Whether it is all the time up to that: "the next two hours"."""
    lead: str = ""
    is_now: bool = False
    rest: str = ""


def read_when(
    words: str, now: datetime, *, first_morning_hour: int = FIRST_MORNING_HOUR
) -> When | None:
    """Return the point or span of time that `words` say, or None where they say none.

    None is also what comes of words with a number that makes no sense in them, since half of what
    was said would be wrong. A time without a day is the next one that comes.

    Args:
        now: The present, with its zone, which is the home's.
        first_morning_hour: See FIRST_MORNING_HOUR. One who sets an alarm means earlier hours.
    """
    try:
        said = _pieces(words, now)
        found = None if said is None else _resolved(said, now, first_morning_hour)
    except (OverflowError, ValueError):  # a day that no calendar has
        return None
    if said is None or found is None or not 1 < found.start.year <= found.end.year <= LAST_YEAR:
        return None
    return replace(found, rest=said.rest)


def asked_when(
    name: str, words: str, now: datetime, *, first_morning_hour: int = FIRST_MORNING_HOUR
) -> When:
    """Return what `read_when` does, for the tool's parameter `name`.

    Raises:
        InvalidArguments: the words say no time; the model is told how one is written.
    """
    found = read_when(words, now, first_morning_hour=first_morning_hour)
    if found is None:
        raise InvalidArguments(
            f"{name}: {words[:40]!r} says no time. Write it as the person said it, such as "
            f"'tomorrow at 7 am', 'friday afternoon' or 'in 20 minutes', or ask when."
        )
    return found


def asked_length(name: str, words: str) -> timedelta:
    """Return what `read_length` does, for the tool's parameter `name`.

    Raises:
        InvalidArguments: the words say no length; the model is told how one is written.
    """
    found = read_length(words)
    if found is None:
        raise InvalidArguments(
            f"{name}: {words[:40]!r} says no length of time. Write it with its unit, such as "
            f"'10 minutes' or 'an hour and a half', or ask how long."
        )
    return found


def _pieces(words: str, now: datetime) -> _Said | None:
    plain = plain_words(words)
    times, text = list[ClockTime](), plain
    for day, time in iso_days(plain):
        # A zone behind it is passed over: people say times of the place where they are.
        if time is not None:
            times.append(ClockTime(time.start, time.end, time.minute, half_known=True))
        iso = Days(day.start, day.end, *(2 * (date(day.year, day.month, day.day),)))
        return _Said(iso, times, "", rest=_rest(_blank(plain, day.start, day.end)))
    every = days_in(text, now.date())
    if len(every) > 1:
        return None
    for each in every:
        text = _blank(text, each.start, each.end)
    part = match[1] if (match := _PART.search(text)) else ""
    if match is not None:
        text = _blank(text, *match.span())
    times = clock_times(text, bare=bool(every or part))
    lead = ""
    for time in times:
        lead = lead or (found[1] if (found := _LEAD.search(text, 0, time.start)) else "")
        text = _blank(text, time.start, time.end)
    if len(times) > 2 or (len(times) == 2 and not are_joined(plain, *times)):
        return None
    said = _Said(every[0] if every else None, times, part, lead=lead)
    for length in lengths_in(text):
        said = _with_length(said, text, length)
        if said is None:
            return None
        text = _blank(text, length.start, length.end)
    if any(char.isdigit() for char in text):
        return None
    return replace(said, is_now=_NOW.search(text) is not None, rest=_rest(text))


def _with_length(said: _Said, text: str, length: Length) -> _Said | None:
    if _FOR.search(text, 0, length.start):
        return None if said.length else replace(said, length=length)
    if said.ahead is not None:
        return None
    span = _SPAN_LEAD.search(text, 0, length.start)
    past = _AGO.match(text, length.end) or (span is not None and span[1] in ("last", "past"))
    return replace(said, ahead=length, sign=-1 if past else 1, covers=span is not None)


def _blank(text: str, start: int, end: int) -> str:
    return f"{text[:start]}{'|' * (end - start)}{text[end:]}"


def _rest(text: str) -> str:
    return " ".join(_FILLERS.sub(" ", text).split())


def _resolved(said: _Said, now: datetime, first_morning_hour: int) -> When | None:
    days = said.days
    if said.ahead is not None:
        if days is not None or not said.ahead.is_days:
            return None if days or said.times or said.part or said.length else _away(said, now)
        if said.covers:
            return None if said.times or said.part or said.length else _away(said, now)
        there = said.ahead.after(now, said.sign).date()
        days = Days(0, 0, there, there)
    if said.times:
        return _at_times(said, days, now, first_morning_hour)
    if said.part:
        return _in_part(said, days, now)
    if days is not None:
        return _whole_days(days, said.length, now)
    return When(now, now, "time") if said.is_now and not said.length else None


def _away(said: _Said, now: datetime) -> When | None:
    """Read "in 20 minutes", "2 hours ago", "the next 3 days"."""
    assert said.ahead is not None
    there = said.ahead.after(now, said.sign)
    if not said.covers:
        return When(there, there, "time")
    first, last = sorted((now, there), key=datetime.timestamp)
    if said.ahead.is_days:
        return _whole_days(Days(0, 0, first.date(), last.date()), None, now)
    return When(first, last, "hours")


def _whole_days(days: Days, length: Length | None, now: datetime) -> When | None:
    start = at_wall_clock(days.first, 0, now.tzinfo)
    end = at_wall_clock(days.last, _DAY, now.tzinfo)
    if length is not None:
        if not length.is_days:
            return None  # it says how many hours of the day, and not which
        end = length.after(start)
    return When(start, end, "days")


def _in_part(said: _Said, days: Days | None, now: datetime) -> When | None:
    first, last = _PARTS[said.part]
    day = days.first if days else now.date()
    start, end = (at_wall_clock(day, minute, now.tzinfo) for minute in (first, last))
    if days is None and end.timestamp() <= now.timestamp():
        start, end = days_later(start, 1), days_later(end, 1)
    return When(start, end, "hours") if said.length is None else None


def _at_times(
    said: _Said, days: Days | None, now: datetime, first_morning_hour: int
) -> When | None:
    times = said.times if len(said.times) == 1 else [*as_span(said.times[0], said.times[1])]
    day, given = (days.first, True) if days else (now.date(), said.part == "tonight")
    start = _moment(times[0], said.part, day, given, now, first_morning_hour)
    if len(times) == 2:
        end_day = days.last if days else start.date()
        minute = times[1].minute
        end = at_wall_clock(end_day, minute, now.tzinfo, not_before=start)
        step = HALF_DAY if not times[1].half_known else _DAY
        while end.timestamp() <= start.timestamp():
            minute += step
            end = at_wall_clock(end_day, minute, now.tzinfo)
        return None if said.length else When(start, end, "hours")
    if said.length is not None:
        return When(start, said.length.after(start), "hours")
    if said.lead in ("until", "till", "before"):
        begin = now if start.date() == now.date() else at_wall_clock(day, 0, now.tzinfo)
        return When(min(begin, start, key=datetime.timestamp), start, "hours")
    if said.lead in ("after", "since"):
        return When(start, at_wall_clock(start.date(), _DAY, now.tzinfo), "hours")
    return When(start, start, "time")


def _moment(
    time: ClockTime, part: str, day: date, given: bool, now: datetime, first_morning_hour: int
) -> datetime:
    """Return when a time of day is: on its day if one is given, else the next time it comes."""
    is_today = day == now.date()
    if part and not time.half_known:
        time = time.in_half("am" if part == "morning" else "pm")
        if part in ("night", "tonight") and (time.minute - HALF_DAY) < _SMALL_HOURS:
            small = time.minute - HALF_DAY
            under_way = is_today and now.hour * 60 < _SMALL_HOURS  # it is that night already
            time = replace(time, minute=small if under_way else small + _DAY)
    elif given and not time.half_known and not is_today:
        time = time.in_half("am" if time.minute >= first_morning_hour * 60 else "pm")
    step = _DAY if time.half_known else HALF_DAY
    if given:
        minutes = [time.minute] if time.half_known else [time.minute, time.minute + HALF_DAY]
    else:
        minutes = [time.minute % _DAY + step * at for at in range(4)]
    moments = [
        at_wall_clock(day, minute, now.tzinfo, not_before=now if is_today else None)
        for minute in minutes
    ]
    present = now.timestamp()
    return next((moment for moment in moments if moment.timestamp() >= present), moments[-1])
