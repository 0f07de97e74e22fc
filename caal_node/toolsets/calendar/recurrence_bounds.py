"""Which recurring events are expanded: those whose times are few enough to be counted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any, Final, cast

FIRST_YEAR: Final = 1900
"""A rule is followed from its beginning, so one from the year 1 takes seconds."""
A_DAY_MAX: Final = 48
"""Times a day: every half hour. More is no event that a person goes to."""
LENGTH_MAX: Final = timedelta(days=366)
"""The longest of a series' events: all that began so long before a span may reach into it."""
RULES_MAX: Final = 4
_TOO_OFTEN: Final = frozenset({"SECONDLY", "MINUTELY"})


def is_bounded(start: object, end: object, rules: object) -> bool:
    """Say whether the rules of an event can be followed in bounded time.

    Args:
        start: The event's DTSTART.
        end: Its DTEND, or its DURATION; None without either.
        rules: Its RRULE, one or a list of several, each a mapping of lists; None without one.
    """
    if not isinstance(start, date | datetime) or start.year < FIRST_YEAR:
        return False
    length = end - _alike(start, end) if isinstance(end, date | datetime) else end
    if isinstance(length, timedelta) and length > LENGTH_MAX:
        return False
    several: list[Any] = [rules] if rules else []
    if isinstance(rules, list):
        several = cast("list[Any]", rules)
    return len(several) <= RULES_MAX and all(_is_seldom(rule) for rule in several)


def _alike(start: date, end: date) -> Any:
    """Return `start` as what `end` can be compared with; a day's difference does not matter."""
    if isinstance(end, datetime):
        return datetime(start.year, start.month, start.day, tzinfo=end.tzinfo)
    return date(start.year, start.month, start.day)


def _is_seldom(rule: Mapping[str, Any]) -> bool:
    frequency = {str(each).upper() for each in _values(rule, "FREQ")}
    if frequency & _TOO_OFTEN or any(int(each) < 1 for each in _values(rule, "INTERVAL")):
        return False
    a_day = 24 if "HOURLY" in frequency else 1
    for name in ("BYHOUR", "BYMINUTE", "BYSECOND"):
        a_day *= max(1, len(_values(rule, name)))
    return a_day <= A_DAY_MAX


def _values(rule: Mapping[str, Any], name: str) -> list[Any]:
    value: Any = rule.get(name, [])
    return cast("list[Any]", value) if isinstance(value, list) else [value]
