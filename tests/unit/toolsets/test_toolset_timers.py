"""Timers, alarms and reminders are set, asked for, changed and cancelled in people's words."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.errors import InvalidArguments, ToolBroke, ToolFailure
from caal_node.tools.source import VerbatimResult
from caal_node.tools.sources.methods import spec_of
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.timers import Timers, entries_meant
from caal_node.toolsets.timers.entry import (
    LOST_WORDS,
    Entry,
    days_words,
    length_words,
    missed_words,
    next_due,
    plain_name,
    split_repeat,
)
from tests.stand_ins.timer_stand_ins import BERLIN, START, HeardAnnouncer, MovedTime, services_of

NOW = START.astimezone(BERLIN)
CASES = Path(__file__).parents[2] / "data" / "household" / "timers.json"


@pytest.fixture
def time() -> MovedTime:
    return MovedTime()


@pytest.fixture
async def timers(tmp_path: Path, time: MovedTime) -> AsyncIterator[Timers]:
    made = Timers(None, services_of(tmp_path, HeardAnnouncer(), time))
    yield made
    await made.aclose()


async def say(timers: Timers, tool: str, **arguments: Any) -> str:
    """Return the sentence that a call has a person hear."""
    result: VerbatimResult = await getattr(timers, tool)(**arguments)
    return result.words


async def refused(timers: Timers, tool: str, **arguments: Any) -> str | None:
    with pytest.raises(ToolFailure) as caught:
        await getattr(timers, tool)(**arguments)
    return caught.value.words


@pytest.mark.parametrize(
    ("tool", "arguments", "heard"),
    [
        ("set_timer", {"length": "10 minutes"}, "The timer is set for 10 minutes."),
        (
            "set_timer",
            {"length": "an hour and a half", "name": "the pasta timer"},
            "The pasta timer is set for 1 hour and 30 minutes.",
        ),
        ("set_alarm", {"when": "at 7"}, "The alarm is set for 7 PM today."),
        ("set_alarm", {"when": "at 6"}, "The alarm is set for 6 AM tomorrow."),
        ("set_alarm", {"when": "5 tomorrow"}, "The alarm is set for 5 AM tomorrow."),
        (
            "set_alarm",
            {"when": "every weekday at half past six", "name": "work"},
            "The work alarm is set for 6:30 AM every weekday.",
        ),
        (
            "set_reminder",
            {"text": "to call mum", "when": "tomorrow at six pm"},
            "I'll remind you at 6 PM tomorrow: call mum.",
        ),
        (
            "set_reminder",
            {"text": "the bins", "when": "every thursday evening at 8"},
            "I'll remind you at 8 PM every Thursday: the bins.",
        ),
        (
            "set_reminder",
            {"text": "pay the rent", "when": "on the 1st"},
            "I'll remind you at 9 AM on December 1: pay the rent.",
        ),
        (
            "set_reminder",
            {"text": "the oven", "when": "in half an hour"},
            "I'll remind you at 7:20 PM today: the oven.",
        ),
    ],
)
async def test_what_is_set_is_said_back(
    timers: Timers, tool: str, arguments: dict[str, str], heard: str
) -> None:
    assert await say(timers, tool, **arguments) == heard


@pytest.mark.parametrize(
    ("tool", "arguments", "heard"),
    [
        ("set_alarm", {"when": "tomorrow"}, "At what time?"),
        ("set_alarm", {"when": "tomorrow morning"}, "At what time?"),
        ("set_alarm", {"when": "today at five pm"}, "That time has passed. When do you mean?"),
        ("set_reminder", {"text": "x", "when": "today"}, "At what time?"),
        ("set_timer", {"length": "10"}, None),
        ("set_alarm", {"when": "soon"}, None),
        ("cancel_timer", {"which": "pasta"}, "Nothing is set."),
        ("snooze_alarm", {}, "Nothing is ringing."),
    ],
)
async def test_what_cannot_be_set_is_asked_for(
    timers: Timers, tool: str, arguments: dict[str, str], heard: str | None
) -> None:
    assert await refused(timers, tool, **arguments) == heard


async def test_several_are_told_apart_by_their_names(timers: Timers, time: MovedTime) -> None:
    await say(timers, "set_timer", length="10 minutes", name="pasta")
    await say(timers, "set_timer", length="4 minutes", name="eggs")
    await say(timers, "set_timer", length="20 minutes")
    time.present += timedelta(minutes=1)
    assert await say(timers, "list_timers", kind="timer") == (
        "The eggs timer has 3 minutes left. The pasta timer has 9 minutes left."
        " The 20 minute timer has 19 minutes left."
    )
    asked = await say(timers, "list_timers", which="the pasta one")
    assert asked == "The pasta timer has 9 minutes left."
    assert await say(timers, "cancel_timer", which="egg timer") == "The eggs timer is cancelled."
    assert await refused(timers, "cancel_timer", which="the timer") == (
        "Which one: the pasta timer or the 20 minute timer?"
    )
    assert await say(timers, "cancel_timer", which="the 20 minute one") == (
        "The 20 minute timer is cancelled."
    )
    assert await refused(timers, "cancel_timer", which="rice") == (
        "I can't find that one. There is the pasta timer."
    )
    assert await say(timers, "cancel_timer") == "The pasta timer is cancelled."
    assert await say(timers, "list_timers") == "Nothing is set."


async def test_two_of_one_name_are_told_apart_by_their_times(timers: Timers) -> None:
    for length in ("10 minutes", "20 minutes"):
        await say(timers, "set_timer", length=length, name="pasta")
    assert await refused(timers, "cancel_timer", which="pasta") == (
        "Which one: the pasta timer with 10 minutes left or the pasta timer with 20 minutes left?"
    )
    await say(timers, "cancel_timer", which="the pasta one with 20 minutes left")
    assert await say(timers, "list_timers") == "The pasta timer has 10 minutes left."


async def test_all_of_a_kind_are_cancelled_at_once(timers: Timers) -> None:
    for when in ("7 am", "8 am"):
        await say(timers, "set_alarm", when=when)
    await say(timers, "set_timer", length="5 minutes")
    assert await say(timers, "cancel_timer", which="all alarms") == "All 2 are cancelled."
    assert await say(timers, "list_timers") == "The 5 minute timer has 5 minutes left."


async def test_an_alarm_is_found_by_its_time(timers: Timers) -> None:
    await say(timers, "set_alarm", when="7 am")
    await say(timers, "set_alarm", when="half past eight")
    meant = await say(timers, "cancel_timer", which="my 7 o'clock alarm")
    assert meant == "The alarm is cancelled."
    assert await say(timers, "list_timers", kind="alarm") == ("The alarm is set for 8:30 PM today.")


@pytest.mark.parametrize(
    ("new", "how", "heard"),
    [
        ("5 minutes", "add", "The pasta timer has 15 minutes left."),
        ("5 more minutes", "set", "The pasta timer has 15 minutes left."),
        ("2 minutes", "subtract", "The pasta timer has 8 minutes left."),
        ("12 minutes", "set", "The pasta timer has 12 minutes left."),
        ("7 pm", "set", "The pasta timer has 10 minutes left."),
        ("an hour", "subtract", "The pasta timer has no time left."),
    ],
)
async def test_a_timer_is_changed(timers: Timers, new: str, how: str, heard: str) -> None:
    await say(timers, "set_timer", length="10 minutes", name="pasta")
    assert await say(timers, "change_timer", which="pasta", time=new, how=how) == heard


async def test_an_alarm_that_is_moved_keeps_its_days(timers: Timers) -> None:
    await say(timers, "set_alarm", when="every weekday at 7 am")
    assert await say(timers, "change_timer", which="alarm", time="8 am") == (
        "The alarm is set for 8 AM every weekday."
    )


async def test_results_are_data_too(timers: Timers) -> None:
    await say(timers, "set_timer", length="10 minutes", name="pasta")
    result = await timers.list_timers()
    record = {"kind": "timer", "name": "pasta", "left": "10 minutes", "rings": "7 PM today"}
    assert result.value == [record]


async def test_what_is_set_is_there_after_a_restart(timers: Timers, tmp_path: Path) -> None:
    await say(timers, "set_alarm", when="7 am", name="work")
    await timers.aclose()
    again = Timers(None, timers.services)
    assert await say(again, "list_timers") == "The work alarm is set for 7 AM tomorrow."
    assert await again.check() == f"1 set, in {tmp_path / 'timers.sqlite3'}"


async def test_an_alarm_rings_at_its_hour_of_the_zone_that_the_home_moves_to(
    timers: Timers, tmp_path: Path, time: MovedTime
) -> None:
    await say(timers, "set_alarm", when="7 am")
    await say(timers, "set_reminder", text="the oven", when="in 20 minutes")
    await timers.aclose()
    services = ToolsetServices(
        state=tmp_path, timezone=ZoneInfo("America/New_York"), now=time.now,
        announcer=HeardAnnouncer(),
    )  # fmt: skip
    moved = Timers(None, services)
    await moved.setup()
    assert await say(moved, "list_timers") == (
        "You have a reminder for 1:10 PM today: the oven. The alarm is set for 7 AM tomorrow."
    )
    await moved.aclose()


async def test_nothing_is_set_where_nothing_could_ring(tmp_path: Path) -> None:
    alone = Timers(None, ToolsetServices(state=tmp_path, timezone=BERLIN))
    said = await refused(alone, "set_timer", length="5 minutes")
    assert said == "I can't set that, as nothing here could ring."
    await alone.aclose()


async def test_a_file_that_cannot_be_opened_is_said_in_a_sentence(
    timers: Timers, tmp_path: Path
) -> None:
    (tmp_path / "timers.sqlite3").mkdir()
    await timers.setup()
    with pytest.raises(ToolBroke) as caught:
        await timers.set_timer(length="5 minutes")
    assert caught.value.words == "I can't get at my timers right now."


def files_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def _cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 5_000)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _random(path: Path) -> None:
    path.write_bytes(random.Random(3).randbytes(5_000))


def _random_behind_the_head(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:100] + random.Random(3).randbytes(len(data) - 100))


def _run(path: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)


def _other_columns(path: Path) -> None:
    _run(path, "DROP TABLE entries", "CREATE TABLE entries (number INTEGER, what TEXT)")


def _text_for_a_number(path: Path) -> None:
    _run(path, "UPDATE entries SET due = 'tomorrow'")


def _no_time(path: Path) -> None:
    _run(path, "UPDATE entries SET wall = 'noonish', zone = 'UTC'")


def _no_day(path: Path) -> None:
    _run(path, "UPDATE entries SET weekdays = 'x', zone = 'UTC'")


def _endless(path: Path) -> None:
    _run(path, "UPDATE entries SET due = 9e999")


def _bytes(path: Path) -> None:
    _run(path, "UPDATE entries SET name = x'00ff'")


def _no_utf_8(path: Path) -> None:
    _run(path, "UPDATE entries SET name = CAST(x'd4d4' AS TEXT)")


def _nameless_tables(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = CAST(x'd4d4' AS TEXT)"
        )


@pytest.mark.parametrize(
    "damage",
    [
        *(_cut, _empty, _random, _random_behind_the_head, _other_columns, _text_for_a_number),
        *(_no_time, _no_day, _endless, _bytes, _no_utf_8, _nameless_tables),
    ],
)
async def test_a_damaged_file_is_kept_aside_and_its_loss_is_told_once(
    timers: Timers,
    tmp_path: Path,
    time: MovedTime,
    damage: Callable[[Path], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    await say(timers, "set_alarm", when="7 am")
    await timers.aclose()
    file = tmp_path / "timers.sqlite3"
    damage(file)
    damaged = file.read_bytes()
    announcer = HeardAnnouncer()
    announcer.somebody_is_there = False
    again = Timers(None, services_of(tmp_path, announcer, time))
    await again.setup()  # nobody is there to hear it
    await say(again, "set_timer", length="5 minutes", name="pasta")
    assert (tmp_path / "timers.sqlite3.damaged").read_bytes() == damaged
    assert f"{file} is damaged" in caplog.text
    assert f"{file}.damaged" in caplog.text
    announcer.arrive()
    assert await announcer.next_words() == LOST_WORDS
    assert await say(again, "list_timers") == "The pasta timer has 5 minutes left."
    announcer.arrive()
    await again.aclose()
    assert announcer.said.empty()
    assert files_in(tmp_path) == ["timers.sqlite3", "timers.sqlite3.damaged"]


async def test_a_lost_file_is_told_to_who_asks_first(timers: Timers, tmp_path: Path) -> None:
    (tmp_path / "timers.sqlite3").write_text("x" * 5000)
    assert await say(timers, "list_timers") == f"{LOST_WORDS} Nothing is set."
    assert await say(timers, "list_timers") == "Nothing is set."


async def test_of_two_rooms_one_keeps_the_damaged_file_aside(
    timers: Timers, tmp_path: Path, time: MovedTime
) -> None:
    other = Timers(None, services_of(tmp_path, HeardAnnouncer("bedroom"), time))
    for each in (timers, other):
        await say(each, "list_timers")
    await say(timers, "set_alarm", when="7 am")
    _text_for_a_number(tmp_path / "timers.sqlite3")
    await say(timers, "set_timer", length="5 minutes", name="pasta")
    heard = [await say(each, "list_timers") for each in (timers, other)]
    await other.aclose()
    assert [each.removeprefix(f"{LOST_WORDS} ") for each in heard] == [heard[1]] * 2
    assert [LOST_WORDS in each for each in heard] == [True, False]
    assert files_in(tmp_path) == ["timers.sqlite3", "timers.sqlite3.damaged"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("set_reminder", {"text": "milk " * 6_000, "when": "at 9 pm"}),
        ("set_reminder", {"text": "milk " * 60, "when": "at 9 pm"}),
        ("set_timer", {"length": "5 minutes", "name": "x" * 201}),
        ("set_alarm", {"when": "at 7", "name": "x" * 201}),
    ],
)
async def test_what_is_too_long_to_be_said_is_not_set(
    timers: Timers, tool: str, arguments: dict[str, str]
) -> None:
    with pytest.raises(InvalidArguments, match=r"at most (200|4000) characters"):
        await getattr(timers, tool)(**arguments)
    assert await say(timers, "list_timers") == "Nothing is set."


async def test_there_is_a_limit(timers: Timers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caal_node.toolsets.timers.store.ENTRIES_MAX", 2)
    for _ in range(2):
        await timers.set_timer(length="5 minutes")
    said = await refused(timers, "set_timer", length="5 minutes")
    assert said == "There are 2 timers, alarms and reminders already."


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("the pasta timer", "pasta"),
        ("Timer", ""),
        ("my alarm", ""),
        ("for the eggs", "eggs"),
        ("", ""),
        ("soft boiled eggs", "soft boiled eggs"),
    ],
)
def test_a_name_is_what_is_behind_the_words_around_it(said: str, name: str) -> None:
    assert plain_name(said) == name


@pytest.mark.parametrize(
    ("words", "days", "said"),
    [
        ("every weekday at 7", "01234", "every weekday"),
        ("every day at noon", "0123456", "every day"),
        ("daily at 8", "0123456", "every day"),
        ("weekends at ten", "56", "on weekends"),
        ("mondays and fridays at 6", "04", "every Monday and Friday"),
        ("every tuesday, thursday and sunday", "136", "every Tuesday, Thursday and Sunday"),
        ("every morning at 6", "0123456", "every day"),
    ],
)
def test_days_on_which_something_comes_again(words: str, days: str, said: str) -> None:
    assert split_repeat(words)[0] == days
    assert days_words(days) == said


@pytest.mark.parametrize("words", ["on monday at 7", "friday", "tomorrow all day", "at 7"])
def test_a_day_alone_does_not_repeat(words: str) -> None:
    assert split_repeat(words) == ("", words)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(45, "45 seconds"), (60, "1 minute"), (5400, "1 hour and 30 minutes"), (0, "no time"),
     (90061, "1 day and 1 hour")],
)  # fmt: skip
def test_a_length_is_said_in_two_units(seconds: float, said: str) -> None:
    assert length_words(seconds) == said


def test_what_was_missed_is_told_with_its_time() -> None:
    due = (START - timedelta(hours=1)).timestamp()
    missed = [Entry("timer", "pasta", due), Entry("reminder", "call mum", due - 86400)]
    assert missed_words(missed, NOW) == (
        "While I couldn't reach you, your pasta timer ended at 5:50 PM;"
        " you had a reminder at 5:50 PM yesterday: call mum."
    )


DAYS = st.sets(st.sampled_from("0123456"), min_size=1).map("".join)
MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2060, 1, 1))
ZONES = st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"])


@given(MOMENTS, MOMENTS, DAYS, ZONES)
def test_what_repeats_comes_next_at_its_hour_on_one_of_its_days(
    wall: datetime, after: datetime, days: str, name: str
) -> None:
    zone = ZoneInfo(name)
    moment = after.replace(tzinfo=UTC)
    due = next_due(wall, days, zone, moment)
    assert 0 < due.timestamp() - moment.timestamp() <= timedelta(days=7, hours=2).total_seconds()
    assert str(due.weekday()) in days
    apart = due.hour * 60 + due.minute - (wall.hour * 60 + wall.minute)
    assert 0 <= apart <= 60  # later only where the clocks leave the time out


@given(
    st.text(max_size=80) | st.sampled_from(["all", "the 7 o'clock one", "first", "both of them"])
)
def test_whatever_is_said_means_things_that_are_set(which: str) -> None:
    entries = [
        Entry("timer", "pasta", START.timestamp() + 60, 60, number=1),
        Entry("alarm", "", START.timestamp() + 600, number=2),
    ]
    assert set(entries_meant(which, entries, NOW)) <= set(entries)


def test_the_tools_are_few_and_have_examples() -> None:
    specs = {spec.name: spec for spec in (spec_of(each, "timers") for each in Timers().tools)}  # type: ignore[arg-type]
    assert list(specs) == [
        "cancel_timer", "change_timer", "list_timers", "set_alarm", "set_reminder", "set_timer",
        "snooze_alarm",
    ]  # fmt: skip
    assert all(len(spec.examples) >= 2 for spec in specs.values())
    assert {name for name, spec in specs.items() if spec.effect == "read"} == {"list_timers"}


async def test_the_spoken_requests_call_tools_with_arguments_that_work(timers: Timers) -> None:
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    assert len([case for case in cases if case["tool"]]) == 12
    assert len([case for case in cases if not case["tool"]]) == 3
    await timers.set_timer(length="10 minutes", name="eggs")
    await timers.set_alarm(when="7 am")
    for case in cases:
        if case["tool"] in (None, "snooze_alarm"):
            continue
        given: dict[str, list[str] | str] = case["arguments"]
        first = {name: v[0] if isinstance(v, list) else v for name, v in given.items()}
        assert await say(timers, case["tool"], **first)
