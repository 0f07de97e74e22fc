"""Takes out of a forecast what somebody asks for: a moment, some hours, a day, several days."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Final, Literal, TypeAlias, cast

from caal_node.core.errors import ToolBroke
from caal_node.toolsets.when import When

# A forecast as data, and how open-meteo's answer is read.
#
# All times are the clocks' at the place, without a zone: that is how the service gives them, and
# how people speak of them.

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


Kind: TypeAlias = Literal["now", "time", "hours", "day"]
HOUR: Final = timedelta(hours=1)
SOON: Final = timedelta(minutes=30)
"""How far from the present a moment still is the present."""
_QUARTER: Final = 15
"""Minutes: a time of day that somebody says is mostly a multiple of them."""
SOON_HOURS: Final = 3
"""Hours that "is it going to rain" is about where nobody says when."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """The weather of one span of time. The units are those of the forecast."""

    kind: Kind
    start: datetime
    """By the place's clocks, as are all times here."""
    end: datetime
    low: float | None = None
    high: float | None = None
    feels_like: float | None = None
    chance: float | None = None
    """The highest probability of rain or snow of its hours, in percent."""
    amount: float | None = None
    code: int | None = None
    wind: float | None = None
    gusts: float | None = None
    by_day: bool = True
    wettest: datetime | None = None
    """When rain is likeliest, where that is not all the time."""
    sunrise: datetime | None = None
    sunset: datetime | None = None


def present(forecast: Forecast) -> Outlook:
    """Return the weather now, with the chance of rain in the next hours and today's sun."""
    now = forecast.now
    soon = [each for each in forecast.hours if now.at - HOUR < each.at < now.at + SOON_HOURS * HOUR]
    day = next((each for each in forecast.days if each.on == now.at.date()), None)
    return Outlook(
        "now",
        now.at,
        now.at,
        low=now.temperature,
        high=now.temperature,
        feels_like=now.feels_like,
        chance=_most(each.chance for each in soon),
        amount=now.amount,
        code=now.code,
        wind=now.wind,
        gusts=now.gusts,
        by_day=now.by_day,
        sunrise=day and day.sunrise,
        sunset=day and day.sunset,
    )


def outlooks(forecast: Forecast, asked: When) -> list[Outlook]:
    """Return what the forecast says of the span that is asked for; nothing where it ends before.

    Whole days are one outlook each, everything else is one.
    """
    start, end = (each.replace(tzinfo=None) for each in (asked.start, asked.end))
    if asked.kind == "days":
        return [
            _of_day(day, forecast)
            for day in forecast.days
            if start.date() <= day.on and datetime.combine(day.on, datetime.min.time()) < end
        ]
    if asked.kind == "time":
        if abs(start - forecast.now.at) < SOON:
            return [present(forecast)]
        hours = [each for each in forecast.hours if each.at <= start < each.at + HOUR]
        if start.minute % _QUARTER:  # "in three hours" is meant to the hour
            start = end = (start + SOON).replace(minute=0, second=0, microsecond=0)
    else:
        hours = [each for each in forecast.hours if start - HOUR < each.at < end]
    return [_of_hours(hours, asked.kind, start, end, forecast)] if hours else []


def _of_day(day: DayForecast, forecast: Forecast) -> Outlook:
    start = datetime.combine(day.on, datetime.min.time())
    hours = [each for each in forecast.hours if each.at.date() == day.on]
    if day.on == forecast.now.at.date():
        # What is over is not asked for.
        left = [each for each in hours if each.at > forecast.now.at - HOUR]
        of_hours = _of_hours(left, "day", start, start + timedelta(days=1), forecast)
        return replace(of_hours, wettest=_wettest(left))
    return Outlook(
        "day",
        start,
        start + timedelta(days=1),
        low=day.low,
        high=day.high,
        chance=day.chance,
        amount=day.amount,
        code=day.code,
        wind=day.wind,
        gusts=day.gusts,
        wettest=_wettest(hours),
        sunrise=day.sunrise,
        sunset=day.sunset,
    )


def _of_hours(
    hours: Sequence[HourForecast], kind: Kind, start: datetime, end: datetime, forecast: Forecast
) -> Outlook:
    day = next((each for each in forecast.days if each.on == start.date()), None)
    return Outlook(
        kind,
        start,
        end,
        low=min((each.temperature for each in hours if each.temperature is not None), default=None),
        high=_most(each.temperature for each in hours),
        chance=_most(each.chance for each in hours),
        amount=_total(each.amount for each in hours),
        code=max((each.code for each in hours if each.code is not None), default=None),
        wind=_most(each.wind for each in hours),
        gusts=_most(each.gusts for each in hours),
        by_day=any(each.by_day for each in hours),
        wettest=_wettest(hours) if kind == "hours" else None,
        sunrise=day and day.sunrise,
        sunset=day and day.sunset,
    )


def _wettest(hours: Sequence[HourForecast]) -> datetime | None:
    """Return the first of the wettest hours, unless most of them are nearly as wet."""
    most = _most(each.chance for each in hours)
    if not most:
        return None
    wet = [each for each in hours if (each.chance or 0.0) >= most * 0.8]
    if len(wet) * 2 > len(hours):
        return None
    return next(each.at for each in wet if each.chance == most)


def _most(values: Iterable[float | None]) -> float | None:
    return max((each for each in values if each is not None), default=None)


def _total(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return round(sum(known), 2) if known else None
