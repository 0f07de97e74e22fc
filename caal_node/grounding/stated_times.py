"""Puts a time of day right that has the wrong half of the day, weekday or zone.

Small models read `2026-03-03T06:32:00+09:00` and say "6:32 PM on Wednesday, Pacific time". Only
what a result rules out is corrected: a time twelve hours off one of the results, another weekday
than that of their only date, and a time zone that neither they nor anybody's words mention.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final

from caal_node.grounding.fact_words import WORDS
from caal_node.grounding.quantities import Stated, stated_in
from caal_node.grounding.spoken_times import HALF_DAY, weekday_of
from caal_node.grounding.told_values import HOURS, ToldValues
from caal_node.policy.heard_words import stem, words

FOUND_CHARS: Final = 1_500
"""Characters of results that are read, 10 ms at most, once an answer. Where there are more, nothing
is corrected, as what is not read may have it."""
_OFFSET: Final = re.compile(r"\b(?:UTC|GMT) ?([+\-−])(\d{1,2})(?::(\d\d))?", re.IGNORECASE)
_WRITTEN_OFFSET: Final = re.compile(r"[+-](\d\d):?(\d\d)\b")
_ZONE: Final = re.compile(
    r",? ?\bin (?:the )?(?P<name>[A-Z][a-z]+(?: [A-Z][a-z]+){0,2}) [Tt]ime(?: [Zz]one)?\b"
)
_BRACKETS: Final = re.compile(r",? ?\([^()]{0,20}$")
_CLOCK_CHANGES: Final = frozenset(map(stem, ("standard", "daylight", "summer", "winter", "local")))
"""Words of a zone's name that are not its place."""


class StatedTimes:
    """Holds the times of clauses against those of a turn.

    Args:
        results: The texts of the turn's results.
        told: What else may rightly be told: arguments, earlier results, what was said.
    """

    def __init__(self, results: Iterable[str], told: ToldValues) -> None:
        self._results: Final = "\n".join(results)
        self._told: Final = told

    @cached_property
    def _found(self) -> Stated:
        return stated_in(self._results)

    def rightly(self, clause: str) -> str:
        """Return the clause with its times corrected."""
        if len(self._results) > FOUND_CHARS:
            return clause
        stated = stated_in(clause)
        if not (stated.times or stated.days) or not (self._found.times or self._found.days):
            return clause
        changes = [*self._halves(clause, stated), *self._weekday(clause, stated)]
        changes += self._zones(clause)
        for start, end, right in sorted(changes, reverse=True):
            clause = f"{clause[:start]}{right}{clause[end:]}"
        return clause

    def _halves(self, clause: str, stated: Stated) -> Iterator[tuple[int, int, str]]:
        for time in stated.times:
            opposite = {
                one.minute for one in self._found.times if abs(one.minute - time.minute) == HALF_DAY
            }
            if not (opposite and time.is_sure and time.half_known):
                continue
            if any(map(time.is_same, self._found.times)) or self._told.has_time(clause, time):
                continue
            if right := _in_other_half(clause[time.start : time.end], opposite.pop()):
                yield time.start, time.end, right

    def _weekday(self, clause: str, stated: Stated) -> Iterator[tuple[int, int, str]]:
        """Yield the weekday of the results' only date in place of another one."""
        known = {weekday_of(day) for day in self._found.days}
        if len(known) != 1 or [bool(day.month) for day in stated.days] != [False]:
            return
        if any(figure.number.ordinal for figure in stated.figures):
            return  # "Monday, the 16th" may have both wrong
        (day,), (right,) = stated.days, known
        if right is None or day.weekday == right or self._told.has_day(day):
            return
        name = WORDS["weekdays"][right].capitalize()
        yield day.start, day.start + len(words(clause[day.start :])[0]), name

    def _zones(self, clause: str) -> Iterator[tuple[int, int, str]]:
        mentioned = f"{self._results}\n{self._told.text}"
        for match in _OFFSET.finditer(clause):
            sign = "+" if match[1] == "+" else "-"
            offset = f"{sign}{match[2]:0>2}{match[3] or '00'}"
            written = _WRITTEN_OFFSET.finditer(mentioned)
            if any(f"{one[0][0]}{one[1]}{one[2]}" == offset for one in written):
                continue
            opening = _BRACKETS.search(clause, 0, match.start())
            closing = clause.find(")", match.end())
            if opening and closing >= 0:
                yield opening.start(), closing + 1, ""
        known = frozenset(map(stem, words(mentioned)))
        for match in _ZONE.finditer(clause):
            place = frozenset(map(stem, words(match["name"]))) - _CLOCK_CHANGES
            if place and place.isdisjoint(known):
                yield match.start(), match.end(), ""


def _in_other_half(written: str, minute: int) -> str | None:
    """Return the time as it was written, in the half of the day of `minute`."""
    hour, minutes = divmod(minute, 60)
    lower = written.lower()
    if "am" in lower or "pm" in lower or ".m" in lower:
        half = "AM" if hour < HOURS else "PM"
        return f"{(hour + 11) % 12 + 1}:{minutes:02} {half}"
    # "9:30 in the evening" has its hour right: what is wrong is written behind it.
    is_24_hours = lower[:2].isdecimal() and (lower[0] == "0" or int(lower[:2]) > HOURS)
    return f"{hour:02}:{minutes:02}" if is_24_hours else None
