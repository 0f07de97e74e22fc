"""What an entry becomes that a person changes: more time, less, or another time."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from typing import Final, Literal, TypeAlias

from caal_node.toolsets.timers.asked_time import asked_time
from caal_node.toolsets.timers.entry import Entry, next_due
from caal_node.toolsets.when import read_length

How: TypeAlias = Literal["set", "add", "subtract"]

_MORE: Final = re.compile(r"\b(?:more|longer|extra|later|add|plus|another)\b", re.IGNORECASE)
_LESS: Final = re.compile(r"\b(?:less|shorter|earlier|fewer|sooner|minus)\b", re.IGNORECASE)
_FROM_NOW: Final = re.compile(r"\s*in\b|.*\bfrom now\b", re.IGNORECASE)


def changed(entry: Entry, time: str, how: How, now: datetime) -> Entry:
    """Return an entry as words about its time change it; one that rings waits again.

    Args:
        now: The present in the home's zone.

    Raises:
        InvalidArguments: the words say no time.
    """
    entry = replace(entry, state="waiting", lease=0.0)
    length = read_length(time)
    if length is None or _FROM_NOW.match(time):
        return _at(entry, time, now)
    seconds = length.total_seconds()
    if how == "subtract" or _LESS.search(time):
        return _moved(entry, -seconds, now)
    if how == "add" or _MORE.search(time):
        return _moved(entry, seconds, now)
    total = seconds if entry.kind == "timer" else 0.0
    return replace(entry, due=now.timestamp() + seconds, length_s=total, wall="", weekdays="")


def _moved(entry: Entry, seconds: float, now: datetime) -> Entry:
    """Move an entry, from now on where it rings already; what comes on many days comes once."""
    due = max(entry.due, now.timestamp()) + seconds
    total = max(entry.length_s + seconds, 0.0) if entry.kind == "timer" else 0.0
    due = max(due, now.timestamp())
    return replace(entry, due=due, length_s=total, wall="", weekdays="")


def _at(entry: Entry, time: str, now: datetime) -> Entry:
    at = asked_time(time, entry.kind, now)
    due, weekdays = at.moment, at.weekdays
    if entry.weekdays and not weekdays and at.wall and now.tzinfo is not None:
        weekdays = entry.weekdays
        due = next_due(datetime.fromisoformat(at.wall), weekdays, now.tzinfo, now)
    return replace(entry, due=due.timestamp(), wall=at.wall, weekdays=weekdays, length_s=0.0)


def next_time(entry: Entry, now: datetime) -> Entry | None:
    """Return the entry as it waits for its next day; None for one that comes once."""
    if not entry.weekdays or now.tzinfo is None:
        return None
    wall = datetime.fromisoformat(entry.wall)
    after = max(now, entry.due_in(now.tzinfo), key=datetime.timestamp)
    due = next_due(wall, entry.weekdays, now.tzinfo, after).timestamp()
    return replace(entry, due=due, state="waiting", lease=0.0)


def snoozed(entry: Entry, seconds: float, now: datetime) -> Entry:
    """Return an entry as it rings once more, so many seconds from now."""
    due = now.timestamp() + seconds
    return replace(entry, due=due, wall="", weekdays="", state="waiting", lease=0.0)
