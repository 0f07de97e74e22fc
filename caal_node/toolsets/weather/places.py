"""Finds the place that is meant by a name, among those that a geocoder knows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from caal_node.toolsets.http_service import objects_in

NAME_CHARS: Final = 80
_COORDINATES: Final = re.compile(r"\s*(-?\d{1,2}(?:\.\d+)?)\s*[,;]\s*(-?\d{1,3}(?:\.\d+)?)\s*")
_HERE: Final = frozenset(
    {
        *("", "here", "home", "at home", "outside", "my place", "my area", "my town", "my city"),
        *("my location", "our place", "this place", "current location", "the current location"),
        *("local", "nearby", "around here", "none", "null", "default", "user's location"),
    }
)
"""What people and small models write for the home."""
_ALIASES: Final[Mapping[str, str]] = {
    "usa": "us",
    "u.s.": "us",
    "u.s.a.": "us",
    "america": "us",
    "the states": "us",
    "uk": "gb",
    "u.k.": "gb",
    "britain": "gb",
    "great britain": "gb",
    "holland": "nl",
}
"""Names of countries that people say, and that are no name or code of the geocoder's."""
_STATES: Final = frozenset({"US", "CA", "AU"})
"""Countries whose people name a town with its state."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place of the earth. `latitude` and `longitude` are in degrees."""

    name: str
    """It is "" where only coordinates are known."""
    latitude: float
    longitude: float
    region: str = ""
    country: str = ""
    country_code: str = ""

    def called(self, home: Place | None) -> str:
        """Return what people at `home` call it: with its state or its country where that helps."""
        if home is not None and (self.latitude, self.longitude) == (home.latitude, home.longitude):
            return self.name
        if self.country_code in _STATES:
            more = self.region
        else:
            more = "" if home and self.country_code == home.country_code else self.country
        return f"{self.name}, {more}" if more and more != self.name else self.name


def is_here(words: str) -> bool:
    """Say whether words for a place mean the home: none at all, or "here"."""
    return " ".join(words.casefold().split()) in _HERE


def coordinates_in(words: str) -> Place | None:
    """Return the place of "59.91, 10.75", or None where words are no coordinates."""
    if (match := _COORDINATES.fullmatch(words)) is None:
        return None
    latitude, longitude = float(match[1]), float(match[2])
    if abs(latitude) > 90 or abs(longitude) > 180:
        return None
    return Place("", latitude, longitude)


def names_in(words: str) -> Iterator[tuple[str, str]]:
    """Yield what a place may be called, and what it lies in: the likeliest first.

    "Paris, Texas" is Paris in Texas. "Paris Texas" is first a place of that name, as is "New York".
    """
    words = " ".join(words.split())[:NAME_CHARS].strip(" ,.?!")
    name, comma, within = words.partition(",")
    if not comma:
        name, comma, within = words.partition(" in ")
    if comma and name.strip() and within.strip():
        # Of "Paris, Texas, USA" the nearest part says most.
        yield name.strip(), within.split(",")[0].strip()
        return
    yield words, ""
    parts = words.split()
    for count in (1, 2):
        if len(parts) > count:
            yield " ".join(parts[:-count]), " ".join(parts[-count:])


def read_places(body: Mapping[str, Any]) -> list[Place]:
    """Read an answer of open-meteo's geocoder, the likeliest place first."""
    found: list[Place] = []
    for row in objects_in(body.get("results")):
        latitude, longitude = row.get("latitude"), row.get("longitude")
        if isinstance(latitude, int | float) and isinstance(longitude, int | float):
            texts = (
                str(row.get(key) or "")[:NAME_CHARS]
                for key in ("name", "admin1", "country", "country_code")
            )
            name, region, country, code = texts
            found.append(Place(name, float(latitude), float(longitude), region, country, code))
    return found


def choose(places: Sequence[Place], name: str, within: str) -> Place | None:
    """Return the place of that name that lies in `within`: a region, a country, or "" for any."""
    fitting = [each for each in places if not within or _lies_in(each, within)]
    wanted = name.casefold()
    same = [each for each in fitting if each.name.casefold() == wanted]
    return next(iter(same or fitting), None)


def _lies_in(place: Place, within: str) -> bool:
    wanted = within.casefold()
    wanted = _ALIASES.get(wanted, wanted)
    known = (place.region.casefold(), place.country.casefold(), place.country_code.casefold())
    return wanted in known or (len(wanted) > 3 and any(wanted in each for each in known))
