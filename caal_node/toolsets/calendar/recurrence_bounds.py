"""Which recurring events are expanded: those whose times are few enough to be counted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final, cast

FIRST_YEAR: Final = 1900
"""A rule is followed from its beginning, so one from the year 1 takes seconds."""
A_DAY_MAX: Final = 48
"""Times a day: every half hour. More is no event that a person goes to."""
_TOO_OFTEN: Final = frozenset({"SECONDLY", "MINUTELY"})


def is_bounded(start: object, rules: object) -> bool:
    """Say whether the rules of an event with that start can be followed in bounded time.

    Args:
        start: The event's DTSTART.
        rules: Its RRULE, one or a list of several, each a mapping of lists; None without one.
    """
    if rules is None:
        return True
    if not isinstance(start, date | datetime) or start.year < FIRST_YEAR:
        return False
    several = cast("list[Any]", rules) if isinstance(rules, list) else [rules]
    return len(several) <= 4 and all(_is_seldom(rule) for rule in several)


def _is_seldom(rule: Mapping[str, Any]) -> bool:
    frequency = {str(each).upper() for each in _values(rule, "FREQ")}
    if frequency & _TOO_OFTEN:
        return False
    a_day = 24 if "HOURLY" in frequency else 1
    for name in ("BYHOUR", "BYMINUTE", "BYSECOND"):
        a_day *= max(1, len(_values(rule, name)))
    return a_day <= A_DAY_MAX


def _values(rule: Mapping[str, Any], name: str) -> list[Any]:
    value: Any = rule.get(name, [])
    return cast("list[Any]", value) if isinstance(value, list) else [value]
