"""The toolset `weather`: how it is and how it will be, at home and anywhere, by open-meteo.com.

The service needs no key and no account.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo

from livekit.agents import RunContext
from pydantic import AfterValidator, Field

from caal_node.core.addresses import server_url
from caal_node.core.errors import InvalidArguments, ToolBroke
from caal_node.policy.heard_words import plain, stems
from caal_node.tools.caller_of_call import request_of
from caal_node.tools.source import VerbatimResult
from caal_node.toolsets.base import ConfiguredToolset, ToolsetOptions, ToolsetServices, tool
from caal_node.toolsets.http_service import (
    HttpService,
    LateClient,
    ServiceWords,
    objects_in,
    spoken,
)
from caal_node.toolsets.weather.outlook import (
    CURRENT,
    DAILY,
    HOURLY,
    Forecast,
    Outlook,
    outlooks,
    present,
    read_forecast,
)
from caal_node.toolsets.weather.sentences import (
    SYSTEMS,
    About,
    Telling,
    Units,
    UnitSystem,
    units_of,
)
from caal_node.toolsets.when import When, asked_when, read_when

# Asks open-meteo for places and forecasts, and keeps what it said for a while.

FORECAST_URL: Final = "https://api.open-meteo.com"
GEOCODING_URL: Final = "https://geocoding-api.open-meteo.com"
ASK_S: Final = 6.0
"""Seconds for one answer. A question about a new place takes two."""
DAYS_AHEAD: Final = 14
"""Days of a forecast. The service has 16; of the last ones it knows little."""
CANDIDATES: Final = 10
"""Places of one name that are looked through."""
FRESH: Final = timedelta(minutes=15)
"""How long a forecast is used: the service's present is that old anyway."""
PLACES_MAX: Final = 64
FORECASTS_MAX: Final = 16
WORDS: Final = ServiceWords(
    unreachable="I can't reach the weather service right now.",
    too_often="The weather service wants a pause. Please ask me again later.",
    refused="The weather service doesn't let me in. Its settings need a look.",
    broken="The weather service gave me nothing that I can use.",
)


class OpenMeteo:
    """The service, or one of the owner's own at other addresses.

    Args:
        now: Returns the present with its zone.
    """

    def __init__(
        self,
        client: LateClient,
        now: Callable[[], datetime],
        *,
        forecast_url: str = FORECAST_URL,
        geocoding_url: str = GEOCODING_URL,
    ) -> None:
        self._forecasts = HttpService(client, "the weather service", WORDS, timeout_s=ASK_S)
        self._geocoder = HttpService(client, "the weather's geocoder", WORDS, timeout_s=ASK_S)
        self._forecast_url = f"{forecast_url}/v1/forecast"
        self._search_url = f"{geocoding_url}/v1/search"
        self._now = now
        self._places: OrderedDict[str, Place] = OrderedDict()
        self._kept: OrderedDict[tuple[float, float, str], tuple[datetime, Forecast]] = OrderedDict()

    async def place(self, words: str) -> Place:
        """Return the place that words name, with or without its region or country.

        Raises:
            InvalidArguments: there is none.
            ToolFailure: the service gives no answer.
        """
        if (known := coordinates_in(words) or self._places.get(words.casefold())) is not None:
            return known
        for name, within in names_in(words):
            given = {"name": name, "count": CANDIDATES, "language": "en", "format": "json"}
            found = read_places(await self._geocoder.get(self._search_url, params=given))
            if (place := choose(found, name, within)) is not None:
                self._places[words.casefold()] = place
                while len(self._places) > PLACES_MAX:
                    self._places.popitem(last=False)
                return place
        failure = InvalidArguments(f"no place is called {words[:40]!r}.")
        raise spoken(failure, f"I don't know a place called {words[:40]}.")

    async def forecast(self, place: Place, units: Units) -> Forecast:
        """Return the weather of a place from yesterday to DAYS_AHEAD.

        Raises:
            ToolFailure: the service gives no answer.
        """
        key = (place.latitude, place.longitude, units.system)
        at = self._now()
        if (kept := self._kept.get(key)) is not None and abs(at - kept[0]) < FRESH:
            return kept[1]
        given: dict[str, str | int | float] = {
            "latitude": place.latitude,
            "longitude": place.longitude,
            "current": ",".join(CURRENT),
            "hourly": ",".join(HOURLY),
            "daily": ",".join(DAILY),
            "timezone": "auto",
            "past_days": 1,
            "forecast_days": DAYS_AHEAD,
            **units.request,
        }
        body = await self._forecasts.get(self._forecast_url, params=given)
        try:
            found = read_forecast(body)
        except ToolBroke as error:
            raise spoken(error, WORDS.broken) from None
        self._kept[key] = (at, found)
        self._kept.move_to_end(key)
        while len(self._kept) > FORECASTS_MAX:
            self._kept.popitem(last=False)
        return found


# Finds the place that is meant by a name, among those that a geocoder knows.

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


# What a person's own words say of the place, the time and the subject of their question.
#
# A small model leaves out a place that was named, or writes "today" for "tonight", and the answer
# is then about another place or time. The words that it answers say so, and they go before it.

_NAME: Final = r"[^\W\d_a-z][\w'’.-]*[\w]"
_PLACE: Final = re.compile(
    rf"\b(?:in|at|for|near|around|of) ({_NAME}(?:(?:, | (?:de |la |of |the |upon |am )?){_NAME})*)"
)
_TIMES: Final = stems(
    """Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May
    June July August September October November December Christmas Easter Today Tonight Tomorrow"""
)
_SUBJECTS: Final[Mapping[About, frozenset[str]]] = {
    "rain": stems("rain rainy umbrella snow snowing wet dry shower drizzle raincoat hail"),
    "temperature": stems("temperature cold warm hot degrees chilly freezing coat jacket"),
    "wind": stems("wind windy gusts breezy stormy"),
    "sun": stems("sunset sunrise"),
}
_SUN: Final = re.compile(r"\bsun (?:\w+ )?(?:set|rise|go|come)|\bget(?:s|ting)? (?:dark|light)\b")


def place_said(request: str) -> str:
    """Return the place that a request names ("in New York"), by its capitals; "" for none."""
    for match in _PLACE.finditer(request):
        words = match[1].rstrip(".?!")
        if not stems(words.split()[0]) <= _TIMES:
            return words
    return ""


def time_said(request: str, given: str, now: datetime) -> When | None:
    """Return the time that a request says, where it says it better than `given`, a model's words.

    They are believed where the person said them, unless the request tells more exactly: "tomorrow"
    of "tomorrow afternoon".
    """
    said = read_when(request, now) if request else None
    if said is None or plain(given) not in plain(request):
        return said
    meant = read_when(given, now)
    is_within = meant is not None and meant.start <= said.start and said.end <= meant.end
    return said if is_within else None


def subject_said(request: str) -> About:
    """Return what a request asks for in particular, or "everything"."""
    if _SUN.search(plain(request)):
        return "sun"
    asked = stems(request)
    found: list[About] = [subject for subject, words in _SUBJECTS.items() if asked & words]
    return found[0] if len(found) == 1 else "everything"


# The toolset itself.

TOO_FAR: Final = "I only know the weather from yesterday to two weeks ahead."
WHICH_PLACE: Final = "For which place?"
_NOW: Final = frozenset(
    {"", "now", "right now", "currently", "at the moment", "current", "present"}
)


def _address(text: str) -> str:
    return server_url(text, ("http", "https"))


Address = Annotated[str, AfterValidator(_address)]


class WeatherOptions(ToolsetOptions):
    """The table `[toolsets.weather]`."""

    home: str = Field(
        default="",
        max_length=80,
        description="Your town, such as Oslo or Springfield, Illinois; or 59.91, 10.75",
    )
    units: UnitSystem | Literal["auto"] = "auto"
    """What people use at home, or a system for every place."""
    forecast_url: Address = FORECAST_URL
    """The address of open-meteo, or of the owner's own."""
    geocoding_url: Address = GEOCODING_URL


class Weather(ConfiguredToolset):
    """The weather by open-meteo.

    Args:
        client: Asks the service in place of a client of its own.
    """

    NAME = "weather"
    SUMMARY = "Tells the weather now and for two weeks, without a key (open-meteo.com)."
    Options = WeatherOptions

    def __init__(
        self,
        options: WeatherOptions | None = None,
        services: ToolsetServices | None = None,
        *,
        client: LateClient | None = None,
    ) -> None:
        options = options or WeatherOptions()
        super().__init__(options, services)
        self._home = options.home.strip()
        self._system: UnitSystem | Literal["auto"] = options.units
        self._client = client or LateClient(timeout_s=ASK_S)
        self._service = OpenMeteo(
            self._client,
            self.services.now,
            forecast_url=options.forecast_url,
            geocoding_url=options.geocoding_url,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await super().aclose()
        await self._client.aclose()

    async def check(self) -> str:
        """Look the home up, and ask for its weather."""
        try:
            if not self._home:
                place = await self._service.place("Greenwich")
                await self._service.forecast(place, units_of(place.country_code))
                return "open-meteo answers; no home is set, so people have to name a place"
            home = await self._service.place(self._home)
            found = await self._service.forecast(home, self._units(home, home))
        finally:
            await self._client.aclose()
        said = Telling(home.name, self._units(home, home), found.now.at.date())
        parts = dict.fromkeys((home.name, home.region, home.country))
        where = ", ".join(filter(None, parts)) or self._home
        return f"home is {where}: {said.say(present(found), 'everything')}"

    @tool("read")
    async def get_weather(
        self,
        context: RunContext[Any],
        place: str = "",
        when: str = "now",
        about: About = "everything",
    ) -> VerbatimResult:
        """Tell the weather or the forecast: warm or cold, rain, snow, wind, umbrella, sunset.

        Example: what's the weather like -> {}
        Example: is an umbrella needed in Rome -> {"place": "Rome", "about": "rain"}
        Example: how cold is it on friday night -> {"when": "friday night", "about": "temperature"}

        Args:
            place: The town that was named. Leave it out for home.
            when: The time in the person's words, such as tonight or saturday.
            about: What was asked for.
        """
        return await self.tell(place, when, about, request=request_of(context))

    async def tell(
        self,
        place: str = "",
        when: str = "now",
        about: About = "everything",
        *,
        request: str = "",
    ) -> VerbatimResult:
        """Return the weather as data and as a sentence.

        Args:
            request: The person's own words, which say a place or a time better than a small model.

        Raises:
            InvalidArguments: there is no such place or time.
            ToolFailure: the service gives no answer.
        """
        if is_here(place):
            place = place_said(request)
        if about == "everything":
            about = subject_said(request)
        where, home = await self._places(place)
        units = self._units(where, home)
        forecast = await self._service.forecast(where, units)
        now = self.services.now().astimezone(await asyncio.to_thread(_zone_of, forecast))
        found, goes_on = self._asked(forecast, when, request, now)
        # A guest of another country would take degrees for their own.
        with_scale = where is not home and units != units_of(where.country_code)
        telling = Telling(where.called(home), units, now.date(), with_scale or home is None)
        rows = [telling.row(each) for each in found]
        value = {"place": ", ".join(filter(None, (where.name, where.country))) or "home"}
        if len(found) == 1:
            return VerbatimResult(value | rows[0], telling.say(found[0], about))
        said = telling.say_days(found, about)
        return VerbatimResult({**value, "days": rows}, said + goes_on)

    async def _places(self, words: str) -> tuple[Place, Place | None]:
        """Return the place that is meant, and the home.

        Raises:
            InvalidArguments: nobody named a place, and no home is set.
        """
        home = await self._service.place(self._home) if self._home else None
        if not is_here(words):
            there = await self._service.place(words)
            is_home = home is not None and there == home
            return (home, home) if is_home and home is not None else (there, home)
        if home is None:
            failure = InvalidArguments("place is missing, as no home is set; ask for which place.")
            raise spoken(failure, WHICH_PLACE)
        return home, home

    def _units(self, place: Place, home: Place | None) -> Units:
        if self._system != "auto":
            return SYSTEMS[self._system]
        return units_of((home or place).country_code)

    def _asked(
        self, forecast: Forecast, when: str, request: str, now: datetime
    ) -> tuple[list[Outlook], str]:
        """Return the weather of the time that is asked for, and what is said if it is cut short.

        Raises:
            InvalidArguments: the words say no time, or one that no forecast has.
        """
        asked = time_said(request, when, now)
        if asked is None and " ".join(when.casefold().split()) in _NOW:
            return [present(forecast)], ""
        asked = asked or asked_when("when", when, now)
        if not (found := outlooks(forecast, asked)):
            raise spoken(InvalidArguments("the forecast does not reach that far."), TOO_FAR)
        last = forecast.days[-1].on
        goes_on = asked.kind == "days" and asked.end.date() > last + timedelta(days=1)
        return found, f" I know no further than {last:%B} {last.day}." if goes_on else ""


def _zone_of(forecast: Forecast) -> tzinfo:
    """Return a place's time zone; where its name is not known here, the hours it is ahead now."""
    try:
        return ZoneInfo(forecast.zone)
    except (OSError, ValueError, KeyError):
        return timezone(timedelta(seconds=forecast.offset_s))
