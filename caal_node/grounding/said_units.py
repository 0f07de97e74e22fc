"""Lengths of time that were said in one unit, and are handed to a tool in another.

"A ninety second countdown" becomes `{"minutes": 90}` with a small model. What a program knows for
certain is the number that was said, its unit, and the unit that the parameter states. So a value
that is the said number in another unit becomes what it is in the parameter's, 1.5; where the
parameter takes whole numbers alone, the model is told what it comes to. A part of a unit that was
said ("a quarter of an hour") is what a required parameter gets, whatever the model makes of it.

Months and years are left alone, as nobody knows how many days they have. Singular words of a
parameter are no units: `hour` and `minute` are read off a clock, and `day` off a calendar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil, floor, isclose
from typing import Any, Final, cast

from caal_node.grounding.fact_words import UNITS, Unit
from caal_node.grounding.quantities import Figure, stated_in
from caal_node.grounding.reference_words import name_words
from caal_node.grounding.spoken_numbers import Number, numbers

_LONGEST_S: Final = 604_800
"""Seconds of the longest unit that is always as long as itself, the week."""
_NO_UNIT_OF_NAMES: Final = frozenset({"min", "h"})
"""Words for a minimum and a height as well."""
_OF_NAMES: Final[Mapping[str, Unit]] = {
    **{
        word: unit
        for word, unit in UNITS.items()
        if unit.dimension == "duration"
        and unit.factor <= _LONGEST_S
        and word != unit.name
        and word not in _NO_UNIT_OF_NAMES
    },
    "ms": Unit("millisecond", "duration", 0.001),
    "milliseconds": Unit("millisecond", "duration", 0.001),
}
_UNIT_KEYS: Final = ("unit", "units", "x-unit", "x-units")
_PROSE_CHARS_MIN: Final = 3
"""Characters of a unit in a description: an "s" there is a plural's."""
ABOUT_CHARS: Final = 400
"""Characters of a description in which a unit is looked for."""
REQUEST_CHARS: Final = 400
"""Characters of a request that are read: half a minute of speech, and a few milliseconds."""
FIGURES_MAX: Final = 4
"""Lengths of time that may be meant. Who says more tells a story."""
PARAMETERS_MAX: Final = 32
"""Arguments of one call that are looked at."""
_DECIMAL: Final = re.compile(r"\d{1,9}(?:\.\d{1,6})?")
_VALUE_MAX: Final = 1e12
_DIGITS: Final = 9
"""Digits of a converted value."""


class Misfit(Exception):
    """An argument is a number that was said in another unit, and cannot be converted. `str()` is
    one sentence for the model."""


@dataclass(frozen=True, slots=True)
class _Conversion:
    name: str
    said: str
    value: int | float
    """What was said, in the parameter's unit."""
    fits: bool
    """Whether the parameter takes it."""


def in_own_units(
    schema: Mapping[str, Any], arguments: Mapping[str, Any], request: str
) -> Mapping[str, Any]:
    """Return `arguments` with lengths of time of the person's `request` in the parameters' units.

    What cannot be converted stays; see `refuse_misfits`.
    """
    found = [each for each in _conversions(schema, arguments, request) if each.fits]
    if not found:
        return arguments
    values = {
        each.name: str(each.value) if isinstance(arguments[each.name], str) else each.value
        for each in found
    }
    return {**arguments, **values}


def refuse_misfits(schema: Mapping[str, Any], arguments: Mapping[str, Any], request: str) -> None:
    """Refuse an argument that takes whole numbers, where what was said is no whole number of it.

    Raises:
        Misfit: there is one.
    """
    for each in _conversions(schema, arguments, request):
        if not each.fits:
            raise Misfit(
                f"{each.name}: {each.said!r} was said, which is {each.value} in the unit of "
                f"{each.name}, and that takes whole numbers alone; ask which one to take"
            )


def _conversions(
    schema: Mapping[str, Any], arguments: Mapping[str, Any], request: str
) -> Iterator[_Conversion]:
    """Yield the arguments that are the number of what was said, in another unit."""
    properties = _mapping(schema.get("properties"))
    given: dict[str, float] = {}
    units: dict[str, Unit] = {}
    for name in islice(arguments, PARAMETERS_MAX):
        value, unit = _number(arguments[name]), unit_of(name, _mapping(properties.get(name)))
        if value is not None and unit is not None:
            given[name], units[name] = value, unit
    if not units:
        return
    request = request[:REQUEST_CHARS]
    said = [figure for figure in stated_in(request).figures if _is_length(figure)]
    told = [given[name] * unit.factor for name, unit in units.items()]
    told.append(sum(told))  # an hour and thirty minutes, in two parameters
    left = [one for one in said if not any(_is_same(_seconds(one), each) for each in told)]
    if len(left) > FIGURES_MAX:
        return
    found = numbers(request.lower()) if left else []
    is_part = len(said) == len(units) == 1 and not said[0].value.is_integer()
    for name, unit in units.items():
        takes_parts = not _is_whole(_mapping(properties.get(name)))
        is_needed = name in (schema.get("required") or ())
        for figure in left:
            right = _seconds(figure) / unit.factor
            # A model that rounds has read the figure: with one of each there is no other source.
            rounds = len(said) == len(units) == 1 and given[name] in (floor(right), ceil(right))
            value = _plain(right)
            is_meant = is_part and is_needed and (takes_parts or isinstance(value, int))
            if (
                is_meant
                or _is_from(given[name], figure, found)
                or (rounds and takes_parts and given[name])
            ):
                fits = takes_parts or isinstance(value, int)
                yield _Conversion(name, request[figure.start : figure.end], value, fits)
                break


def unit_of(name: str, about: Mapping[str, Any]) -> Unit | None:
    """Return the unit of time that a parameter's name, schema or description states; None where
    there is none, or more than one."""
    words = name_words(name)
    least = 1 if len(words) > 1 else _PROSE_CHARS_MIN
    named = [_OF_NAMES[word] for word in words if word in _OF_NAMES and len(word) >= least]
    own = [unit.lower() for key in _UNIT_KEYS if isinstance(unit := about.get(key), str)]
    named = named or [UNITS[unit] for unit in own if unit in UNITS]
    if not named:
        prose = name_words(str(about.get("description") or "")[:ABOUT_CHARS])
        named = [_OF_NAMES[w] for w in prose if w in _OF_NAMES and len(w) >= _PROSE_CHARS_MIN]
    units = {unit.name: unit for unit in named}
    only = next(iter(units.values())) if len(units) == 1 else None
    is_time = only is not None and only.dimension == "duration" and 0 < only.factor <= _LONGEST_S
    return only if is_time else None


def _is_length(figure: Figure) -> bool:
    unit = figure.unit
    is_time = unit is not None and unit.dimension == "duration" and 0 < unit.factor <= _LONGEST_S
    return is_time and figure.value > 0


def _seconds(figure: Figure) -> float:
    return figure.value * (figure.unit.factor if figure.unit is not None else 0.0)


def _is_from(value: float, figure: Figure, found: Sequence[Number]) -> bool:
    """Say whether `value` can only be the number of `figure`, or of a part of it: it stands
    nowhere else in the request."""
    inside, outside = {figure.value}, set[float]()
    for number in found:
        within = figure.start <= number.start and number.end <= figure.end
        (inside if within else outside).add(number.value)
    return value in inside and value not in outside


def _number(value: Any) -> float | None:
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _VALUE_MAX else None


def _plain(value: float) -> int | float:
    near = round(value)
    return near if _is_same(value, near) else float(f"{value:.{_DIGITS}g}")


def _is_same(one: float, other: float) -> bool:
    return isclose(one, other, rel_tol=1e-6)


def _is_whole(about: Mapping[str, Any]) -> bool:
    """Say whether a parameter takes whole numbers alone."""
    choices = [*(about.get("anyOf") or ()), *(about.get("oneOf") or ())]
    types = {str(_mapping(one).get("type")) for one in (about, *choices)}
    return "integer" in types and types.isdisjoint({"number", "string"})


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
