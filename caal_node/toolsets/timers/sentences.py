"""How timers, alarms and reminders are said."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from caal_node.toolsets.timers.entry import Entry, days_words

_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
_READ_OUT: Final = 6
"""Nobody follows a longer list by ear."""

LOST_WORDS: Final = (
    "I lost the timers, alarms and reminders that were set, as their file was damaged."
)


def length_words(seconds: float) -> str:
    """Return a length in its two largest units: "1 hour and 30 minutes"."""
    left, said = max(round(seconds), 0), list[str]()
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            said.append(f"{count} {unit}{'s' if count > 1 else ''}")
    return " and ".join(said[:2]) or "no time"


def clock_words(moment: datetime) -> str:
    """Return a time of day: "7 AM", "7:30 PM", "noon"."""
    if moment.minute == 0 and moment.hour in (0, 12):
        return "noon" if moment.hour else "midnight"
    minutes = f":{moment.minute:02d}" if moment.minute else ""
    return f"{(moment.hour - 1) % 12 + 1}{minutes} {'PM' if moment.hour >= 12 else 'AM'}"


def moment_words(moment: datetime, now: datetime) -> str:
    """Return a time with its day, as seen from `now`: "7 AM tomorrow", "noon on December 24"."""
    clock, days = clock_words(moment), (moment.date() - now.date()).days
    if days == 0:
        return f"{clock} today"
    if days in (-1, 1):
        return f"{clock} {'tomorrow' if days == 1 else 'yesterday'}"
    if 1 < days < 7:
        return f"{clock} on {moment:%A}"
    year = "" if moment.year == now.year else f" {moment.year}"
    return f"{clock} on {moment:%B} {moment.day}{year}"


def called(entry: Entry) -> str:
    """Return what an entry is called behind "the": "pasta timer", "10 minute timer", "alarm"."""
    if entry.kind in ("reminder", "request"):
        between = " to" if _is_deed(entry.name) else ":"
        return f"{entry.kind}{between} {entry.name}"
    if entry.name:
        return f"{entry.name} {entry.kind}"
    if entry.length_s:
        return f"{length_words(entry.length_s).replace('s and', ' and').rstrip('s')} {entry.kind}"
    return entry.kind


def told_apart(entries: Sequence[Entry], now: datetime) -> list[str]:
    """Return names for entries, with what is left or the time where two have the same."""
    names = [called(entry) for entry in entries]
    said = list[str]()
    for entry, name in zip(entries, names, strict=True):
        if names.count(name) == 1:
            said.append(f"the {name}")
        elif entry.kind == "timer":
            said.append(f"the {name} with {length_words(entry.due - now.timestamp())} left")
        else:
            said.append(f"the {name} for {_when(entry, now)}")
    return said


def _is_deed(name: str) -> bool:
    """Say whether words are likely something to do: "call mum", and not "the bins"."""
    first = name.split(" ", 1)[0]
    return bool(first) and first.islower() and first not in ("the", "my", "a", "an", "that", "it")


def set_words(entry: Entry, now: datetime) -> str:
    """Return what a person hears when it is set."""
    if entry.kind == "timer":
        name = f"{entry.name} timer" if entry.name else "timer"
        return f"The {name} is set for {length_words(entry.due - now.timestamp())}."
    when = _when(entry, now)
    if entry.kind == "alarm":
        return f"The {called(entry)} is set for {when}."
    if entry.kind == "request":
        return f"I'll do this at {when}: {entry.name}."
    return f"I'll remind you at {when}: {entry.name}."


def _when(entry: Entry, now: datetime) -> str:
    moment = entry.due_in(now.tzinfo)
    if entry.weekdays:
        return f"{clock_words(moment)} {days_words(entry.weekdays)}"
    return moment_words(moment, now)


def left_words(entry: Entry, now: datetime) -> str:
    """Return how an entry stands: "The pasta timer has 4 minutes left"."""
    if entry.state == "ringing":
        return f"The {called(entry)} is ringing"
    if entry.kind == "timer":
        return f"The {called(entry)} has {length_words(entry.due - now.timestamp())} left"
    if entry.kind == "alarm":
        return f"The {called(entry)} is set for {_when(entry, now)}"
    if entry.kind == "request":
        return f"For {_when(entry, now)} you asked this: {entry.name}"
    return f"You have a reminder for {_when(entry, now)}: {entry.name}"


def list_words(entries: Sequence[Entry], now: datetime, kind: str = "") -> str:
    """Return what is set, the next first."""
    if not entries:
        return f"There are no {kind or 'timer'}s." if kind else "Nothing is set."
    said = [left_words(entry, now) for entry in entries[:_READ_OUT]]
    more = len(entries) - len(said)
    if more:
        said.append(f"And there {'is' if more == 1 else 'are'} {more} more")
    return ". ".join(said) + "."


def ring_words(entry: Entry, now: datetime) -> str:
    """Return what is said when it rings."""
    if entry.kind == "timer":
        return f"Your {called(entry)} is done."
    if entry.kind == "alarm":
        return f"It's {clock_words(now)}, and your {called(entry)} is ringing."
    if entry.kind == "request":
        return f"As you asked earlier: {entry.name}."
    return f"Here is your reminder: {entry.name}."


def missed_words(entries: Sequence[Entry], now: datetime) -> str:
    """Return what is told of entries that rang when nobody was there to hear them."""
    said = list[str]()
    for entry in entries[:_READ_OUT]:
        at = moment_words(entry.due_in(now.tzinfo), now).removesuffix(" today")
        said.append(
            f"your {called(entry)} ended at {at}"
            if entry.kind == "timer"
            else f"your {called(entry)} was at {at}"
            if entry.kind == "alarm"
            else f"I did not do this at {at}: {entry.name}"
            if entry.kind == "request"
            else f"you had a reminder at {at}: {entry.name}"
        )
    more = len(entries) - len(said)
    rest = f", and {more} more" if more else ""
    return f"While I couldn't reach you, {'; '.join(said)}{rest}."
