"""Quantities in texts: figures with units, times, dates, codes; lengths in a tool's unit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, floor, isclose
from typing import Any, Final, cast

from caal_node.grounding.earlier_results import name_words
from caal_node.grounding.spoken_numbers import (
    GERMAN_LENGTHS,
    UNIT_BEHIND,
    UNITS,
    WORDS,
    Number,
    Unit,
    listed,
    numbers,
)
from caal_node.grounding.spoken_times import Day, Time, clock_times, days, iso_days, spoken_times

# Lengths of time that were said in one unit, and are handed to a tool in another.
#
# "A ninety second countdown" becomes `{"minutes": 90}` with a small model. What a program knows for
# certain is the number that was said, its unit, and the unit that the parameter states. So a value
# that is the said number in another unit becomes what it is in the parameter's, 1.5; where the
# parameter takes whole numbers alone, the model is told what it comes to. A part of a unit that was
# said ("a quarter of an hour") is what a required parameter gets, whatever the model makes of it, a
# number or a text ("30 minutes").
#
# Months and years are left alone, as nobody knows how many days they have. Singular words of a
# parameter are no units: `hour` and `minute` are read off a clock, and `day` off a calendar.

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
TEXT_LENGTH_CHARS: Final = 40
"""Characters of a text that only tells a length: "in about thirty-five minutes from now"."""
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
    values: dict[str, Any] = {
        each.name: str(each.value) if isinstance(arguments[each.name], str) else each.value
        for each in found
    }
    values |= dict(_texts_with_said_part(schema, arguments, request[:REQUEST_CHARS]))
    return {**arguments, **values} if values else arguments


def _texts_with_said_part(
    schema: Mapping[str, Any], arguments: Mapping[str, Any], request: str
) -> Iterator[tuple[str, str]]:
    """Yield the required texts with another length than the one that was said, which is a part of
    a unit: "in 30 minutes" of "a quarter of an hour"."""
    for name in islice(schema.get("required") or (), PARAMETERS_MAX):
        value = arguments.get(name)
        if not isinstance(value, str) or len(value) > TEXT_LENGTH_CHARS:
            continue
        stated = stated_in(value)
        if stated.times or len(stated.figures) != 1 or not _is_length(stated.figures[0]):
            continue
        (given,) = stated.figures
        said = [figure for figure in stated_in(request).figures if _is_length(figure)]
        if len(said) != 1 or said[0].value.is_integer():
            return
        if not _is_same(_seconds(said[0]), _seconds(given)):
            words = request[said[0].start : said[0].end]
            yield name, f"{value[: given.start]}{words}{value[given.end :]}"


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
    said = said or list(_an_hour(request.lower()))
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


TEXT_CHARS: Final = 4_096
"""Characters of one text that are read: four minutes of speech."""
_CODE: Final = re.compile(r"(?<![\w.,:-])\+?\(?\d[\d ()/-]{5,22}\d(?![\w:]|[.,]\d)")
_CODE_DIGITS: Final = 7
"""Digits from which on a row of groups is a telephone number or a code, and no figure."""
_COIN: Final = re.compile(r"[$€£]\s?$")
_PART_OF: Final = re.compile(
    r"\b(?P<part>half an?|(?:a )?quarter of an?|three quarters of an?"
    r"|(?<!and )(?<!and a )(?:half|quarter)(?= hour\b))\s(?P<unit>[a-z]+)"
)
_PARTS: Final = {"h": 0.5, "q": 0.25, "a": 0.25, "t": 0.75}
_AN_HOUR_AND: Final = re.compile(
    r"\b(?:an|a) (?P<unit>hour|minute)(?= and \d| and [a-z]+ (?:min|sec))"
)
_AN_HOUR: Final = re.compile(r"\b(?:for|in) (an hour)\b")
_AND_A_HALF: Final = re.compile(r"\b(?:an?|one) (?P<unit>[a-z]+) and an? (?P<part>half|quarter)\b")
_HALF_BEHIND: Final = re.compile(r" and an? (half|quarter)\b")
_ANYTHING: Final = re.compile(
    r"\d|\b(?:"
    + "|".join((*WORDS["small_numbers"], *WORDS["weekdays"], *WORDS["magnitudes"]))
    + r"|half|quarter|dozen|noon|midday|midnight)"
    + rf"|(?:{'|'.join(GERMAN_LENGTHS['units'].values())})\b"
)
"""What a text has if it states anything. Most texts of results have nothing of it."""
_AND: Final = re.compile(r",? (?:(?:and|und) )?")
_ONES: Final[Mapping[str, int]] = GERMAN_LENGTHS["ones"]
_TEENS: Final[Mapping[str, int]] = GERMAN_LENGTHS["teens"]
_TENS: Final[Mapping[str, int]] = GERMAN_LENGTHS["tens"]
_GERMAN_UNITS: Final = {
    word: UNITS[name]
    for name, spelt in GERMAN_LENGTHS["units"].items()
    for word in spelt.split("|")
}
_ONE, _HALF = "|".join(_ONES), "|".join(GERMAN_LENGTHS["half"])
_GERMAN: Final = re.compile(
    rf"(?<!\w)(?:(?:(?P<with_half>{_ONE})einhalb|(?P<anderthalb>anderthalb)"
    rf"|(?P<digits>\d{{1,6}}(?:[.,]\d{{1,3}})?)"
    rf"|(?:(?P<one>{_ONE})und)?(?P<ten>{'|'.join(_TENS)})"
    rf"|(?P<small>{'|'.join(_TEENS)}|{_ONE}))[ -])?"
    rf"(?:(?P<half>{_HALF}) |(?P<three>drei ?)?(?P<quarter>viertel)[ -]?)?"
    rf"(?P<unit>{'|'.join(_GERMAN_UNITS)})(?!\w)"
)
_BELOW_ZERO: Final = re.compile(r" below (?:zero|freezing)\b")
_HEDGES: Final = tuple(
    (
        name,
        re.compile(rf"(?<!\w)(?:{'|'.join(sorted(listed(key)))})(?: (?:than|a|an|the|of|to))*\s?$"),
    )
    for name, key in (("above", "above"), ("below", "below"), ("about", "approximate"))
)
_BETWEEN: Final = re.compile(r"\bbetween\s\S+(?:\s\S+)?\sand\s$")
_TO: Final = re.compile(r"\s?(?:to|and|or|-|–)\s?")
_HEDGE_CHARS: Final = 28


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with what is said around it. `start` and `end` are its characters and its unit's."""

    start: int
    end: int
    number: Number
    value: float
    step: float = 1.0
    unit: Unit | None = None
    hedge: str = ""
    """ "about", "above" or "below": how the value may lie beside the right one."""


@dataclass(frozen=True, slots=True)
class Code:
    """A telephone number or another row of digits, which is right or wrong as a whole."""

    start: int
    end: int
    digits: str


@dataclass(frozen=True, slots=True)
class Stated:
    """Everything of one text that can be held against a result, each kind in its order."""

    figures: tuple[Figure, ...] = ()
    times: tuple[Time, ...] = ()
    days: tuple[Day, ...] = ()
    codes: tuple[Code, ...] = ()


def stated_in(text: str) -> Stated:
    """Read what the first TEXT_CHARS of a text state; offsets are those of `text`."""
    text = text[:TEXT_CHARS]
    lower = text.lower()
    if _ANYTHING.search(lower) is None:
        return Stated()
    if len(lower) != len(text):  # A letter whose small form is longer would move the offsets.
        lower = "".join(one if len(one.lower()) != 1 else one.lower() for one in text)
    times, dates, codes = list[Time](), list[Day](), list[Code]()
    for day, time in iso_days(lower):
        dates.append(day)
        if time is not None:
            times.append(time)
    rest = _without(lower, dates)
    for match in _CODE.finditer(rest):
        digits = re.sub(r"\D", "", match[0])
        if len(digits) >= _CODE_DIGITS:
            codes.append(Code(match.start(), match.end(), digits))
    rest = _without(rest, codes)
    times += clock_times(rest)
    rest = _without(rest, times)
    named = days(rest)
    dates += named
    rest = _without(rest, [day for day in named if day.weekday is None])
    found = numbers(rest)
    worded = list(spoken_times(rest, found))
    sure = [time for time in worded if time.is_sure]
    left = [number for number in found if not any(_overlap(number, time) for time in sure)]
    parts = [*_single_units(rest), *_parts_of_units(rest), *_german_lengths(rest)]
    figures = _compound(rest, [*parts, *_figures(rest, left)])
    # "Four minutes" is no time of day, whatever stands before it.
    likely = [time for time in worded if not (time.is_sure or _has_unit(time, figures))]
    likely = [time for time in likely if not any(_overlap(time, other) for other in sure)]
    every = (*times, *sure, *likely)
    return Stated(tuple(figures), every, tuple(dates), tuple(codes))


def _overlap(one: Number | Time | Figure, other: Time | Figure) -> bool:
    return one.start < other.end and other.start < one.end


def _has_unit(time: Time, figures: list[Figure]) -> bool:
    return any(figure.unit is not None and _overlap(figure, time) for figure in figures)


def _without(text: str, spans: list[Day] | list[Code] | list[Time]) -> str:
    """Return `text` with a mark in place of what was read, so that offsets stay."""
    for span in spans:
        text = f"{text[: span.start]}{'|' * (span.end - span.start)}{text[span.end :]}"
    return text


def _figures(text: str, found: list[Number]) -> Iterator[Figure]:
    for number in found:
        unit, end = _unit_of(text, number)
        if number.is_bare_one and unit is None:
            continue
        value, step = number.value, number.step
        if unit is not None and (part := _HALF_BEHIND.match(text, end)):
            value, step = value + _PARTS[part[1][0]], 0.1
            end = part.end()
        if below := _BELOW_ZERO.match(text, end):
            value, end = -abs(value), below.end()
        hedge = _hedge(text[max(0, number.start - _HEDGE_CHARS) : number.start])
        yield Figure(number.start, end, number, value, step, unit, hedge)


def _unit_of(text: str, number: Number) -> tuple[Unit | None, int]:
    if number.ordinal:
        return None, number.end
    if coin := _COIN.search(text, 0, number.start):
        return UNITS[coin[0][0]], number.end
    if match := UNIT_BEHIND.match(text, number.end):
        return UNITS[match[1]], match.end()
    return None, number.end


def _hedge(before: str) -> str:
    if _BETWEEN.search(before):
        return "below"
    return next((name for name, pattern in _HEDGES if pattern.search(before)), "")


def _parts_of_units(text: str) -> Iterator[Figure]:
    """Yield "half an hour", "three quarters of an hour", "an hour and a half"."""
    for pattern, whole in ((_PART_OF, 0.0), (_AND_A_HALF, 1.0)):
        for match in pattern.finditer(text):
            unit = UNITS.get(match["unit"])
            if unit is not None and unit.factor:
                value = whole + _PARTS[match["part"][0]]
                number = Number(match.start(), match.end(), value, 0.1, is_word=True)
                hedge = _hedge(text[max(0, match.start() - _HEDGE_CHARS) : match.start()])
                yield Figure(match.start(), match.end(), number, value, 0.1, unit, hedge)


def _german_lengths(text: str) -> Iterator[Figure]:
    """Yield "eine Dreiviertelstunde", "anderthalb Stunden", "fünfundvierzig Minuten"."""
    for match in _GERMAN.finditer(text):
        if not any(match.groups()[:-1]):
            continue  # "die letzte Stunde"
        if match["digits"]:
            value = float(match["digits"].replace(",", "."))
        elif match["ten"]:
            value = float(_TENS[match["ten"]] + _ONES.get(match["one"], 0))
        elif match["anderthalb"] or match["with_half"]:
            value = _ONES.get(match["with_half"], 1) + 0.5
        else:
            value = float({**_ONES, **_TEENS}.get(match["small"], 1))
        value *= 0.5 if match["half"] else 0.25 if match["quarter"] else 1
        value *= 3 if match["three"] else 1
        number = Number(match.start(), match.start("unit"), value, is_word=not match["digits"])
        unit = _GERMAN_UNITS[match["unit"]]
        yield Figure(match.start(), match.end(), number, value, unit=unit)


def _single_units(text: str) -> Iterator[Figure]:
    """Yield "an hour" where minutes follow it; alone it is too often a way to speak."""
    for match in _AN_HOUR_AND.finditer(text):
        number = Number(match.start(), match.end(), 1.0, is_word=True)
        unit = UNITS[match["unit"]]
        yield Figure(match.start(), match.end(), number, 1.0, 1.0, unit)


def _an_hour(text: str) -> Iterator[Figure]:
    for match in _AN_HOUR.finditer(text):
        number = Number(match.start(1), match.end(), 1.0, is_word=True)
        yield Figure(match.start(1), match.end(), number, 1.0, unit=UNITS["hour"])


def _compound(text: str, figures: list[Figure]) -> list[Figure]:
    """Join "two minutes and ten seconds" and "34 euros fifty", and drop what lies in another."""
    figures.sort(key=lambda figure: (figure.start, -figure.end))
    for at, figure in enumerate(figures[1:]):
        before = figures[at]
        if before.unit is None and _TO.fullmatch(text, before.end, figure.start):
            figures[at] = replace(before, unit=figure.unit)  # "380 to 700 kg"
    joined = list[Figure]()
    for figure in figures:
        last = joined[-1] if joined else None
        if last is not None and figure.start < last.end:
            continue
        if last is not None and (both := _joined(text, last, figure)) is not None:
            joined[-1] = both
        else:
            joined.append(figure)
    return joined


def _joined(text: str, one: Figure, other: Figure) -> Figure | None:
    if one.unit is None or _AND.fullmatch(text, one.end, other.start) is None:
        return None
    if one.unit.dimension == "duration" and other.unit is not None:
        if other.unit.dimension != "duration" or other.unit.factor >= one.unit.factor:
            return None
        more = other.value * other.unit.factor / one.unit.factor
        step = other.unit.factor / one.unit.factor
        return replace(one, end=other.end, value=one.value + more, step=step)
    cents = other.unit is None or other.unit.name == "cent"
    if one.unit.dimension == "money" and cents and 0 < other.value < 100 and one.step == 1:
        return replace(one, end=other.end, value=one.value + other.value / 100, step=0.01)
    return None
