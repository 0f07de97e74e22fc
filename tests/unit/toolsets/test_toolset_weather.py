"""The toolset weather: which place and time are meant, and what a person hears."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caal_node.core.errors import InvalidArguments, ToolBroke, ToolUnavailable
from caal_node.tools.source import VerbatimResult
from caal_node.tools.sources.methods import spec_of
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.http_service import LateClient
from caal_node.toolsets.weather import (
    TOO_FAR,
    WHICH_PLACE,
    Place,
    Weather,
    WeatherOptions,
    choose,
    coordinates_in,
    is_here,
    names_in,
    place_said,
    subject_said,
    time_said,
)
from caal_node.toolsets.weather.outlook import Outlook, read_forecast
from caal_node.toolsets.weather.sentences import (
    BRITISH,
    IMPERIAL,
    METRIC,
    WORDS,
    Telling,
    clock_time,
    day_name,
    units_of,
    words_of,
)
from tests.stand_ins.weather_service import forecast_body, weather_service

NOW = datetime(2026, 11, 23, 13, 5, tzinfo=UTC)
"""A Monday, five past two in the afternoon in Oslo."""


def weather(
    answer: Callable[[httpx2.Request], httpx2.Response] | None = None,
    *,
    home: str = "Oslo",
    units: Any = "auto",
    now: Callable[[], datetime] = lambda: NOW,
) -> Weather:
    return Weather(
        WeatherOptions(home=home, units=units),
        ToolsetServices(now=now, timezone=UTC),
        client=LateClient(
            timeout_s=5, transport=httpx2.MockTransport(answer or weather_service(NOW))
        ),
    )


@pytest.mark.parametrize(
    ("asked", "heard"),
    [
        ({}, "It's 5 degrees and cloudy in Oslo, and it feels like 1."),
        ({"when": "today"}, "Today in Oslo: cloudy, between 4 and 8 degrees."),
        (
            {"when": "tomorrow"},
            "Tomorrow in Oslo: light rain, between 2 and 8 degrees, with an 80 percent chance of "
            "rain.",
        ),
        (
            {"when": "tomorrow", "about": "rain"},
            "Rain is likely tomorrow in Oslo: an 80 percent chance, up to 3 millimeters, most "
            "likely around 3 PM.",
        ),
        ({"when": "Wednesday", "about": "rain"}, "No rain is expected on Wednesday in Oslo."),
        (
            {"about": "rain"},
            "No, it's dry in Oslo, and no rain is expected in the next hours.",
        ),
        (
            {"when": "friday afternoon"},
            "On Friday afternoon in Oslo: cloudy, between 6 and 8 degrees.",
        ),
        ({"when": "tonight", "about": "temperature"}, "Tonight in Oslo: between 4 and 7 degrees."),
        ({"when": "at 5 pm"}, "At 5 PM in Oslo: cloudy, about 8 degrees."),
        (
            {"when": "in 3 hours", "about": "wind"},
            "At 5 PM the wind in Oslo is 10 kilometers per hour, with gusts of 25.",
        ),
        (
            {"when": "tomorrow", "about": "sun"},
            "Tomorrow the sun rises in Oslo at 8:21 AM and sets at 3:40 PM.",
        ),
        (
            {"when": "this weekend"},
            "The weather in Oslo. Saturday: light rain, between 2 and 8 degrees. Sunday: cloudy, "
            "between 2 and 8 degrees.",
        ),
        (
            {"when": "next week"},
            "From Monday to Sunday in Oslo: between 2 and 8 degrees, and rain is likely Monday, "
            "Wednesday, Friday and Sunday.",
        ),
        ({"when": "yesterday", "about": "rain"}, "3 millimeters of rain fell yesterday in Oslo."),
        (
            {"place": "Paris", "when": "Wednesday", "about": "temperature"},
            "On Wednesday in Paris, France: between 2 and 8 degrees.",
        ),
        (
            {"place": "Paris Texas", "about": "temperature"},
            "It's 5 degrees Celsius in Paris, Texas, and it feels like 1.",
        ),
    ],
)
async def test_what_a_person_hears(asked: dict[str, Any], heard: str) -> None:
    said = await weather().tell(**asked)
    assert isinstance(said, VerbatimResult)
    assert said.words == heard


async def test_a_span_that_ends_behind_the_forecast_says_so() -> None:
    said = await weather().tell(when="next month")
    assert said.words.endswith("I know no further than December 6.")


async def test_the_data_has_each_figure_with_its_unit() -> None:
    now = (await weather().tell()).value
    assert now["place"] == "Oslo, Norway"
    assert now["when"] == "Monday 23 November 2026, 2 PM"
    assert (now["temperature"], now["feels_like"], now["gusts"]) == ("5 °C", "1 °C", "28 km/h")
    days = (await weather().tell(when="this weekend")).value["days"]
    assert [day["when"] for day in days] == [
        "Saturday 28 November 2026",
        "Sunday 29 November 2026",
    ]
    assert (days[0]["low"], days[0]["chance_of_rain"], days[0]["rain"]) == ("2 °C", "80 %", "3 mm")


async def test_the_service_is_asked_in_the_units_of_home_and_once_in_a_while() -> None:
    asked: list[httpx2.Request] = []
    now = [NOW]
    here = weather(weather_service(NOW, asked), home="Chicago", now=lambda: now[0])
    assert (await here.tell()).value["temperature"] == "5 °F"
    await here.tell(when="tomorrow")
    assert [each.url.path for each in asked] == ["/v1/search", "/v1/forecast"]
    params = asked[1].url.params
    assert (params["temperature_unit"], params["timezone"]) == ("fahrenheit", "auto")
    now[0] += timedelta(minutes=16)
    await here.tell()
    assert len(asked) == 3


async def test_without_a_home_the_units_are_the_place_s_and_their_scale_is_said() -> None:
    said = await weather(home="").tell(place="Chicago", about="temperature")
    assert said.words == "It's 5 degrees Fahrenheit in Chicago, Illinois, and it feels like 1."
    with pytest.raises(InvalidArguments) as caught:
        await weather(home="").tell()
    assert caught.value.words == WHICH_PLACE


async def test_units_of_the_owner_s_choice_win() -> None:
    said = await weather(units="british").tell(about="wind")
    assert said.words.startswith("Right now the wind in Oslo is 12 miles per hour")


async def test_the_day_is_the_one_at_the_place() -> None:
    late = datetime(2026, 11, 24, 3, 0, tzinfo=UTC)  # still Monday evening in Chicago
    answer = weather_service(late, zone="America/Chicago")
    said = await weather(answer, home="Chicago", now=lambda: late).tell(when="tomorrow")
    assert said.value["when"] == "Tuesday 24 November 2026"


async def test_a_home_by_coordinates_is_not_looked_up_and_has_no_name() -> None:
    asked: list[httpx2.Request] = []
    said = await weather(weather_service(NOW, asked), home="59.91, 10.75").tell()
    assert said.words == "It's 5 degrees and cloudy, and it feels like 1."
    assert [each.url.path for each in asked] == ["/v1/forecast"]


@pytest.mark.parametrize("words", ["here", "Home", "my location", " ", "current location"])
async def test_words_for_here_mean_home(words: str) -> None:
    assert (await weather().tell(place=words)).value["place"] == "Oslo, Norway"


async def test_a_place_or_a_time_that_there_is_not_is_told() -> None:
    with pytest.raises(InvalidArguments) as caught:
        await weather().tell(place="Atlantis")
    assert caught.value.words == "I don't know a place called Atlantis."
    with pytest.raises(InvalidArguments, match="says no time"):
        await weather().tell(when="soonish")
    with pytest.raises(InvalidArguments) as caught:
        await weather().tell(when="25 December 2031")
    assert caught.value.words == TOO_FAR


async def test_a_service_that_is_away_is_a_sentence() -> None:
    def away(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("no", request=request)

    with pytest.raises(ToolUnavailable) as caught:
        await weather(away).tell()
    assert "cannot be reached at geocoding-api.open-meteo.com." in str(caught.value)
    assert caught.value.words == "I can't reach the weather service right now."


async def test_the_limit_of_a_day_is_a_sentence() -> None:
    body = {"error": True, "reason": "Daily API request limit exceeded."}
    with pytest.raises(ToolUnavailable) as caught:
        await weather(lambda _: httpx2.Response(429, json=body)).tell()
    assert "pause" in (caught.value.words or "")


async def test_check_names_the_home_that_was_found() -> None:
    assert (await weather().check()).startswith("home is Oslo, Norway: It's 5 degrees")
    assert "name a place" in await weather(home="").check()


def test_it_only_reads_and_has_examples() -> None:
    (spec,) = [spec_of(each, "Agent") for each in weather().tools]  # type: ignore[arg-type]
    assert (spec.name, spec.effect, len(spec.examples)) == ("get_weather", "read", 3)


@pytest.mark.parametrize(
    ("current", "about", "heard"),
    [
        ({"weather_code": 61, "precipitation": 0.6}, "rain", "Yes, there's light rain in Oslo"),
        ({"weather_code": 73}, "everything", "It's 5 degrees in Oslo, with snow"),
        ({"weather_code": 0, "is_day": 0}, "everything", "It's 5 degrees and clear"),
        ({"weather_code": 0}, "everything", "It's 5 degrees and sunny"),
        ({"weather_code": 12345}, "everything", "It's 5 degrees in Oslo, and"),
        ({"temperature_2m": -4.6}, "temperature", "It's minus 5 degrees in Oslo, and it feels"),
        ({"temperature_2m": 1.2}, "temperature", "It's 1 degree in Oslo."),
        ({"temperature_2m": None}, "temperature", "It's an unknown temperature in Oslo."),
        ({"wind_gusts_10m": 71.0}, "everything", "with gusts of 71 kilometers per hour"),
        ({"wind_speed_10m": None}, "wind", "I don't know the wind in Oslo right now."),
    ],
)
async def test_the_present_in_words(current: dict[str, Any], about: Any, heard: str) -> None:
    said = await weather(weather_service(NOW, **current)).tell(about=about)
    assert heard in said.words


@given(
    st.integers(0, 14 * 24 * 60),
    st.sampled_from(["everything", "rain", "temperature", "wind", "sun"]),
    st.sampled_from(["", "now", "today", "tonight", "tomorrow morning", "the weekend", "at noon"]),
)
@settings(max_examples=60, deadline=None)
def test_every_time_and_subject_has_a_sentence(minute: int, about: Any, when: str) -> None:
    # Over the change of Oslo's clocks too, in the night of the 25th of October.
    now = datetime(2026, 10, 18, tzinfo=UTC) + timedelta(minutes=minute)

    async def ask() -> VerbatimResult:
        toolset = weather(weather_service(now), now=lambda: now)
        return await toolset.tell(when=when, about=about)

    said = asyncio.run(ask())
    assert said.words.endswith(".")
    assert "None" not in said.words
    assert "  " not in said.words


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@given(st.sampled_from(["current", "hourly", "daily"]), JSON_VALUES)
def test_whatever_stands_in_for_a_part_of_a_forecast_is_read_or_refused(
    part: str, value: Any
) -> None:
    with suppress(ToolBroke):
        assert read_forecast({**forecast_body(NOW), part: value}).days


@given(st.dictionaries(st.sampled_from(["time", "temperature_2m", "weather_code"]), JSON_VALUES))
def test_columns_of_any_length_and_kind_are_read(hourly: dict[str, Any]) -> None:
    body = forecast_body(NOW)
    whole: dict[str, Any] = body["hourly"] | hourly
    if isinstance(hourly.get("time", []), list):
        whole["time"] = [*hourly.get("time", []), "2026-11-23T14:00"]
        assert read_forecast({**body, "hourly": whole}).hours


@given(st.text(max_size=60))
def test_any_words_for_a_place_are_read(words: str) -> None:
    for name, within in names_in(words):
        assert choose([Place("Oslo", 1.0, 2.0)], name, within) in (None, Place("Oslo", 1.0, 2.0))
    assert is_here(words) in (True, False)
    assert coordinates_in(words) is None or "," in words or ";" in words


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("Paris, Texas", ("Paris", "Texas")),
        ("Paris, Texas, USA", ("Paris", "Texas")),
        ("Paris in Texas", ("Paris", "Texas")),
        ("New York", ("New York", "")),
        ("Oslo?", ("Oslo", "")),
    ],
)
def test_what_a_place_is_called(words: str, first: tuple[str, str]) -> None:
    assert next(names_in(words)) == first


def test_a_country_may_be_called_by_what_people_say() -> None:
    texas = Place("Paris", 33.6, -95.5, "Texas", "United States", "US")
    france = Place("Paris", 48.8, 2.3, "Île-de-France", "France", "FR")
    for within, meant in {"": france, "USA": texas, "texas": texas, "FR": france}.items():
        assert choose([france, texas], "Paris", within) == meant
    assert choose([france, texas], "Paris", "Ohio") is None


@pytest.mark.parametrize(
    ("country", "units"),
    [("US", IMPERIAL), ("GB", BRITISH), ("NO", METRIC), ("", METRIC), ("LR", IMPERIAL)],
)
def test_the_units_of_a_country(country: str, units: object) -> None:
    assert units_of(country) == units


def test_days_are_called_as_people_call_them() -> None:
    monday = date(2026, 11, 23)
    names = [day_name(monday + timedelta(days=at), monday) for at in (-1, 0, 1, 4, 6, 7)]
    assert names == [
        *("yesterday", "today", "tomorrow", "on Friday", "on Sunday", "on Monday, November 30")
    ]
    hours = [(0, 0), (12, 0), (17, 0), (8, 21), (0, 5)]
    times = [clock_time(datetime(2026, 1, 1, *each)) for each in hours]
    assert times == ["midnight", "noon", "5 PM", "8:21 AM", "12:05 AM"]


def test_every_code_of_the_weather_has_words() -> None:
    assert all(words_of(code) for code in (0, 1, *WORDS))
    assert words_of(4) == words_of(None) == ""


def test_a_span_across_days_says_both_ends() -> None:
    zone = ZoneInfo("Europe/Oslo")
    today = NOW.astimezone(zone).date()
    start = datetime(2026, 11, 24, 10)
    outlook = Outlook("hours", start, start + timedelta(hours=3), low=-2.0, high=1.0, code=71)
    assert Telling("", METRIC, today).say(outlook, "everything") == (
        "Tomorrow from 10 AM to 1 PM: light snow, between minus 2 and 1 degree."
    )


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        ("Will it rain in Paris tomorrow?", "Paris"),
        ("What's the weather in New York?", "New York"),
        ("How warm is it in Springfield, Illinois right now?", "Springfield, Illinois"),
        ("the weather for São Paulo please", "São Paulo"),
        ("Will it rain in Rio de Janeiro?", "Rio de Janeiro"),
        ("Will it snow in December?", ""),
        ("What's the weather for Saturday?", ""),
        ("Is it cold in the garden?", ""),
        ("I love rainy days.", ""),
    ],
)
def test_a_place_is_found_in_the_person_s_words(request_: str, place: str) -> None:
    assert place_said(request_) == place


@pytest.mark.parametrize(
    ("request_", "given_", "start"),
    [
        ("How cold is it going to be tonight?", "today", 18),
        ("Will it rain tomorrow afternoon?", "tomorrow", 12),
        ("Will it rain tomorrow afternoon?", "now", 12),
        ("It was sunny yesterday, how is it now?", "now", None),
        ("What about tomorrow and Friday?", "tomorrow", None),
        ("What's the weather like?", "now", None),
        ("", "tomorrow", None),
    ],
)
def test_a_time_is_read_from_the_person_s_words_where_they_say_more(
    request_: str, given_: str, start: int | None
) -> None:
    said = time_said(request_, given_, NOW)
    assert (said and said.start.hour) == start


@pytest.mark.parametrize(
    ("request_", "about"),
    [
        ("Do I need an umbrella?", "rain"),
        ("Is it windy outside?", "wind"),
        ("How cold is it?", "temperature"),
        ("When does the sun set today?", "sun"),
        ("When does it get dark?", "sun"),
        ("Is it cold and wet?", "everything"),
        ("What's the weather like?", "everything"),
    ],
)
def test_the_subject_is_found_in_the_person_s_words(request_: str, about: str) -> None:
    assert subject_said(request_) == about


async def test_what_the_model_left_out_is_taken_from_the_request() -> None:
    said = await weather().tell(request="Will it rain in Paris tomorrow?")
    assert said.words.startswith("Rain is likely tomorrow in Paris, France")
    said = await weather().tell("Oslo", "today", request="Will it rain in Oslo tonight?")
    assert said.words == "No rain is expected tonight in Oslo."


@given(st.text(max_size=80))
def test_any_request_is_read(words: str) -> None:
    assert place_said(words) in words
    assert subject_said(words)
    time_said(words, "now", NOW)
