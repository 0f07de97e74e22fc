"""Finds which of the things that are set a person means: "the pasta one", "my 7 o'clock alarm"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from caal_node.toolsets.timers.entry import Entry
from caal_node.toolsets.when import read_length, read_when

_WORD: Final = re.compile(r"[^\W_]+")
_SAYS_NOTHING: Final = frozenset(
    """a an and at for in is it it's its me mine my of on one ones please set that the them this
    to timer timers alarm alarms reminder reminders request requests all every both
    current running ringing i s everything""".split()  # noqa: SIM905 - a list of words reads better as words
)
_ALL: Final = frozenset(
    {"all", "every", "everything", "both", "timers", "alarms", "reminders", "requests"}
)
_NEAR_S: Final = 30.0
"""Seconds by which "with ten minutes left" may be off, as time passes while people speak."""
_KINDS: Final = ("timer", "alarm", "reminder", "request")


def entries_meant(which: str, entries: Sequence[Entry], now: datetime) -> list[Entry]:
    """Return the entries that words may mean: one, none, or several that they don't tell apart.

    Words that say nothing ("the timer", "it") mean all of the kind that they name, else all; and of
    these the ones that ring, if any do.
    """
    words = _WORD.findall(which.casefold())
    kinds = [kind for kind in _KINDS if kind in words or f"{kind}s" in words]
    of_kind = [entry for entry in entries if entry.kind in kinds] or list(entries)
    telling = {_stem(word) for word in words} - {_stem(word) for word in _SAYS_NOTHING}
    if not telling:
        ringing = [entry for entry in of_kind if entry.state == "ringing"]
        return of_kind if means_all(which) or not ringing else ringing
    for pool in (of_kind, entries):
        if named := _named(telling, pool):
            return (_timed(which, named, now) or named) if len(named) > 1 else named
        if timed := _timed(which, pool, now):
            return timed
    if len(of_kind) > 1 and telling & {"last", "newest", "latest"}:
        return [max(of_kind, key=lambda entry: entry.number)]
    if len(of_kind) > 1 and telling & {"first", "next", "oldest"}:
        return [min(of_kind, key=lambda entry: entry.due)]
    return []


def means_all(which: str) -> bool:
    """Say whether words mean every one of a kind: "all timers", "both", "my alarms"."""
    return bool(_ALL.intersection(_WORD.findall(which.casefold())))


def _stem(word: str) -> str:
    return word[:-1] if word.endswith("s") and len(word) > 3 else word


def _named(telling: set[str], pool: Sequence[Entry]) -> list[Entry]:
    """Return the entries whose names share the most words with what was said."""
    shared = [
        len(telling & {_stem(word) for word in _WORD.findall(entry.name.casefold())})
        for entry in pool
    ]
    best = max(shared, default=0)
    found = [entry for entry, count in zip(pool, shared, strict=True) if count == best > 0]
    exact = [
        entry
        for entry in found
        if {_stem(word) for word in _WORD.findall(entry.name.casefold())} <= telling
    ]
    return exact or found


def _timed(which: str, pool: Sequence[Entry], now: datetime) -> list[Entry]:
    """Return the entries with the length or the time that was said."""
    length = read_length(which)
    if length is not None:
        seconds = length.total_seconds()
        return [entry for entry in pool if entry.length_s == seconds] or [
            entry for entry in pool if abs(entry.due - now.timestamp() - seconds) < _NEAR_S
        ]
    when = read_when(which, now)
    if when is None or when.kind == "days":
        return []
    return [
        entry
        for entry in pool
        if _shows(entry, now) % 720 == (when.start.hour * 60 + when.start.minute) % 720
    ]


def _shows(entry: Entry, now: datetime) -> int:
    due = entry.due_in(now.tzinfo)
    return due.hour * 60 + due.minute
