"""Whether a figure that was said may stand for a value of a result."""

from __future__ import annotations

from typing import Final

from caal_node.grounding.fact_words import UNITS, Unit
from caal_node.grounding.quantities import Figure
from caal_node.grounding.result_facts import Fact

_ABOUT: Final = 0.12
"""The share by which a figure that is said to be rough may be off."""
_CONVERTED: Final = 0.02
"""The share by which one may be off that was told in another unit."""
_STEP: Final = 0.6
"""The share of its last place by which a converted figure may be off: it is rounded twice."""
_ABOVE: Final = 1.3
_BELOW: Final = 0.8
"""How far from "more than" and "less than" what is meant may lie."""
_ROUND: Final = 100.0
"""A whole figure of hundreds is meant to the hundred."""
_COUNTED: Final = 12
"""A whole number without a unit up to which it more often counts things than rounds a measure."""
_SCALES: Final = {
    name: tuple(dict.fromkeys(u for u in UNITS.values() if u.dimension == name and u.factor))
    for name in {unit.dimension for unit in UNITS.values()} - {"money", "any"}
}
"""The units of each dimension that have a scale."""


def is_duration(figure: Figure) -> bool:
    """Say whether a figure is a length of time."""
    return figure.unit is not None and figure.unit.dimension == "duration"


def may_be(figure: Figure, fact: Fact) -> bool:
    """Say whether the units of a figure and a fact allow that they are one."""
    if figure.unit is None or fact.unit is None:
        return True
    return figure.unit.may_be(fact.unit)


def told_as(figure: Figure, fact: Fact) -> float:
    """Return a fact's value in the unit of the figure; without one, in its dimension's first."""
    if fact.unit is None:
        return fact.value
    if figure.unit is None:
        return fact.value * fact.unit.factor if fact.unit.dimension == "money" else fact.value
    return fact.unit.told_in(fact.value, figure.unit)


def is_close(figure: Figure, fact: Fact) -> bool:
    """Say whether a figure tells a fact: in its unit or another one, rounded as it was said."""
    if not may_be(figure, fact):
        return False
    value = told_as(figure, fact)
    if figure.unit is None:
        if is_small(figure) and not figure.hedge and not fact.value.is_integer():
            return False  # "Five" is not said of 4.7.
        return is_near(figure, value) or is_near(figure, fact.value)
    if is_near(figure, value):
        return True
    if fact.unit is None or not fact.unit.factor:
        # A figure of no unit may be of any: metres under "visibility" are said in kilometres.
        return fact.keyed and _is_in_any(figure, figure.unit, fact.value)
    if value == fact.value:
        return False
    off = max(figure.step * _STEP, abs(value) * _CONVERTED)
    return abs(figure.value - value) <= off


def _is_in_any(figure: Figure, unit: Unit, value: float) -> bool:
    scales = _SCALES.get(unit.dimension, ()) if unit.factor else ()
    others = [scale.told_in(value, unit) for scale in scales]
    return any(abs(figure.value - other) <= figure.step * _STEP for other in others)


def is_small(figure: Figure) -> bool:
    """Say whether a figure is a small whole number without a unit, which may count anything."""
    return figure.unit is None and figure.step == 1 and 0 <= figure.value <= _COUNTED


def is_near(figure: Figure, value: float) -> bool:
    """Say whether a figure, rounded and hedged as it was said, may stand for `value`."""
    said, step = figure.value, figure.step
    if step == 1 and said >= _ROUND * 10 and said % _ROUND == 0:
        step = _ROUND
    off = abs(said - value)
    if off <= step / 2 + 1e-6:
        return True
    if figure.hedge == "about":
        return off <= max(step, min(abs(value) * _ABOUT, _last_place(said)))
    low, high = sorted((said, said * (_ABOVE if figure.hedge == "above" else _BELOW)))
    return bool(figure.hedge) and low - step / 2 <= value <= high + step / 2


def _last_place(said: float) -> float:
    """Return the size of the last place of a whole number that is not 0: 100 of 9,700, 5 of 35."""
    whole, place = int(abs(said)), 1
    while whole and whole % 10 == 0:
        whole, place = whole // 10, place * 10
    return float(place * 5 if whole % 5 == 0 else place)


def written(value: float, figure: Figure) -> str:
    """Write a value with as many decimals as the figure has in whose place it is said."""
    places = 0 if figure.step >= 1 else len(f"{figure.step:.9f}".rstrip("0").partition(".")[2])
    is_money = figure.unit is not None and figure.unit.dimension == "money"
    if is_money and not value.is_integer():
        places = 2
    elif places == 0 and abs(value) < 1 and not value.is_integer():
        places = 1
    return f"{int(value)}" if value.is_integer() else f"{value:.{places}f}"
