"""Puts a figure right that has a result's number and another unit than it: "17 miles per hour" of
`wind_kmh: 17`.

Only what a result rules out is corrected: its number stands in the clause, its own unit is known by
its name or its text, and no other value of the results is the one that is said. Lengths of time are
left alone, as many of them follow from others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isclose
from typing import Any, Final, cast

from caal_node.grounding.earlier_results import name_words
from caal_node.grounding.fact_words import UNITS, WORDS, Unit
from caal_node.grounding.quantities import Figure, stated_in

FOUND_CHARS: Final = 1_500
"""Characters of results that are read, some 3 ms, once an answer. Where there are more, nothing is
corrected."""
_LEFT_ALONE: Final = frozenset({"duration", "money", "any", "share", "data"})
_NEAR: Final = 0.06
"""How far a converted value may lie from the right one: "about 10 miles per hour" of 17 km/h."""


@dataclass(frozen=True, slots=True)
class _Measure:
    value: float
    unit: Unit

    @property
    def scaled(self) -> float:
        return self.value * self.unit.factor + self.unit.offset


class StatedUnits:
    """Holds the units of clauses against those of the turn's `results`."""

    def __init__(self, results: Iterable[str]) -> None:
        self._results: Final = tuple(results)
        self._is_readable: Final = sum(map(len, self._results)) <= FOUND_CHARS

    def rightly(self, clause: str) -> str:
        """Return the clause with its units corrected."""
        if not self._is_readable or not self._found:
            return clause
        for figure in reversed(stated_in(clause).figures):
            if (right := self._unit_of(figure)) is not None:
                spelt = WORDS["units"][right.name][3][0].replace("degrees c", "degrees C")
                spelt = spelt.replace("degrees f", "degrees F")
                clause = f"{clause[: figure.number.end]} {spelt}{clause[figure.end :]}"
        return clause

    def _unit_of(self, figure: Figure) -> Unit | None:
        """Return the unit that the number of a figure has in the results, where it is another."""
        unit = figure.unit
        if (
            unit is None
            or not _is_measure(unit)
            or figure.hedge
            or figure.start != figure.number.start
        ):
            return None
        same = [one for one in self._found if one.unit.dimension == unit.dimension]
        meant = _Measure(figure.value, unit).scaled
        if any(isclose(one.scaled, meant, rel_tol=_NEAR, abs_tol=1e-9) for one in same):
            return None
        units = {one.unit.name: one.unit for one in same if one.value == figure.value}
        return next(iter(units.values())) if len(units) == 1 else None

    @cached_property
    def _found(self) -> list[_Measure]:
        return [one for result in self._results for one in _measures(result)]


def _measures(result: str) -> Iterator[_Measure]:
    try:
        value: Any = json.loads(result) if result[:1] in ("{", "[") else result
    except (ValueError, RecursionError):
        value = result
    yield from _of(value, None)


def _of(value: Any, unit: Unit | None) -> Iterator[_Measure]:
    if isinstance(value, dict):
        members = cast("Mapping[str, Any]", value)
        own = members.get("unit")
        around = UNITS.get(own.lower()) if isinstance(own, str) else None
        for name, member in members.items():
            yield from _of(member, _named(name) or around or unit)
    elif isinstance(value, list):
        for member in cast("list[Any]", value):
            yield from _of(member, unit)
    elif isinstance(value, str):
        for figure in stated_in(value).figures:
            if figure.unit is not None and _is_measure(figure.unit):
                yield _Measure(figure.value, figure.unit)
    elif unit is not None and _is_measure(unit) and type(value) in (int, float):
        yield _Measure(float(value), unit)


def _named(name: str) -> Unit | None:
    """Return the unit that a name ends in: `wind_kmh`."""
    parts = name_words(name)
    return UNITS.get(parts[-1]) if len(parts) > 1 else None


def _is_measure(unit: Unit) -> bool:
    return unit.factor > 0 and unit.dimension not in _LEFT_ALONE
