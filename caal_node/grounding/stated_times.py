"""Whether the times of day and the dates of a clause are those of the results."""

from __future__ import annotations

from typing import Final

from caal_node.grounding.clause_facts import ClauseFacts
from caal_node.grounding.derived_figures import PAIRS_MAX
from caal_node.grounding.fact_words import listed
from caal_node.grounding.result_facts import label_of
from caal_node.grounding.spoken_times import HALF_DAY, Day, Time, weekday_of
from caal_node.policy.heard_words import words

_ABOUT_MINUTES: Final = 10
"""How far a time may lie beside one that is said to be rough."""
_BESIDE_MINUTES: Final = 60
"""How far it may lie behind one that it is said to be past."""
_PAST: Final = frozenset({"past", "after"})
_AHEAD: Final = frozenset({"before"})
_APPROXIMATE: Final = listed("approximate")
_LAST_OF_12: Final = 780
"""Minutes of a day from which on the hour says that its clock has 24 of them."""


def is_known_time(time: Time, clause: ClauseFacts) -> bool:
    """Say whether a time is in the results or was said, or lies a stated duration beside one."""
    if clause.turn.has_moments:
        return True
    known = [fact.time for fact in [*clause.times, *clause.told.times]]
    if any(time.is_same(other) for other in known):
        return True
    led = set(clause.text[: time.start].lower().split()[-2:])
    behind = [(one.minute - time.minute) % HALF_DAY for one in known]
    if led & _PAST and any(minutes <= _BESIDE_MINUTES for minutes in behind):
        return True
    if led & _AHEAD and any(HALF_DAY - minutes <= _BESIDE_MINUTES for minutes in behind):
        return True
    if led & _APPROXIMATE:
        return any(min(one, HALF_DAY - one) <= _ABOUT_MINUTES for one in behind)
    durations = [
        round(fact.value * fact.unit.factor / 60)
        for fact in [*clause.turn.figures, *clause.told.figures]
        if fact.unit is not None and fact.unit.dimension == "duration" and fact.unit.factor
    ]
    if durations and not known:
        # It is told from the time of day, which is not known here.
        return time.is_sure
    apart = {minutes % HALF_DAY for minutes in durations[:PAIRS_MAX]}
    return any(one in apart or HALF_DAY - one in apart for one in behind)


def right_time(time: Time, clause: ClauseFacts) -> str | None:
    """Return the only time that can be meant, written as the wrong one was."""
    led = {label_of(word) for word in words(clause.text[: time.start])}
    # A thing is at the time at which it begins, unless its end is spoken of.
    way = "end" if "end" in led else "start"
    labelled = [fact for fact in clause.times if way in fact.label]
    meant = {fact.time.minute for fact in labelled or clause.times}
    if len(meant) != 1:
        return None
    right = _clock(meant.pop(), time, clause.text[time.start : time.end])
    # "9:30 in the evening" has its hour right: what is wrong stands behind it.
    return None if right == clause.text[time.start : time.end] else right


def _clock(minute: int, instead: Time, written: str) -> str:
    """Write a time by a clock of 24 hours or 12, as the wrong one was written."""
    hour, minutes = divmod(minute, 60)
    spelt = written.lower()
    if any(half in spelt for half in ("am", "pm", ".m")):
        return f"{(hour + 11) % 12 + 1}:{minutes:02} {'AM' if hour < 12 else 'PM'}"
    if instead.minute >= _LAST_OF_12 and written[:2].isdecimal():
        return f"{hour:02}:{minutes:02}"
    return f"{(hour + 11) % 12 + 1}:{minutes:02}"


def is_known_day(day: Day, clause: ClauseFacts) -> bool:
    """Say whether a date or weekday is in the results or was said.

    Results without any date leave open which day is meant, and so does a time in seconds.
    """
    if not clause.turn.days or clause.turn.has_moments:
        return True
    every = [other for other, _ in (*clause.turn.days, *clause.told.days)]
    if any(_is_same_day(day, other) for other in every):
        return True
    # Without its year, a date may be on any day of the week, if none stands beside it.
    on_any = all(weekday_of(other) is None for other in every)
    return on_any and day.weekday is not None and not day.month


def _is_same_day(stated: Day, other: Day) -> bool:
    if stated.weekday is not None and not stated.month:
        return weekday_of(other) == stated.weekday
    years = {stated.year, other.year} - {0}
    return (stated.month, stated.day) == (other.month, other.day) and len(years) < 2
