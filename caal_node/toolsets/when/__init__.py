"""Points, spans and lengths of time in people's words: "friday afternoon", "in ten minutes".

`read_when` reads a point or a span, `read_length` a length. Both are pure: the present is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Final, Literal, TypeAlias

from caal_node.core.errors import InvalidArguments
from caal_node.grounding.spoken_numbers import WORDS
from caal_node.grounding.spoken_times import days as stated_days
from caal_node.grounding.spoken_times import iso_days
from caal_node.toolsets.when.lengths import (
    LAST_YEAR,
    Length,
    at_wall_clock,
    days_later,
    later,
    lengths_in,
    months_later,
    plain_words,
    read_length,
)

# Times of day in a text of `plain_words`: "7:30 pm", "quarter to 6", "at 4", "noon".

HALF_DAY: Final = 720
"""Minutes."""
_DAY: Final = 2 * HALF_DAY
_HALF: Final = r"(?: ?(?P<half>am|pm)\b)"
_NO_UNIT: Final = (
    r"(?![\d:.%°]|[a-z]| (?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|degrees?)\b)"
)
_NAMES: Final = {"noon": HALF_DAY, "midday": HALF_DAY, "midnight": _DAY}
_FORMS: Final = tuple(
    re.compile(form)
    for form in (
        rf"(?<![\d:.])(?P<hour>\d{{1,2}}):(?P<minute>\d\d)(?::\d\d)?(?![\d:]){_HALF}?",
        r"(?<![\d:.])(?P<part>half|(?:a )?quarter|\d{1,2}(?: minutes?)?) "
        rf"(?P<way>past|after|to|before|till) (?P<hour>\d{{1,2}}|noon|midnight){_NO_UNIT}"
        rf"(?: o'clock)?{_HALF}?",
        rf"(?<![\d:.])(?P<hour>\d{{1,2}}) ?o'clock{_HALF}?",
        rf"(?<![\d:.])(?P<hour>\d{{1,2}}){_HALF}",
        rf"(?<![\d:.])(?P<hour>\d{{1,2}})(?P<minute>[0-5]\d){_HALF}",
        rf"(?<![\d:.])(?<!\d )(?P<hour>\d{{1,2}}) (?P<minute>[1-5]\d|0 \d){_NO_UNIT}{_HALF}?",
        r"\b(?P<hour>noon|midday|midnight)\b",
        r"(?:\b(?:at|by|until|till|from|since|before|after|around|about|between)(?: about)? )"
        rf"(?P<hour>\d{{1,2}}){_NO_UNIT}",
    )
)
_CLOCK_JOIN: Final = re.compile(r" ?(?:to|and|until|till|-|–|—) ?(?:at )?")
_BARE_BEFORE: Final = re.compile(r"(?<![\d:.])(?P<hour>\d{1,2}) ?(?:to|and|until|till|-|–|—) ?$")
_BARE_BEHIND: Final = re.compile(rf" ?(?:to|and|until|till|-|–|—) ?(?P<hour>\d{{1,2}}){_NO_UNIT}")
_BARE: Final = re.compile(rf"(?<![\d:.%°€$£-])\b(?P<hour>\d{{1,2}}){_NO_UNIT}")
_LEADS: Final = re.compile(r"\b(?:from|between) $")
_HOUR_PARTS: Final = {"half": 30, "quarter": 15, "a quarter": 15}


@dataclass(frozen=True, slots=True)
class ClockTime:
    """A time of day: `start` and `end` are its characters, `minute` counts from midnight.

    1440 is the midnight at the day's end.
    """

    start: int
    end: int
    minute: int
    half_known: bool
    """Whether it is told from the time twelve hours later. If not, `minute` is below 720."""

    def in_half(self, half: str) -> ClockTime:
        """Return it in the "am" or "pm" half of the day, where that is not known yet."""
        if self.half_known:
            return self
        minute = self.minute % HALF_DAY + (HALF_DAY if half == "pm" else 0)
        return replace(self, minute=minute, half_known=True)


def clock_times(plain: str, *, bare: bool = False) -> list[ClockTime]:
    """Return the times of day of a text, in order.

    Args:
        bare: Whether a number that has nothing beside it is one, as in "tomorrow 7".
    """
    found, text = list[ClockTime](), plain
    for form in _FORMS:
        for match in form.finditer(text):
            time = _time_of(text, match)
            if time is not None:
                found.append(time)
                text = _without(text, time)
    for time in tuple(found):
        before = _BARE_BEFORE.search(text, 0, time.start)
        behind = _BARE_BEHIND.match(text, time.end)
        for match in (before, behind):
            if match is not None and (other := _time_of(text, match)) is not None:
                found.append(other)
                text = _without(text, other)
    if bare and not found and (match := _BARE.search(text)) is not None:
        found += [time] if (time := _time_of(text, match)) is not None else []
    return sorted(found, key=lambda time: time.start)


def are_joined(plain: str, one: ClockTime, other: ClockTime) -> bool:
    """Say whether two times are the ends of a span: "2 to 4", "from 9 until noon"."""
    return _CLOCK_JOIN.fullmatch(plain, one.end, other.start) is not None


def as_span(one: ClockTime, other: ClockTime) -> tuple[ClockTime, ClockTime]:
    """Give the ends of a span the halves that make it shortest: in "11 to 1 pm", 11 is "am"."""
    if one.half_known and not other.half_known:
        minute = other.minute % HALF_DAY
        while minute <= one.minute:
            minute += HALF_DAY
        return one, replace(other, minute=minute, half_known=True)
    if other.half_known and not one.half_known:
        minute = one.minute % HALF_DAY
        if minute + HALF_DAY < other.minute:
            minute += HALF_DAY
        return replace(one, minute=minute, half_known=True), other
    return one, other


def _without(text: str, time: ClockTime) -> str:
    return f"{text[: time.start]}{'|' * (time.end - time.start)}{text[time.end :]}"


def _time_of(text: str, match: re.Match[str]) -> ClockTime | None:
    said = match.groupdict()
    start = match.start("part") if said.get("part") else match.start("hour")
    end = match.end() if "half" in said or said["hour"] in _NAMES else match.end("hour")
    if said["hour"] in _NAMES:
        minute, known = _NAMES[said["hour"]], True
    else:
        hour, minutes = int(said["hour"]), int((said.get("minute") or "0").replace(" ", ""))
        if hour > 24 or minutes > 59 or (hour == 24 and minutes):
            return None
        known = hour == 0 or hour > 12 or (said["hour"][:1] == "0" and ":" in match[0])
        minute = hour * 60 + minutes
        if half := said.get("half"):
            if hour > 12:
                half = ""  # "19:30 pm" says it twice
            else:
                minute = hour % 12 * 60 + minutes + (HALF_DAY if half == "pm" else 0)
            known = True
        if not known:
            minute %= HALF_DAY
    if part := said.get("part"):
        minutes = _HOUR_PARTS.get(part) or int(part.split()[0])
        way = -1 if said["way"] in ("to", "before", "till") else 1
        is_bare = part.isdecimal() and said["way"] in ("to", "till")
        if minutes > 59 or (is_bare and (minutes % 5 or _LEADS.search(text, 0, start))):
            return None  # "3 to 5" is a span, and so is "from 10 to 11"
        minute = (minute + way * minutes) % (_DAY if known else HALF_DAY)
    return ClockTime(start, end, minute, known)


# Days in a text of `plain_words`: "tomorrow", "next friday", "the 28th", "this weekend".

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


Kind: TypeAlias = Literal["time", "hours", "days"]
FIRST_MORNING_HOUR: Final = 7
"""Of another day's hours that could be of either half, those from this one on are before noon:
"tomorrow at eight" is in the morning, and "tomorrow at three" is not."""
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
    from_now: bool = False
    """Whether it was told as a length from now, so that it is no matter of clocks."""


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
        return When(there, there, "time", from_now=True)
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


__all__ = [
    "Length",
    "When",
    "asked_length",
    "asked_when",
    "at_wall_clock",
    "later",
    "read_length",
    "read_when",
]
