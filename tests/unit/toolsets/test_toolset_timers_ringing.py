"""Timers ring until they are stopped, in one room at a time, and nothing is lost on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from caal_node.core.errors import InvalidArguments
from caal_node.core.events import TimersChanged, from_json, to_json
from caal_node.toolsets.timers import Timers, TimersOptions, ringer
from caal_node.toolsets.timers.entry import Entry
from caal_node.toolsets.timers.ringer import GRACE_S, LEASE_S, RING_EVERY_S, TIMER_RINGS_S
from caal_node.toolsets.timers.store import TimerStore
from tests.stand_ins.timer_stand_ins import START, HeardAnnouncer, MovedTime, services_of

Start = Callable[..., Awaitable[tuple[Timers, HeardAnnouncer]]]
DONE = "Your pasta timer is done."


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> MovedTime:
    moved = MovedTime()
    monkeypatch.setattr(asyncio, "to_thread", moved.in_thread)
    return moved


@pytest.fixture
def rare_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a day pass in few steps."""
    monkeypatch.setattr(ringer, "POLL_S", 1800.0)


@pytest.fixture
async def start(tmp_path: Path, time: MovedTime) -> AsyncIterator[Start]:
    """Starts the timers of one room after the other, which share their file."""
    async with AsyncExitStack() as stack:

        async def started(
            place: str = "kitchen", *, empty: bool = False, requests: bool = True
        ) -> tuple[Timers, HeardAnnouncer]:
            announcer = HeardAnnouncer(place)
            announcer.somebody_is_there = not empty
            options = TimersOptions(requests=requests)
            timers = Timers(options, services_of(tmp_path, announcer, time), pause=time.pause)
            await timers.setup()
            stack.push_async_callback(timers.aclose)
            await time.settled()
            return timers, announcer

        yield started


async def test_a_timer_rings_when_its_time_has_come_and_not_before(
    start: Start, time: MovedTime
) -> None:
    timers, announcer = await start()
    await timers.set_timer(length="10 minutes", name="pasta")
    await time.pass_by(599)
    assert announcer.said.empty()
    await time.pass_by(2)
    assert await announcer.next_words() == DONE
    assert announcer.cues == ["ring"]


async def test_it_rings_for_a_minute_and_is_then_over(start: Start, time: MovedTime) -> None:
    timers, announcer = await start()
    await timers.set_timer(length="5 seconds", name="pasta")
    await time.pass_by(5 + TIMER_RINGS_S + 30)
    assert announcer.cues == ["ring"] * (round(TIMER_RINGS_S / RING_EVERY_S) + 1)
    assert (await timers.list_timers()).words == "Nothing is set."


async def test_it_is_quiet_once_it_is_stopped(start: Start, time: MovedTime) -> None:
    timers, announcer = await start()
    await timers.set_timer(length="5 seconds", name="pasta")
    await time.pass_by(6)
    assert await announcer.next_words() == DONE
    assert (await timers.cancel_timer()).words == "Okay, stopped."
    rung = len(announcer.cues)
    await time.pass_by(TIMER_RINGS_S)
    assert len(announcer.cues) == rung
    assert (await timers.list_timers()).words == "Nothing is set."


async def test_the_one_that_rings_is_the_one_that_is_meant(start: Start, time: MovedTime) -> None:
    timers, announcer = await start()
    await timers.set_timer(length="5 seconds", name="pasta")
    await timers.set_timer(length="5 minutes", name="eggs")
    await time.pass_by(6)
    assert await announcer.next_words() == DONE
    await timers.cancel_timer()
    assert (await timers.list_timers()).words.startswith("The eggs timer has 4 minutes")


async def test_what_is_snoozed_rings_again(start: Start, time: MovedTime) -> None:
    timers, announcer = await start()
    await timers.set_timer(length="5 seconds", name="pasta")
    await time.pass_by(6)
    assert await announcer.next_words() == DONE
    assert (await timers.snooze_alarm(length="5 minutes")).words == "Okay, again in 5 minutes."
    rung = len(announcer.cues)
    await time.pass_by(299)
    assert len(announcer.cues) == rung
    await time.pass_by(3)
    assert await announcer.next_words() == DONE


async def test_an_alarm_of_every_day_rings_tomorrow_too(
    start: Start, time: MovedTime, rare_looks: None
) -> None:
    timers, announcer = await start()
    await timers.set_alarm(when="every day at 7 pm")
    for _ in range(2):
        await time.pass_by(601)
        assert await announcer.next_words() == "It's 7 PM, and your alarm is ringing."
        assert (await timers.cancel_timer()).words == "Okay, stopped."
        assert "7 PM every day" in (await timers.list_timers()).words
        await time.pass_by(24 * 3600 - 601)


async def test_a_snoozed_alarm_of_every_day_keeps_its_days(start: Start, time: MovedTime) -> None:
    timers, announcer = await start()
    await timers.set_alarm(when="every day at 7 pm")
    await time.pass_by(601)
    assert await announcer.next_words()
    await timers.snooze_alarm()
    words = (await timers.list_timers()).words
    assert words == ("The alarm is set for 7:10 PM today. The alarm is set for 7 PM every day.")


async def test_a_reminder_is_said_once(start: Start, time: MovedTime) -> None:
    timers, announcer = await start()
    await timers.set_reminder(text="call mum", when="in 5 minutes")
    await time.pass_by(400)
    assert await announcer.next_words() == "Here is your reminder: call mum."
    assert len(announcer.cues) == 1


async def test_what_an_empty_room_missed_is_told_to_who_comes(
    start: Start, time: MovedTime
) -> None:
    timers, announcer = await start(empty=True)
    await timers.set_timer(length="5 minutes", name="pasta")
    await time.pass_by(3600)
    assert announcer.said.empty()
    announcer.arrive()
    assert await announcer.next_words() == (
        "While I couldn't reach you, your pasta timer ended at 6:55 PM."
    )
    announcer.arrive()
    await time.pass_by(60)
    assert announcer.said.empty()


async def test_an_alarm_that_nobody_heard_is_told_and_rings_the_next_day(
    start: Start, time: MovedTime, rare_looks: None
) -> None:
    timers, announcer = await start(empty=True)
    await timers.set_alarm(when="every day at 7 pm")
    await time.pass_by(3600)
    announcer.arrive()
    assert await announcer.next_words() == ("While I couldn't reach you, your alarm was at 7 PM.")
    await time.pass_by(23 * 3600 + 10 * 60)
    assert await announcer.next_words() == "It's 7 PM, and your alarm is ringing."


async def test_what_was_due_while_nothing_ran_is_told_at_the_start(
    start: Start, time: MovedTime
) -> None:
    timers, _ = await start()
    await timers.set_timer(length="5 minutes", name="pasta")
    await timers.aclose()
    time.present += timedelta(hours=1)  # while nothing runs
    _, announcer = await start()
    assert await announcer.next_words() == (
        "While I couldn't reach you, your pasta timer ended at 6:55 PM."
    )


async def test_a_timer_goes_on_after_a_restart(start: Start, time: MovedTime) -> None:
    timers, _ = await start()
    await timers.set_timer(length="10 minutes", name="pasta")
    await timers.aclose()
    time.present += timedelta(minutes=5)  # while nothing runs
    _, announcer = await start()
    await time.pass_by(299)
    assert announcer.said.empty()
    await time.pass_by(2)
    assert await announcer.next_words() == DONE


async def test_it_rings_in_its_own_room_and_in_another_where_that_is_gone(
    start: Start, time: MovedTime
) -> None:
    kitchen, heard_there = await start("kitchen")
    _, heard_here = await start("bedroom")
    await kitchen.set_timer(length="5 minutes", name="pasta")
    await time.pass_by(302)
    assert await heard_there.next_words() == DONE
    assert heard_here.said.empty()
    await kitchen.cancel_timer()
    await kitchen.set_timer(length="5 minutes", name="pasta")
    await kitchen.aclose()
    await time.pass_by(300 + GRACE_S + 20)
    assert await heard_here.next_words() == DONE


async def test_one_room_stops_what_rings_in_another(start: Start, time: MovedTime) -> None:
    kitchen, heard = await start("kitchen")
    bedroom, _ = await start("bedroom")
    await kitchen.set_timer(length="5 minutes", name="pasta")
    await time.pass_by(302)
    assert await heard.next_words() == DONE
    assert (await bedroom.cancel_timer()).words == "Okay, stopped."
    rung = len(heard.cues)
    await time.pass_by(60)
    assert len(heard.cues) == rung


async def test_one_that_rings_is_not_taken_for_one_that_nobody_rang(
    start: Start, time: MovedTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers, announcer = await start()
    free = asyncio.Event()
    told = announcer.announce

    async def late(words: str, **options: Any) -> bool:
        await free.wait()  # for others to end what they say
        return await told(words, **options)

    monkeypatch.setattr(announcer, "announce", late)
    await timers.set_timer(length="5 seconds", name="pasta")
    await time.pass_by(2 * LEASE_S)
    free.set()
    await time.pass_by(60)
    said = {announcer.said.get_nowait() for _ in range(announcer.said.qsize())}
    assert said == {DONE}  # and never that it was missed


async def test_two_processes_never_ring_the_same(tmp_path: Path) -> None:
    one, other = TimerStore(tmp_path), TimerStore(tmp_path)
    now = START.timestamp()
    await one.add(Entry("timer", "pasta", now, place="kitchen"))
    claims = [await each.claim_due(now, "kitchen", 0.0, LEASE_S) for each in (one, other)]
    assert [len(claim) for claim in claims] == [1, 0]
    later = await other.claim_due(now + LEASE_S, "kitchen", 0.0, LEASE_S)
    assert [entry.name for entry in later] == ["pasta"]  # the first process must have died
    await one.aclose()
    await other.aclose()


async def test_a_request_is_made_once_at_its_time_in_the_persons_words(
    start: Start, time: MovedTime
) -> None:
    timers, announcer = await start()
    kept = await timers.schedule(request="turn off the lamp.", when="in ten minutes")
    assert kept.words == "I'll do this at 7 PM today: turn off the lamp."
    await time.pass_by(599)
    assert announcer.asked == []
    await time.pass_by(LEASE_S * 3)
    assert announcer.asked == ["turn off the lamp"]
    assert await announcer.next_words() == "As you asked earlier: turn off the lamp."
    assert (await timers.list_timers()).words == "Nothing is set."


async def test_a_request_for_every_day_is_made_every_day(
    start: Start, time: MovedTime, rare_looks: None
) -> None:
    timers, announcer = await start()
    await timers.schedule(request="lock the front door", when="every day at 10 pm")
    await time.pass_by(timedelta(days=2).total_seconds())
    assert announcer.asked == ["lock the front door"] * 2


async def test_a_request_is_made_where_nobody_is_in_the_room(start: Start, time: MovedTime) -> None:
    timers, announcer = await start(empty=True)
    await timers.schedule(request="turn off the lamp", when="in ten minutes")
    await time.pass_by(601)
    assert announcer.asked == ["turn off the lamp"]
    announcer.arrive()
    await time.pass_by(60)
    assert announcer.said.empty()


async def test_a_request_that_could_not_be_made_is_told_of_and_not_made_late(
    start: Start, time: MovedTime
) -> None:
    timers, announcer = await start(empty=True)
    announcer.is_in_session = False
    await timers.schedule(request="turn off the lamp", when="in ten minutes")
    await time.pass_by(700)
    announcer.is_in_session = True
    announcer.arrive()
    words = await announcer.next_words()
    assert words.endswith("I did not do this at 7 PM: turn off the lamp.")
    await time.pass_by(LEASE_S * 3)
    assert announcer.asked == []


async def test_a_request_of_an_agent_that_was_killed_is_told_of_and_not_made_twice(
    start: Start, time: MovedTime, tmp_path: Path
) -> None:
    store = TimerStore(tmp_path)
    entry = Entry("request", "turn off the lamp", START.timestamp() - 1, place="kitchen")
    await store.add(entry)
    assert await store.claim_due(START.timestamp(), "kitchen", GRACE_S, LEASE_S)
    await store.aclose()
    _, announcer = await start()
    await time.pass_by(LEASE_S * 2)
    assert "I did not do this" in await announcer.next_words()
    assert announcer.asked == []


async def test_requests_that_were_kept_are_not_made_once_the_owner_wants_none(
    start: Start, time: MovedTime
) -> None:
    first, _ = await start()
    await first.schedule(request="turn off the lamp", when="in ten minutes")
    await first.aclose()
    _, announcer = await start(requests=False)
    await time.pass_by(620)
    assert announcer.asked == []
    assert "I did not do this" in await announcer.next_words()


async def test_a_request_is_found_changed_and_cancelled_like_the_others(
    start: Start, time: MovedTime
) -> None:
    timers, announcer = await start()
    await timers.schedule(request="turn off the lamp", when="in ten minutes")
    await timers.set_timer(length="5 minutes", name="pasta")
    changed = await timers.change_timer(which="the lamp", time="8 pm")
    assert changed.words == "For 8 PM today you asked this: turn off the lamp."
    cancelled = await timers.cancel_timer(which="the request")
    assert cancelled.words == "The request to turn off the lamp is cancelled."
    await time.pass_by(7200)
    assert announcer.asked == []


async def test_a_request_that_is_cancelled_elsewhere_while_it_is_announced_is_not_made(
    start: Start, time: MovedTime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers, announcer = await start()
    await timers.schedule(request="turn off the lamp", when="in ten minutes")
    store, heard = TimerStore(tmp_path), announcer.announce

    async def cancelled_meanwhile(words: str, *, cue: Any = None) -> bool:
        for entry in await store.all():
            await store.remove(entry)
        return await heard(words, cue=cue)

    monkeypatch.setattr(announcer, "announce", cancelled_meanwhile)
    await time.pass_by(LEASE_S + 700)
    assert announcer.asked == []
    assert await announcer.next_words() == "As you asked earlier: turn off the lamp."
    assert announcer.said.empty()
    await store.aclose()


async def test_a_request_needs_words_and_a_time_of_day(start: Start) -> None:
    timers, _ = await start()
    with pytest.raises(InvalidArguments, match="request"):
        await timers.schedule(request=" . ", when="at ten")
    with pytest.raises(InvalidArguments, match="time of day"):
        await timers.schedule(request="turn off the lamp", when="tomorrow")


def test_requests_are_kept_only_where_the_owner_has_said_so() -> None:
    names = {tool.id for tool in Timers().tools}
    assert "schedule" not in names
    assert {tool.id for tool in Timers(TimersOptions(requests=True)).tools} == names | {"schedule"}


def shown(announcer: HeardAnnouncer) -> list[list[tuple[str, bool]]]:
    """The names in each event for front ends, and whether they ring."""
    changes = [event for event in announcer.events if isinstance(event, TimersChanged)]
    return [[(each.name, each.ringing) for each in event.timers] for event in changes]


async def test_front_ends_are_told_what_is_set_and_what_rings_when_that_changes(
    start: Start, time: MovedTime
) -> None:
    timers, announcer = await start()
    await timers.set_timer(length="10 minutes", name="pasta")
    await time.pass_by(300)
    assert shown(announcer) == [[("pasta", False)]], "nothing is sent while it runs"
    event = announcer.events[-1]
    assert isinstance(event, TimersChanged)
    assert event.timers[0].due - event.now == pytest.approx(600)
    await time.pass_by(301)
    assert shown(announcer)[1:] == [[("pasta", True)]]
    await timers.cancel_timer()
    await time.settled()
    assert shown(announcer)[2:] == [[]]


async def test_front_ends_are_told_that_a_timer_has_rung_to_its_end(
    start: Start, time: MovedTime
) -> None:
    timers, announcer = await start()
    await timers.set_timer(length="5 seconds", name="pasta")
    await time.pass_by(5 + TIMER_RINGS_S + 1)
    assert shown(announcer) == [[("pasta", False)], [("pasta", True)], []]


async def test_who_comes_late_is_told_what_is_set(start: Start, time: MovedTime) -> None:
    timers, announcer = await start()
    await timers.set_timer(length="10 minutes", name="pasta")
    await time.pass_by(60)
    announcer.arrive()
    await time.settled()
    assert shown(announcer) == [[("pasta", False)]] * 2


async def test_what_another_room_sets_is_shown_here_too(start: Start, time: MovedTime) -> None:
    bath, _ = await start("bath")
    _, announcer = await start("kitchen")
    await bath.set_timer(length="10 minutes", name="pasta")
    await time.pass_by(20)
    assert shown(announcer) == [[("pasta", False)]]


async def test_front_ends_are_sent_as_many_as_a_screen_has_room_for(
    start: Start, time: MovedTime
) -> None:
    timers, announcer = await start()
    for minutes in range(1, ringer.SHOWN_MAX + 3):
        await timers.set_timer(length=f"{minutes} minutes")
        await time.settled()
    event = announcer.events[-1]
    assert isinstance(event, TimersChanged)
    assert (len(event.timers), event.more) == (ringer.SHOWN_MAX, 2)
    assert from_json(to_json(event)) == event
