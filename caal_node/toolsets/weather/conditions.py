"""What the weather codes of the World Meteorological Organization (WMO 4677) mean in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
