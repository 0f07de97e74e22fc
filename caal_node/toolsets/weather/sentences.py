"""The sentences in which a person hears the weather. They are said as they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Final, Literal, TypeAlias

from caal_node.toolsets.weather.outlook import Outlook

# The units that people of a country use for the weather.

UnitSystem: TypeAlias = Literal["metric", "imperial", "british"]
FAHRENHEIT: Final = frozenset(
    {"US", "PR", "GU", "VI", "AS", "MP", "UM", "BS", "KY", "LR", "PW", "FM", "MH", "BZ"}
)
"""Countries, by ISO 3166, where the weather is told in degrees Fahrenheit."""


@dataclass(frozen=True, slots=True)
class Units:
    """One system's units, as the service takes them, and as they are written and said."""

    system: UnitSystem
    request: Mapping[str, str]
    """The service's parameters for them."""
    degrees: str
    scale: str
    """What is said behind the degrees where somebody could think of the other scale."""
    speed: str
    speed_spoken: str
    depth: str
    depth_spoken: str
    strong_wind: float
    """Gusts from which the wind is told of unasked: 50 km/h, a fresh wind that closes umbrellas."""
    depth_step: float
    """Rain below this is too little to be told of: a fifth of a millimeter, or as little."""


METRIC: Final = Units(
    system="metric",
    request={"temperature_unit": "celsius", "wind_speed_unit": "kmh", "precipitation_unit": "mm"},
    degrees="°C",
    scale="Celsius",
    speed="km/h",
    speed_spoken="kilometers per hour",
    depth="mm",
    depth_spoken="millimeters",
    strong_wind=50.0,
    depth_step=0.2,
)
BRITISH: Final = Units(
    system="british",
    request={"temperature_unit": "celsius", "wind_speed_unit": "mph", "precipitation_unit": "mm"},
    degrees="°C",
    scale="Celsius",
    speed="mph",
    speed_spoken="miles per hour",
    depth="mm",
    depth_spoken="millimetres",
    strong_wind=31.0,
    depth_step=0.2,
)
IMPERIAL: Final = Units(
    system="imperial",
    request={
        "temperature_unit": "fahrenheit",
        "wind_speed_unit": "mph",
        "precipitation_unit": "inch",
    },
    degrees="°F",
    scale="Fahrenheit",
    speed="mph",
    speed_spoken="miles per hour",
    depth="in",
    depth_spoken="inches",
    strong_wind=31.0,
    depth_step=0.05,
)
SYSTEMS: Final[Mapping[UnitSystem, Units]] = {
    each.system: each for each in (METRIC, BRITISH, IMPERIAL)
}


def units_of(country: str) -> Units:
    """Return the units of a country by its ISO 3166 code; metric ones where it is not known."""
    if country in FAHRENHEIT:
        return IMPERIAL
    return BRITISH if country == "GB" else METRIC


# What the weather codes of the World Meteorological Organization (WMO 4677) mean in words.

WORDS: Final[Mapping[int, str]] = {
    2: "partly cloudy",
    3: "cloudy",
    45: "fog",
    48: "freezing fog",
    51: "light drizzle",
    53: "drizzle",
    55: "heavy drizzle",
    56: "freezing drizzle",
    57: "freezing drizzle",
    61: "light rain",
    63: "rain",
    65: "heavy rain",
    66: "freezing rain",
    67: "freezing rain",
    71: "light snow",
    73: "snow",
    75: "heavy snow",
    77: "light snow",
    80: "light showers",
    81: "showers",
    82: "heavy showers",
    85: "snow showers",
    86: "heavy snow showers",
    95: "thunderstorms",
    96: "thunderstorms with hail",
    99: "thunderstorms with heavy hail",
}
"""A larger code is worse weather, as open-meteo takes it for a day's."""
_DRY: Final = 50
_SNOW: Final = frozenset({71, 73, 75, 77, 85, 86})
_SKIES: Final[Mapping[int, tuple[str, str]]] = {
    0: ("sunny", "clear"),
    1: ("mostly sunny", "mostly clear"),
}
"""By day and by night."""


def words_of(code: int | None, *, by_day: bool = True) -> str:
    """Return a code in words, "" for one that is not known."""
    if code is None:
        return ""
    if code in _SKIES:
        return _SKIES[code][0 if by_day else 1]
    return WORDS.get(code, "")


def is_sky(code: int | None) -> bool:
    """Say whether the words for a code say how it is ("cloudy"), and not what comes ("rain")."""
    return code is not None and code < min(45, _DRY)


def falls(code: int | None) -> str:
    """Return what comes down by a code: "rain", "snow", or "" for nothing."""
    if code is None or code < _DRY:
        return ""
    return "snow" if code in _SNOW else "rain"


# What people call a span of time, seen from the present: "this afternoon", "on Friday".

_PARTS: Final[Mapping[tuple[int, int], str]] = {
    (6, 12): "morning",
    (12, 14): "lunchtime",
    (12, 18): "afternoon",
    (18, 24): "evening",
}
"""The parts of a day by their hours."""
_WEEK: Final = 7
_NEAR: Final = {-1: "yesterday", 0: "today", 1: "tomorrow"}


def day_name(day: date, today: date) -> str:
    """Return what a day is called: "today", "on Friday", or "on Friday, December 4"."""
    ahead = (day - today).days
    if (near := _NEAR.get(ahead)) is not None:
        return near
    if 0 < ahead < _WEEK:
        return f"on {day:%A}"
    return f"on {day:%A, %B} {day.day}"


def span_name(outlook: Outlook, today: date) -> str:
    """Return what the span of an outlook is called, as it stands at the end of a sentence."""
    day = day_name(outlook.start.date(), today)
    if outlook.kind == "now":
        return "right now"
    if outlook.kind == "day":
        return day
    if outlook.kind == "time":
        return f"at {clock_time(outlook.start)}" + ("" if day == "today" else f" {day}")
    if (part := _part_of(outlook)) is None:
        span = f"from {clock_time(outlook.start)} to {clock_time(outlook.end)}"
        return span if day == "today" else f"{day} {span}"
    if day == "today":
        return "tonight" if part == "evening" else f"this {part}"
    return f"{day.split(',')[0]} {part}" if "," not in day else f"{day}, in the {part}"


def whole_days(outlooks: Sequence[Outlook], today: date) -> str:
    """Return what the days from the first to the last of `outlooks` are called."""
    first, last = (_plain_day(each.start.date(), today) for each in (outlooks[0], outlooks[-1]))
    return f"from {first} to {last}"


def listed_days(outlooks: Sequence[Outlook], today: date) -> str:
    """Return the names of days as a list: "Monday, Wednesday and Friday"."""
    names = [_plain_day(each.start.date(), today) for each in outlooks]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _plain_day(day: date, today: date) -> str:
    near = _NEAR.get((day - today).days)
    return near or (f"{day:%A}" if 0 < (day - today).days < 2 * _WEEK else f"{day:%B} {day.day}")


def clock_time(at: datetime) -> str:
    """Return a time of day as it is said: "5 PM", "8:21 AM", "noon"."""
    if at.minute == 0 and at.hour in (0, 12):
        return "noon" if at.hour else "midnight"
    minutes = f":{at.minute:02}" if at.minute else ""
    return f"{at.hour % 12 or 12}{minutes} {'PM' if at.hour >= 12 else 'AM'}"


def _part_of(outlook: Outlook) -> str | None:
    midnight = datetime.combine(outlook.start.date(), datetime.min.time())
    hours = [(each - midnight).total_seconds() / 3600 for each in (outlook.start, outlook.end)]
    return _PARTS.get((round(hours[0]), round(hours[1]))) if hours == [*map(round, hours)] else None


About: TypeAlias = Literal["everything", "rain", "temperature", "wind", "sun"]
DAYS_SPOKEN: Final = 3
"""Days that are told one by one; nobody keeps more in mind."""
_NOTED_CHANCE: Final = 20
"""Percent from which rain is spoken of; below it nobody takes an umbrella."""
_LIKELY: Final = 55
_SMALL_DEPTH: Final = 2
"""Millimeters or inches of rain below which a tenth is said."""
_FELT: Final = 3
"""Degrees by which it has to feel colder or warmer for that to be said."""


@dataclass(frozen=True, slots=True)
class Telling:
    """How the weather is told: where, in which units, and seen from which day."""

    place: str
    """It is "" where the place goes without saying."""
    units: Units
    today: date
    with_scale: bool = False
    """Whether the scale of the degrees is said."""

    def say(self, outlook: Outlook, about: About) -> str:
        """Return the sentence about one outlook."""
        match about:
            case "rain":
                return self._rain(outlook)
            case "temperature":
                return self._temperature(outlook)
            case "wind":
                return self._wind(outlook)
            case "sun":
                return self._sun(outlook)
            case _:
                return self._now(outlook) if outlook.kind == "now" else self._outlook(outlook)

    def say_days(self, days: Sequence[Outlook], about: About) -> str:
        """Return the sentences about several days: one for each, or one for all where they are
        more than anybody keeps in mind."""
        if len(days) > DAYS_SPOKEN:
            return self._all(days)
        if about in ("wind", "sun"):
            return " ".join(self.say(each, about) for each in days)
        told = [self._short(each, about) for each in days]
        return " ".join([f"The weather{self._in()}.", *told])

    def row(self, outlook: Outlook) -> dict[str, Any]:
        """Return an outlook as data, in which each figure has its unit."""
        when = f"{outlook.start:%A} {outlook.start.day} {outlook.start:%B %Y}"
        if outlook.kind in ("now", "time"):
            when += f", {clock_time(outlook.start)}"
        elif outlook.kind == "hours":
            when += f", {clock_time(outlook.start)} to {clock_time(outlook.end)}"
        degrees, speed = self.units.degrees, self.units.speed
        row = {
            "when": when,
            "weather": words_of(outlook.code, by_day=outlook.by_day),
            "temperature": _with(outlook.low, degrees) if outlook.low == outlook.high else "",
            "low": _with(outlook.low, degrees) if outlook.low != outlook.high else "",
            "high": _with(outlook.high, degrees) if outlook.low != outlook.high else "",
            "feels_like": _with(outlook.feels_like, degrees),
            "chance_of_rain": _with(outlook.chance, "%"),
            "rain": f"{outlook.amount:g} {self.units.depth}" if outlook.amount else "",
            "wind": _with(outlook.wind, speed),
            "gusts": _with(outlook.gusts, speed),
            "sunrise": clock_time(outlook.sunrise) if outlook.sunrise else "",
            "sunset": clock_time(outlook.sunset) if outlook.sunset else "",
        }
        return {name: value for name, value in row.items() if value}

    def _now(self, now: Outlook) -> str:
        what, words = falls(now.code), words_of(now.code, by_day=now.by_day)
        degrees = self._degrees(now)
        if is_sky(now.code) and words:
            said = f"It's {degrees} and {words}{self._in()}"
        else:
            said = f"It's {degrees}{self._in()}" + (f", with {words}" if words else "")
        if (felt := now.feels_like) is not None and now.low is not None:
            apart = round(felt) - round(now.low)
            if abs(apart) >= _FELT:
                said += f", and it feels like {_figure(felt)}"
        said += self._strong_wind(now)
        if not what and (now.chance or 0) >= _LIKELY:
            said += f". {_capital(_rain_word(now))} is likely in the next hours"
        return f"{said}."

    def _outlook(self, each: Outlook) -> str:
        words = words_of(each.code, by_day=each.by_day)
        told = [part for part in (words, self._range(each)) if part]
        if (chance := self._chance(each)) is not None:
            told.append(f"with {chance}")
        said = f"{_capital(span_name(each, self.today))}{self._in()}: {', '.join(told)}"
        return f"{said}{self._strong_wind(each)}."

    def _short(self, each: Outlook, about: About) -> str:
        words = words_of(each.code, by_day=each.by_day)
        told = {
            "temperature": [self._range(each)],
            "rain": [self._chance(each) or "no rain"],
        }.get(about, [words, self._range(each)])
        day = day_name(each.start.date(), self.today).removeprefix("on ")
        return f"{_capital(day)}: {', '.join(part for part in told if part)}."

    def _all(self, days: Sequence[Outlook]) -> str:
        lows = [each.low for each in days if each.low is not None]
        highs = [each.high for each in days if each.high is not None]
        span = replace(days[0], low=min(lows, default=None), high=max(highs, default=None))
        wet = [each for each in days if (each.chance or 0.0) >= _LIKELY]
        name = _capital(whole_days(days, self.today))
        rain = f"rain is likely {listed_days(wet, self.today)}" if wet else "no rain is likely"
        if len(wet) == len(days):
            rain = "rain is likely every day"
        return f"{name}{self._in()}: {self._range(span)}, and {rain}."

    def _rain(self, each: Outlook) -> str:
        what, when = _rain_word(each), span_name(each, self.today)
        if each.kind == "now":
            if falls(each.code) and each.amount != 0:
                return f"Yes, there's {words_of(each.code)}{self._in()} {when}."
            if each.chance is None or each.chance < _NOTED_CHANCE:
                return f"No, it's dry{self._in()}, and no rain is expected in the next hours."
            return (
                f"It's dry{self._in()} {when}, with {_odds(each.chance)} of {what} in the next "
                "hours."
            )
        if each.end <= datetime.combine(self.today, datetime.min.time()):
            fell = f"{self._depth(each)} of {what} fell" if self._is_wet(each) else "It was dry"
            return f"{_capital(fell)} {when}{self._in()}."
        chance = each.chance if each.chance is not None else (100 if falls(each.code) else 0)
        if chance < _NOTED_CHANCE:
            return f"No rain is expected {when}{self._in()}."
        hour = f", most likely around {clock_time(each.wettest)}" if each.wettest else ""
        odds = _odds(chance)
        if chance < _LIKELY:
            return f"There's {odds} of {what} {when}{self._in()}{hour}."
        depth = f", up to {self._depth(each)}" if self._is_wet(each) else ""
        return f"{_capital(what)} is likely {when}{self._in()}: {odds}{depth}{hour}."

    def _temperature(self, each: Outlook) -> str:
        if each.kind == "now":
            felt = each.feels_like
            apart = 0 if felt is None or each.low is None else round(felt) - round(each.low)
            more = f", and it feels like {_figure(felt or 0)}" if abs(apart) >= _FELT else ""
            return f"It's {self._degrees(each)}{self._in()}{more}."
        return f"{_capital(span_name(each, self.today))}{self._in()}: {self._range(each)}."

    def _wind(self, each: Outlook) -> str:
        if each.wind is None:
            return f"I don't know the wind{self._in()} {span_name(each, self.today)}."
        most = "" if each.kind in ("now", "time") else "up to "
        said = f"{most}{round(each.wind)} {self.units.speed_spoken}"
        if each.gusts is not None and round(each.gusts) > round(each.wind):
            said += f", with gusts of {round(each.gusts)}"
        return f"{_capital(span_name(each, self.today))} the wind{self._in()} is {said}."

    def _sun(self, each: Outlook) -> str:
        if each.sunrise is None or each.sunset is None:
            return f"I don't know when the sun rises{self._in()}."
        day = day_name(each.start.date(), self.today)
        return (
            f"{_capital(day)} the sun rises{self._in()} at {clock_time(each.sunrise)} and sets at "
            f"{clock_time(each.sunset)}."
        )

    def _in(self) -> str:
        return f" in {self.place}" if self.place else ""

    def _here(self, otherwise: str) -> str:
        return f"in {self.place}" if self.place else otherwise

    def _degrees(self, each: Outlook) -> str:
        if each.low is None:
            return "an unknown temperature"
        scale = f" {self.units.scale}" if self.with_scale else ""
        return f"{_degree_word(round(each.low))}{scale}"

    def _range(self, each: Outlook) -> str:
        if each.low is None or each.high is None:
            return ""
        low, high = round(each.low), round(each.high)
        if low == high:
            return f"about {self._degrees(each)}"
        scale = f" {self.units.scale}" if self.with_scale else ""
        return f"between {_figure(low)} and {_degree_word(high)}{scale}"

    def _chance(self, each: Outlook) -> str | None:
        if each.chance is None or (each.chance < _NOTED_CHANCE and not falls(each.code)):
            return None
        return f"{_odds(each.chance)} of {_rain_word(each)}"

    def _strong_wind(self, each: Outlook) -> str:
        if each.gusts is None or each.gusts < self.units.strong_wind:
            return ""
        return f", with gusts of {round(each.gusts)} {self.units.speed_spoken}"

    def _is_wet(self, each: Outlook) -> bool:
        return (each.amount or 0.0) >= self.units.depth_step

    def _depth(self, each: Outlook) -> str:
        amount = each.amount or 0.0
        figure = f"{amount:.1f}" if amount < _SMALL_DEPTH else f"{amount:.0f}"
        return f"{figure.removesuffix('.0')} {self.units.depth_spoken}"


def _rain_word(each: Outlook) -> str:
    return falls(each.code) or "rain"


def _odds(chance: float) -> str:
    figure = round(chance)
    article = "an" if figure in (8, 11, 18) or 80 <= figure < 90 else "a"
    return f"{article} {figure} percent chance"


def _figure(number: float) -> str:
    """Return a whole number as it is said: not every voice reads a minus."""
    return f"minus {-round(number)}" if round(number) < 0 else f"{round(number)}"


def _degree_word(number: int) -> str:
    return f"{_figure(number)} degree" + ("" if abs(number) == 1 else "s")


def _with(value: float | None, unit: str) -> str:
    return "" if value is None else f"{round(value)} {unit}"


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
