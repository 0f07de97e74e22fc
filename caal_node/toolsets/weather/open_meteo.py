"""Asks open-meteo for places and forecasts, and keeps what it said for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from caal_node.core.errors import InvalidArguments, ToolBroke
from caal_node.toolsets.http_service import HttpService, LateClient, ServiceWords, spoken
from caal_node.toolsets.weather.forecast import CURRENT, DAILY, HOURLY, Forecast, read_forecast
from caal_node.toolsets.weather.places import (
    Place,
    choose,
    coordinates_in,
    names_in,
    read_places,
)
from caal_node.toolsets.weather.units import Units

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
