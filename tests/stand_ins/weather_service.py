"""A forecast in open-meteo's form, made for a place and a moment of one's own.

The form is that of the service's documentation and of answers that other projects keep; the
weather is made up, as the service cannot be reached from where the tests run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import httpx2

PLACES: Final[Mapping[str, list[dict[str, Any]]]] = {
    "oslo": [
        {
            "id": 3143244,
            "name": "Oslo",
            "latitude": 59.91273,
            "longitude": 10.74609,
            "elevation": 26.0,
            "feature_code": "PPLC",
            "country_code": "NO",
            "timezone": "Europe/Oslo",
            "population": 580000,
            "country": "Norway",
            "admin1": "Oslo",
        }
    ],
    "paris": [
        {
            "name": "Paris",
            "latitude": 48.85341,
            "longitude": 2.3488,
            "country_code": "FR",
            "timezone": "Europe/Paris",
            "country": "France",
            "admin1": "Île-de-France Region",
        },
        {
            "name": "Paris",
            "latitude": 33.66094,
            "longitude": -95.55551,
            "country_code": "US",
            "timezone": "America/Chicago",
            "country": "United States",
            "admin1": "Texas",
        },
    ],
    "chicago": [
        {
            "name": "Chicago",
            "latitude": 41.85003,
            "longitude": -87.65005,
            "country_code": "US",
            "timezone": "America/Chicago",
            "country": "United States",
            "admin1": "Illinois",
        }
    ],
    "greenwich": [
        {
            "name": "Greenwich",
            "latitude": 51.47785,
            "longitude": -0.01176,
            "country_code": "GB",
            "timezone": "Europe/London",
            "country": "United Kingdom",
            "admin1": "England",
        }
    ],
}


_ZONES: Final = {name: ZoneInfo(name) for name in ("Europe/Oslo", "America/Chicago")}
"""They are read here, as a file may not be read while an event loop runs."""


def forecast_body(
    now: datetime, *, days: int = 14, zone: str = "Europe/Oslo", **current: Any
) -> dict[str, Any]:
    """Return a forecast as it is at `now`, an aware moment.

    Each day has 2 degrees at 4 o'clock and 8 at 16 o'clock, and each second one, tomorrow the
    first, rain from 15 to 17 o'clock with a chance of 80 percent.
    """
    here = now.astimezone(_ZONES[zone])
    first = here.date() - timedelta(days=1)
    dates = [first + timedelta(days=at) for at in range(days + 1)]
    wet = [at % 2 == 0 for at in range(days + 1)]
    hours = [(at, hour) for at in range(days + 1) for hour in range(24)]
    rains = [wet[at] and 15 <= hour < 17 for at, hour in hours]
    return {
        "latitude": 59.9,
        "longitude": 10.75,
        "generationtime_ms": 0.2,
        "utc_offset_seconds": int((here.utcoffset() or timedelta()).total_seconds()),
        "timezone": zone,
        "timezone_abbreviation": "GMT+1",
        "elevation": 26.0,
        "current_units": {"time": "iso8601", "interval": "seconds", "temperature_2m": "°C"},
        "current": {
            "time": f"{here:%Y-%m-%dT%H}:{here.minute // 15 * 15:02}",
            "interval": 900,
            "temperature_2m": 5.4,
            "apparent_temperature": 1.2,
            "precipitation": 0.0,
            "weather_code": 3,
            "wind_speed_10m": 12.2,
            "wind_gusts_10m": 28.1,
            "is_day": 1,
            **current,
        },
        "hourly": {
            "time": [f"{dates[at]}T{hour:02}:00" for at, hour in hours],
            "temperature_2m": [_temperature(hour) for _, hour in hours],
            "precipitation_probability": [80 if rain else 5 for rain in rains],
            "precipitation": [1.5 if rain else 0.0 for rain in rains],
            "weather_code": [61 if rain else 3 for rain in rains],
            "wind_speed_10m": [10.0 for _ in hours],
            "wind_gusts_10m": [25.0 for _ in hours],
            "is_day": [int(8 <= hour < 16) for _, hour in hours],
        },
        "daily": {
            "time": [str(day) for day in dates],
            "weather_code": [61 if each else 3 for each in wet],
            "temperature_2m_max": [8.4 for _ in dates],
            "temperature_2m_min": [2.3 for _ in dates],
            "precipitation_sum": [3.0 if each else 0.0 for each in wet],
            "precipitation_probability_max": [80 if each else 5 for each in wet],
            "wind_speed_10m_max": [14.0 for _ in dates],
            "wind_gusts_10m_max": [30.0 for _ in dates],
            "sunrise": [f"{day}T08:21" for day in dates],
            "sunset": [f"{day}T15:40" for day in dates],
        },
    }


def _temperature(hour: int) -> float:
    away = abs(hour - 16)
    return 8.0 - min(away, 24 - away) / 2


def weather_service(
    now: datetime, asked: list[httpx2.Request] | None = None, **forecast: Any
) -> Callable[[httpx2.Request], httpx2.Response]:
    """Return what answers as the service's two addresses do; `forecast` is for `forecast_body`."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        if asked is not None:
            asked.append(request)
        if request.url.path == "/v1/search":
            found = PLACES.get(request.url.params["name"].casefold())
            # Where nothing is found the service leaves the key out.
            body = {"results": found} if found else {}
            return httpx2.Response(200, json={**body, "generationtime_ms": 0.4})
        return httpx2.Response(200, json=forecast_body(now, **forecast))

    return answer
