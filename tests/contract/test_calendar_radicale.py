"""The calendar's tools on a real Radicale, and what other CalDAV programs make of their events."""

from __future__ import annotations

import asyncio
import base64
import urllib.request
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import vobject
from pydantic import SecretStr

from caal_node.core.errors import ToolBroke, ToolUnavailable
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.calendar import Calendar
from caal_node.toolsets.calendar.known_calendars import CalendarOptions
from tests.stand_ins.radicale_server import PASSWORD, USER, Radicale, running

OSLO = ZoneInfo("Europe/Oslo")
NOW = datetime(2026, 11, 23, 9, 30, tzinfo=OSLO)
"""A Monday."""
YOGA = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//test//EN
BEGIN:VEVENT
UID:yoga
DTSTAMP:20260901T000000Z
SUMMARY:Yoga
DTSTART:20260901T160000Z
DTEND:20260901T170000Z
RRULE:FREQ=WEEKLY
END:VEVENT
BEGIN:VEVENT
UID:yoga
DTSTAMP:20260901T000000Z
RECURRENCE-ID:20261124T160000Z
SUMMARY:Yoga
DTSTART:20261125T160000Z
DTEND:20261125T170000Z
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n")
OLD = YOGA.replace("yoga", "old").replace("2026", "2020").replace("RRULE:FREQ=WEEKLY\r\n", "")


@pytest.fixture(scope="module")
def radicale(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Radicale]:
    with running(tmp_path_factory.mktemp("radicale")) as server:
        family = server.make_calendar("family", "Family")
        server.make_calendar("work", "Work")
        server.make_calendar("tasks", "Tasks", "VTODO")
        server.put(f"{family}yoga.ics", YOGA)
        yield server


@pytest.fixture
async def calendar(radicale: Radicale) -> AsyncIterator[Calendar]:
    made = calendar_of(f"{radicale.url}/")
    yield made
    await made.aclose()


def calendar_of(url: str, **more: Any) -> Calendar:
    options = {"username": USER, "password": SecretStr(PASSWORD), **more}
    services = ToolsetServices(timezone=OSLO, now=lambda: NOW)
    return Calendar(CalendarOptions(url=url, **options), services)


async def test_the_calendars_are_found_from_any_address(radicale: Radicale) -> None:
    for path in ("", "/", f"/{USER}/", "/.well-known/caldav", f"/{USER}/nothing/"):
        calendar = calendar_of(radicale.url + path)
        assert await calendar.check() == "calendars: Family, Work"
        await calendar.aclose()
    calendar = calendar_of(f"{radicale.url}/{USER}/work/")
    assert await calendar.check() == "calendars: Work"
    await calendar.aclose()
    calendar = calendar_of(radicale.url, calendars=("work",))
    assert await calendar.check() == "calendars: Work"
    await calendar.aclose()


async def test_a_moved_time_of_a_series_is_where_it_was_moved_to(calendar: Calendar) -> None:
    result = await calendar.check_calendar("this week")
    assert result.words == "On Wednesday: Yoga from 5 to 6 pm."
    result = await calendar.check_calendar("december 8th")
    assert result.words == "On Tuesday 8 December: Yoga from 5 to 6 pm."


async def test_events_go_in_and_come_out_by_voice(calendar: Calendar) -> None:
    await calendar.add_event("Dentist", "friday at three", place="Main Street", calendar="family")
    await calendar.add_event("Fair", "december 5th to december 6th", calendar="work")
    await calendar.add_event("Standup", "every thursday at 9 am", "15 minutes", calendar="work")
    assert (await calendar.check_calendar(about="dentist")).words == (
        "Dentist is on Friday from 3 to 4 pm."
    )
    assert (await calendar.check_calendar("december 6th")).words == (
        "On Sunday 6 December: Fair, all day."
    )
    assert (await calendar.check_calendar("december 10th", calendar="work")).words == (
        "On Thursday 10 December: Standup from 9 to 9:15 am."
    )
    assert (await calendar.check_free_time("friday afternoon")).words == (
        "Not all of it: on Friday afternoon there is Dentist from 3 to 4 pm. "
        "You are free from noon to 3 pm and from 4 to 6 pm."
    )


async def test_another_program_reads_what_was_added(radicale: Radicale) -> None:
    address = radicale.make_calendar("other", "Other")
    calendar = calendar_of(address)
    await calendar.add_event("Haircut", "friday at three")
    await calendar.aclose()

    def read() -> list[tuple[str, datetime]]:
        # Neither the client nor the library that reads it is one of ours.
        asked = urllib.request.Request(address)
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        asked.add_header("Authorization", f"Basic {login}")
        with urllib.request.urlopen(asked, timeout=10) as answer:
            whole = vobject.readOne(answer.read().decode())
        return [(event.summary.value, event.dtstart.value) for event in whole.vevent_list]

    events = await asyncio.to_thread(read)
    assert events == [("Haircut", datetime(2026, 11, 27, 15, tzinfo=OSLO))]


async def test_a_wrong_password_and_a_wrong_address_are_told(radicale: Radicale) -> None:
    calendar = calendar_of(f"{radicale.url}/", password=SecretStr("wrong"))
    with pytest.raises(ToolBroke, match="does not accept the username and password") as told:
        await calendar.check()
    assert told.value.words == "The calendar doesn't let me in."
    await calendar.aclose()
    calendar = calendar_of(f"{radicale.url}/somebody/")
    with pytest.raises(ToolBroke, match="does not let this user see the calendars there"):
        await calendar.check()
    await calendar.aclose()
    with pytest.raises(ToolBroke, match="no calendar garden in the account; there are"):
        await calendar_of(radicale.url, calendars=("Garden",)).check()


async def test_a_server_that_is_off_is_said_in_a_sentence(tmp_path: Path) -> None:
    calendar = calendar_of("http://127.0.0.1:9/")
    with pytest.raises(ToolUnavailable) as told:
        await calendar.check_calendar("today")
    assert told.value.words == "I can't reach the calendar right now."
    await calendar.aclose()
    (tmp_path / "School.ics").write_text(YOGA)
    calendar = calendar_of("http://127.0.0.1:9/", files=(f"{tmp_path}/School.ics",))
    result = await calendar.check_calendar("wednesday")
    assert result.words == (
        "On Wednesday: Yoga from 5 to 6 pm. I can't reach your calendars right now."
    )
    await calendar.aclose()


async def test_a_published_calendar_is_read_and_not_written(radicale: Radicale) -> None:
    address = f"{radicale.url}/{USER}/family/".replace("//", f"//{USER}:{PASSWORD}@", 1)
    with radicale.client() as client:
        text = client.get(f"{radicale.url}/{USER}/family/").text
    assert text.startswith("BEGIN:VCALENDAR")
    calendar = calendar_of("", addresses=SecretStr(f"Ours={address.replace(' ', '%20')}"))
    result = await calendar.check_calendar("wednesday")
    assert "Yoga from 5 to 6 pm" in result.words
    assert await calendar.check() == "calendars: Ours (to read)"
    await calendar.aclose()
