"""When a thing is to ring, of the words that a model gives for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from caal_node.core.errors import InvalidArguments
from caal_node.toolsets.timers.entry import Kind, next_due
from caal_node.toolsets.timers.repeats import split_repeat
from caal_node.toolsets.when import asked_when, at_wall_clock

_FIRST_HOURS: Final[dict[Kind, int]] = {"timer": 7, "alarm": 4, "reminder": 7, "request": 7}
"""The first hour that is taken for the morning's: people are woken earlier than they meet."""
_REMIND_AT: Final = 9 * 60
"""Minutes from midnight at which a reminder for a day or its morning comes."""
_MORNING: Final = 6
"""The hour at which a morning begins, as it is read."""
_AHEAD_MAX: Final = timedelta(days=10 * 366)
"""More is misheard."""


@dataclass(frozen=True, slots=True)
class RingTime:
    """When something rings."""

    moment: datetime
    wall: str = ""
    """As in an entry: the time of the clocks, where the time was said by them."""
    weekdays: str = ""


def asked_time(words: str, kind: Kind, now: datetime) -> RingTime:
    """Return when words say that a thing is to ring, seen from `now` in the home's zone.

    Raises:
        InvalidArguments: they say no time, one that has passed, or a day without a time.
    """
    weekdays, once = split_repeat(words)
    when = asked_when("when", once, now, first_morning_hour=_FIRST_HOURS[kind])
    moment = when.start
    if when.kind != "time":
        if kind != "reminder" or (when.kind == "hours" and weekdays):
            raise _to_ask("when: it names no time of day.", "At what time?")
        if when.kind == "days" or moment.hour == _MORNING:
            moment = at_wall_clock(moment.date(), _REMIND_AT, now.tzinfo)
        if moment.timestamp() <= now.timestamp():
            raise _to_ask("when: it names no time of day.", "At what time?")
    if weekdays and now.tzinfo is not None:
        if when.from_now:
            raise _to_ask("when: a length from now cannot repeat.", "At what time?")
        moment = next_due(moment.replace(tzinfo=None), weekdays, now.tzinfo, now)
    if moment.timestamp() <= now.timestamp():
        raise _to_ask("when: that time has passed.", "That time has passed. When do you mean?")
    if moment.timestamp() - now.timestamp() > _AHEAD_MAX.total_seconds():
        raise _to_ask("when: that is more than ten years ahead.", "When do you mean?")
    wall = "" if when.from_now else moment.replace(tzinfo=None).isoformat(timespec="minutes")
    return RingTime(moment, wall, weekdays)


def _to_ask(text: str, words: str) -> InvalidArguments:
    error = InvalidArguments(text)
    error.words = words
    return error
