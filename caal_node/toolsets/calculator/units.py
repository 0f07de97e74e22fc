"""Units and their exact factors, and amounts of them in words: "5 feet 3 inches", "350 fahrenheit".

The factors are those by which the units are defined (the inch is 2.54 cm, the pound 0.45359237 kg),
so that a conversion is exact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from caal_node.toolsets.calculator.arithmetic import (
    CannotReckon,
    Value,
    bounded,
    check_length,
    reckon,
    spoken,
    with_digits,
)

Measures: TypeAlias = Literal["us", "imperial"]
PARTS_MAX: Final = 6
"""Parts of one amount: "2 hours 5 minutes and 10 seconds" has three."""
NAMED_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class ExactUnit:
    """A unit. A value of it is `value * factor + offset` of its dimension's first one."""

    name: str
    plural: str
    dimension: str
    factor: Fraction
    offset: Fraction = Fraction(0)

    def called(self, value: Value) -> str:
        """Return its name for a value."""
        return self.name if value.number == 1 else self.plural


_TABLE: Final = """
length
meter 1 metre m
kilometer 1000 kilometre km
centimeter 0.01 centimetre cm
millimeter 0.001 millimetre mm
micrometer 0.000001 micrometre micron µm
inch 0.0254 inches in "
foot 0.3048 feet ft '
yard 0.9144 yd
mile 1609.344 mi
nautical_mile 1852 nmi
light_year 9460730472580800 ly
mass
kilogram 1 kilo kg kgs
gram 0.001 gramme g
milligram 0.000001 mg
tonne 1000 metric_ton
pound 0.45359237 lb lbs
ounce 0.028349523125 oz
stone 6.35029318 st stones
volume
liter 1 litre l
milliliter 0.001 millilitre ml
centiliter 0.01 centilitre cl
deciliter 0.1 decilitre dl
cubic_meter 1000 cubic_metre m3 m³
cubic_centimeter 0.001 cubic_centimetre cc cm3 cm³
cubic_foot 28.316846592 cubic_feet ft3
cubic_inch 0.016387064 cubic_inches
area
square_meter 1 square_metre sqm m2 m²
square_kilometer 1000000 square_kilometre km2 km²
square_centimeter 0.0001 square_centimetre cm2 cm²
square_foot 0.09290304 square_feet sqft ft2
square_inch 0.00064516 square_inches
square_yard 0.83612736
square_mile 2589988.110336
hectare 10000 ha
acre 4046.8564224
duration
second 1 sec s
millisecond 0.001 ms
minute 60 min mins
hour 3600 hr hrs h
day 86400
week 604800
year 31557600
speed
kilometer_per_hour 5/18 kilometre_per_hour kmh kph km/h kilometers_an_hour kilometres_an_hour
meter_per_second 1 metre_per_second m/s
mile_per_hour 0.44704 mph miles_an_hour
knot 1852/3600 kn kt
foot_per_second 0.3048 feet_per_second ft/s
energy
joule 1 j
kilojoule 1000 kj
calorie 4.184 cal
kilocalorie 4184 kcal
watt_hour 3600 wh
kilowatt_hour 3600000 kwh
british_thermal_unit 1055.05585262 btu
power
watt 1 w
kilowatt 1000 kw
megawatt 1000000 mw
horsepower 745.69987158227022 hp
pressure
pascal 1 pa
hectopascal 100 hpa
kilopascal 1000 kpa
bar 100000
millibar 100 mbar
atmosphere 101325 atm
pound_per_square_inch 6894.757293168361 psi
data
byte 1 b
kilobyte 1000 kb
megabyte 1000000 mb
gigabyte 1000000000 gb
terabyte 1000000000000 tb
kibibyte 1024 kib
mebibyte 1048576 mib
gibibyte 1073741824 gib
tebibyte 1099511627776 tib
bit 1/8
megabit 125000 mbit
gigabit 125000000 gbit
angle
degree 1
radian 57.29577951308232 rad
turn 360
"""
_MEASURES: Final[Mapping[Measures, str]] = {
    "us": """
volume
gallon 3.785411784 gal
quart 0.946352946 qt
pint 0.473176473 pt
cup 0.2365882365
fluid_ounce 0.0295735295625 floz
tablespoon 0.01478676478125 tbsp
teaspoon 0.00492892159375 tsp
mass
ton 907.18474
""",
    "imperial": """
volume
gallon 4.54609 gal
quart 1.1365225 qt
pint 0.56826125 pt
cup 0.284130625
fluid_ounce 0.0284130625 floz
tablespoon 0.0177581640625 tbsp
teaspoon 0.00591938802083333333 tsp
mass
ton 1016.0469088
""",
}
_PLURALS: Final[Mapping[str, str]] = {
    "inch": "inches",
    "foot": "feet",
    "stone": "stone",
    "horsepower": "horsepower",
    "cubic foot": "cubic feet",
    "cubic inch": "cubic inches",
    "square foot": "square feet",
    "square inch": "square inches",
    "kilometer per hour": "kilometers per hour",
    "meter per second": "meters per second",
    "mile per hour": "miles per hour",
    "foot per second": "feet per second",
    "pound per square inch": "pounds per square inch",
}
_TEMPERATURES: Final = (
    ("degree Celsius", "degrees Celsius", "1", "0", "celsius centigrade c °c degreesc"),
    ("degree Fahrenheit", "degrees Fahrenheit", "5/9", "-160/9", "fahrenheit f °f degreesf"),
    ("kelvin", "kelvin", "1", "-273.15", "kelvin kelvins k"),
)


def _units(measures: Measures) -> dict[str, ExactUnit]:
    """Return the units by their words, without the spaces in them."""
    found = dict[str, ExactUnit]()
    dimension = ""
    for line in (_TABLE + _MEASURES[measures]).split("\n"):
        spelt, _, rest = line.partition(" ")
        if not rest:
            dimension = spelt or dimension
            continue
        factor, *others = rest.split()
        name = spelt.replace("_", " ")
        unit = ExactUnit(name, _PLURALS.get(name, f"{name}s"), dimension, Fraction(factor))
        words = [name, unit.plural, *(other.replace("_", " ") for other in others)]
        for word in words:
            for form in (word, f"{word}s") if len(word) > 3 else (word,):
                found.setdefault(_key(form), unit)
    for name, plural, factor, offset, others in _TEMPERATURES:
        unit = ExactUnit(name, plural, "temperature", Fraction(factor), Fraction(offset))
        for word in (name, plural, *others.split()):
            found[_key(word)] = unit
    return found


def _key(word: str) -> str:
    return re.sub(r"[\s.-]+", "", word.casefold())


UNITS: Final[Mapping[Measures, Mapping[str, ExactUnit]]] = {
    "us": _units("us"),
    "imperial": _units("imperial"),
}
_OF_VOLUME: Final = {"ounce": "fluidounce"}
"""What is meant in a recipe where the other unit is one of volume."""
_PIECE: Final = re.compile(
    r"\s*(?:and\s+|,\s*)?(?P<number>-?\s*(?:\d[\d,]*(?:\.\d+)?(?:\s+\d+)?(?:\s*/\s*\d+)?|\.\d+))"
    r"\s*(?P<unit>[^\d,-][^\d,]*?)\s*(?=,|\d|$|\band\b)"
)
_ONE: Final = re.compile(r"^(?:an?|one) (?=[a-z])")
_MIXED: Final = re.compile(r"^(-?[\d,]+)\s+(\d+)\s*/\s*(\d+)$")
_PARTS_SAID: Final = {"half": "0.5 ", "quarter": "0.25 ", "three quarters": "0.75 "}
_PART: Final = re.compile(r"^(?:an? )?(half|quarter|three quarters)(?: of)?(?: an?)? (?=[a-z])")
_BARE_INCHES: Final = re.compile(r"\b(foot|feet|ft|') ?(\d+(?:\.\d+)?)$")
"""Six foot two."""
_DEGREES: Final = re.compile(r"\bdegrees?\b|°")


@dataclass(frozen=True, slots=True)
class Converted:
    """An amount in its own unit, and in the one that was asked for."""

    amount: str
    """As it was said, with the units' whole names."""
    value: Value
    unit: ExactUnit


def convert(amount: str, to: str, measures: Measures = "us") -> Converted:
    """Convert an amount in words to a unit.

    Raises:
        CannotReckon: a unit is not known, or the two do not measure the same thing.
    """
    known = UNITS[measures]
    wanted = _unit(to, known)
    parts = _parts(amount)
    units = [_unit(word, known) for _, word in parts]
    if wanted.dimension == "volume":
        units = [known[_OF_VOLUME.get(unit.name, _key(unit.name))] for unit in units]
    elif wanted.name in _OF_VOLUME and {unit.dimension for unit in units} == {"volume"}:
        wanted = known[_OF_VOLUME[wanted.name]]
    if wanted.dimension == "temperature":
        other = known["celsius" if wanted.factor != 1 else "fahrenheit"]
        units = [other if unit.name == "degree" else unit for unit in units]
    for unit in units:
        if unit.dimension != wanted.dimension:
            raise CannotReckon(f"{unit.plural} cannot be converted to {wanted.plural}")
    if len(units) > 1 and wanted.dimension == "temperature":
        raise CannotReckon("temperatures cannot be added up")
    total, told = Value(Fraction(0)), list[str]()
    for (number, _), unit in zip(parts, units, strict=True):
        base = bounded(number.number * unit.factor + unit.offset, number)
        total = bounded(total.number + base.number, total, base)
        told.append(f"{spoken(number)} {unit.called(number)}")
    made = bounded((total.number - wanted.offset) / wanted.factor, total)
    return Converted(" ".join(told), made, wanted)


def _parts(amount: str) -> list[tuple[Value, str]]:
    """Return each number of an amount with the words of its unit.

    Raises:
        CannotReckon: it has another form.
    """
    check_length(amount)
    plain = " ".join(amount.casefold().replace("’", "'").split())
    plain = _PART.sub(lambda match: _PARTS_SAID[match[1]], plain)
    plain = with_digits(_ONE.sub("1 ", plain))
    plain = _BARE_INCHES.sub(r"\1 \2 inches", plain)
    found, at = list[tuple[Value, str]](), 0
    while at < len(plain) and len(found) <= PARTS_MAX:
        match = _PIECE.match(plain, at)
        if match is None:
            break
        at = match.end()
        digits = match["number"]
        if (mixed := _MIXED.match(digits.strip())) is not None:
            number = reckon(f"{mixed[1]} + {mixed[2]}/{mixed[3]}")
        else:
            number = reckon(digits)
        found.append((number, match["unit"]))
    if not found or plain[at:].strip() or len(found) > PARTS_MAX:
        raise CannotReckon(f"{amount[:40]!r} is no amount; write it as '5 feet 3 inches'")
    return found


def _unit(words: str, known: Mapping[str, ExactUnit]) -> ExactUnit:
    plain = words.casefold().strip(" .?!")
    for form in (plain, _DEGREES.sub("", plain), plain.removeprefix("in ").removeprefix("to ")):
        if (unit := known.get(_key(form))) is not None:
            return unit
    if plain in ("degree", "degrees", "°"):
        raise CannotReckon("degrees of what? Write Celsius or Fahrenheit")
    raise CannotReckon(f"there is no unit {words[:30]!r}")
