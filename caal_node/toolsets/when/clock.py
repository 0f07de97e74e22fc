"""Times of day in a text of `plain_words`: "7:30 pm", "quarter to 6", "at 4", "noon"."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

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
_JOIN: Final = re.compile(r" ?(?:to|and|until|till|-|–|—) ?(?:at )?")
_BARE_BEFORE: Final = re.compile(r"(?<![\d:.])(?P<hour>\d{1,2}) ?(?:to|and|until|till|-|–|—) ?$")
_BARE_BEHIND: Final = re.compile(rf" ?(?:to|and|until|till|-|–|—) ?(?P<hour>\d{{1,2}}){_NO_UNIT}")
_BARE: Final = re.compile(rf"(?<![\d:.%°€$£-])\b(?P<hour>\d{{1,2}}){_NO_UNIT}")
_LEADS: Final = re.compile(r"\b(?:from|between) $")
_PARTS: Final = {"half": 30, "quarter": 15, "a quarter": 15}


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
    return _JOIN.fullmatch(plain, one.end, other.start) is not None


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
        minutes = _PARTS.get(part) or int(part.split()[0])
        way = -1 if said["way"] in ("to", "before", "till") else 1
        is_bare = part.isdecimal() and said["way"] in ("to", "till")
        if minutes > 59 or (is_bare and (minutes % 5 or _LEADS.search(text, 0, start))):
            return None  # "3 to 5" is a span, and so is "from 10 to 11"
        minute = (minute + way * minutes) % (_DAY if known else HALF_DAY)
    return ClockTime(start, end, minute, known)
