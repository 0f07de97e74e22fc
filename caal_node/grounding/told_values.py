"""The figures, times and dates that may be told where a turn's results have none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from caal_node.grounding.quantities import TEXT_CHARS, stated_in
from caal_node.grounding.spoken_times import Day, Time, weekday_of


class ToldValues:
    """What was said, asked for or found earlier, by value."""

    def __init__(self, texts: Iterable[str]) -> None:
        parts = [
            text[at : at + TEXT_CHARS] for text in texts for at in range(0, len(text), TEXT_CHARS)
        ]
        stated = [stated_in(part) for part in parts]
        self._values: Final = {figure.value for each in stated for figure in each.figures}
        self._times: Final = [time for each in stated for time in each.times]
        self._days: Final = [day for each in stated for day in each.days]
        self._digits: Final = ["".join(filter(str.isdigit, part)) for part in parts]

    def has_unknown(self, clause: str) -> bool:
        """Return whether a clause states a figure, time, date or number that was told nowhere."""
        stated = stated_in(clause)
        return (
            any(
                not any(abs(figure.value - known) <= figure.step / 2 for known in self._values)
                for figure in stated.figures
                if figure.unit is None or figure.unit.dimension != "any"
            )
            or any(time.is_sure and not self._has_time(time) for time in stated.times)
            or any(not self._has_day(day) for day in stated.days)
            or any(
                not any(code.digits in digits for digits in self._digits) for code in stated.codes
            )
        )

    def _has_time(self, time: Time) -> bool:
        return any(time.is_same(known) for known in self._times)

    def _has_day(self, day: Day) -> bool:
        if day.weekday is not None and not day.month:
            return any(weekday_of(known) == day.weekday for known in self._days)
        return any((day.month, day.day) == (known.month, known.day) for known in self._days)
