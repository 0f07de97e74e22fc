"""Takes out of a forecast what somebody asks for: a moment, some hours, a day, several days."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from caal_node.toolsets.weather.forecast import DayForecast, Forecast, HourForecast
from caal_node.toolsets.when import When

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
