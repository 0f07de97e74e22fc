"""The units that people of a country use for the weather."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

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
