"""The figures, times and dates that may be told besides what a turn's results have.

What was said, asked for or found earlier is only searched for a clause's own values, and not read
for what it states: that would take 50 ms of a dense text of 8,000 characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from caal_node.grounding.fact_words import WORDS
from caal_node.grounding.quantities import Figure, stated_in
from caal_node.grounding.spoken_times import Day, Time, hours_of
from caal_node.policy.heard_words import stem, stems

HOURS: Final = 12
"""Hours of a clock's face."""
TOLD_CHARS: Final = 16_384
"""Characters that are searched, some 3 ms. Where there are more, everything may have been told."""

_CLOCK: Final = re.compile(
    r"(?<![\d:])(\d{1,2}):(\d\d)(?!\d)(?::\d\d)?\s?(?:([ap])\.?m)?", re.IGNORECASE
)


class ToldValues:
    """Texts, in which the values of clauses are looked for."""

    def __init__(self, texts: Iterable[str]) -> None:
        kept, left = list[str](), TOLD_CHARS
        for text in texts:
            left -= len(text)
            if left < 0:
                break
            kept.append(text)
        self.is_whole: Final = left >= 0
        """Whether all of it is searched."""
        self.words: Final = frozenset[str]().union(*map(stems, kept))
        """The stems of all words."""
        self.text: Final = "\n".join(kept)
        self._digits: Final = "".join(filter(str.isdigit, self.text))

    def has_unknown(self, clause: str) -> bool:
        """Return whether a clause states a figure, time, date or number that was told nowhere."""
        if not self.is_whole:
            return False
        stated = stated_in(clause)
        return (
            any(not self._has_figure(clause, figure) for figure in stated.figures)
            or any(time.is_sure and not self.has_time(clause, time) for time in stated.times)
            or any(not self.has_day(day) for day in stated.days)
            or any(code.digits not in self._digits for code in stated.codes)
        )

    def has_time(self, clause: str, time: Time) -> bool:
        """Return whether a time of the clause may have been told."""
        hour, minute = divmod(time.minute, 60)
        if not self.is_whole:
            return True
        if not minute:
            return any(str(each) in self.words for each in hours_of(hour))
        told = _CLOCK.finditer(self.text)
        return any(int(each[2]) == minute and _may_be(each, hour) for each in told)

    def has_day(self, day: Day) -> bool:
        """Return whether a date or a weekday may have been told."""
        if not self.is_whole:
            return True
        if day.weekday is not None and not day.month:
            return stem(WORDS["weekdays"][day.weekday]) in self.words
        return str(day.day) in self.words

    def _has_figure(self, clause: str, figure: Figure) -> bool:
        if figure.unit is not None and figure.unit.dimension == "any":
            return True
        parts = f"{abs(figure.value):g}".split(".")
        return self.words.issuperset(parts) or self._has_words(clause[figure.start : figure.end])

    def _has_words(self, said: str) -> bool:
        return stems(said) <= self.words


def _may_be(told: re.Match[str], hour: int) -> bool:
    """Return whether a time that was told by a clock may be of this hour of 24."""
    said = int(told[1])
    if told[3]:
        return said % HOURS + HOURS * (told[3] in "pP") == hour
    if said > HOURS or told[1][0] == "0":
        return said == hour
    return said % HOURS == hour % HOURS
