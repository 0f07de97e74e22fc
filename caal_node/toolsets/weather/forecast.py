"""A forecast as data, and how open-meteo's answer is read.

All times are the clocks' at the place, without a zone: that is how the service gives them, and how
people speak of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, cast

from caal_node.core.errors import ToolBroke

HOURS_MAX: Final = 24 * 17
"""Hours that are read: the service gives 16 days at most, and yesterday."""
CURRENT: Final = (
    *("temperature_2m", "apparent_temperature", "precipitation", "weather_code"),
    *("wind_speed_10m", "wind_gusts_10m", "is_day"),
)
HOURLY: Final = (
    *("temperature_2m", "precipitation_probability", "precipitation", "weather_code"),
    *("wind_speed_10m", "wind_gusts_10m", "is_day"),
)
DAILY: Final = (
    *("temperature_2m_max", "temperature_2m_min", "precipitation_sum", "weather_code"),
    *("precipitation_probability_max", "wind_speed_10m_max", "wind_gusts_10m_max"),
    *("sunrise", "sunset"),
)
"""The variables that are asked for, by the service's names."""


@dataclass(frozen=True, slots=True)
class HourForecast:
    """The weather from `at` on for an hour, or at a moment. None where the service has no value."""

    at: datetime
    temperature: float | None = None
    feels_like: float | None = None
    chance: float | None = None
    """The probability of rain or snow in percent."""
    amount: float | None = None
    """Rain, or melted snow, in the unit that was asked for."""
    code: int | None = None
    wind: float | None = None
    gusts: float | None = None
    by_day: bool = True


@dataclass(frozen=True, slots=True)
class DayForecast:
    """The weather of one day."""

    on: date
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    amount: float | None = None
    code: int | None = None
    wind: float | None = None
    gusts: float | None = None
    sunrise: datetime | None = None
    sunset: datetime | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is known of a place's weather."""

    zone: str
    """The place's time zone, such as `Europe/Oslo`."""
    offset_s: int
    """How many seconds its clocks are ahead of UTC now."""
    now: HourForecast
    hours: Sequence[HourForecast]
    days: Sequence[DayForecast]


def read_forecast(body: Mapping[str, Any]) -> Forecast:
    """Read an answer of the service's `/v1/forecast`.

    Raises:
        ToolBroke: it is no forecast.
    """
    hours = [
        HourForecast(
            at,
            temperature=_number(row.get("temperature_2m")),
            chance=_number(row.get("precipitation_probability")),
            amount=_number(row.get("precipitation")),
            code=_code(row.get("weather_code")),
            wind=_number(row.get("wind_speed_10m")),
            gusts=_number(row.get("wind_gusts_10m")),
            by_day=row.get("is_day") != 0,
        )
        for at, row in _rows(body.get("hourly"), HOURLY)
    ]
    days = [
        DayForecast(
            at.date(),
            low=_number(row.get("temperature_2m_min")),
            high=_number(row.get("temperature_2m_max")),
            chance=_number(row.get("precipitation_probability_max")),
            amount=_number(row.get("precipitation_sum")),
            code=_code(row.get("weather_code")),
            wind=_number(row.get("wind_speed_10m_max")),
            gusts=_number(row.get("wind_gusts_10m_max")),
            sunrise=_moment(row.get("sunrise")),
            sunset=_moment(row.get("sunset")),
        )
        for at, row in _rows(body.get("daily"), DAILY)
    ]
    now = _table(body.get("current"))
    at = _moment(now.get("time"))
    if at is None or not hours or not days:
        raise ToolBroke("the weather service sent no forecast.")
    present = HourForecast(
        at,
        temperature=_number(now.get("temperature_2m")),
        feels_like=_number(now.get("apparent_temperature")),
        amount=_number(now.get("precipitation")),
        code=_code(now.get("weather_code")),
        wind=_number(now.get("wind_speed_10m")),
        gusts=_number(now.get("wind_gusts_10m")),
        by_day=now.get("is_day") != 0,
    )
    offset = _number(body.get("utc_offset_seconds")) or 0.0
    return Forecast(str(body.get("timezone") or ""), int(offset), present, hours, days)


def _rows(value: object, names: Sequence[str]) -> Iterator[tuple[datetime, Mapping[str, Any]]]:
    """Yield a row for each time of a table of columns, which may be of different lengths."""
    table = _table(value)
    columns = {name: _column(table.get(name)) for name in names}
    for at, text in enumerate(_column(table.get("time"))[:HOURS_MAX]):
        if (moment := _moment(text)) is not None:
            yield moment, {name: row[at] for name, row in columns.items() if at < len(row)}


def _table(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _column(value: object) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def _number(value: object) -> float | None:
    """Return a number of JSON; one that no thermometer shows is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e6:
        return None
    return float(value)


def _code(value: object) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _moment(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value)[:19]).replace(tzinfo=None)
    except ValueError:
        return None
