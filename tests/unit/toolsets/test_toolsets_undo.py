"""What lists, timers and Home Assistant do is taken back, unless somebody has changed it since."""

# ruff: noqa: ASYNC240 - nothing else runs on these tests' event loop

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caal_node.agent import CaalAgent
from caal_node.core.errors import ToolFailure
from caal_node.testing import AgentConversation, ScriptedCall, ScriptedModel, plain_settings
from caal_node.tools.source import Undoable, VerbatimResult
from caal_node.tools.undo import UNDO, undo_for
from caal_node.toolsets import edited_file
from caal_node.toolsets.calculator import Calculator
from caal_node.toolsets.home_assistant.devices import Home, order_back, orders
from caal_node.toolsets.lists import Lists, ListsOptions
from caal_node.toolsets.lists.markdown_list import with_added, without_change
from caal_node.toolsets.timers import Timers
from tests.stand_ins.timer_stand_ins import HeardAnnouncer, MovedTime, services_of
from tests.unit.toolsets.test_toolset_home_assistant import HOME, Link, device, toolset

CHANGED = "That has changed since, so I've left it as it is."


async def undo_of(call: Coroutine[Any, Any, Any]) -> str:
    """Make a call, take it back, and return what is heard of that."""
    result = await call
    assert isinstance(result, Undoable)
    return await heard(result)


async def heard(result: Any) -> str:
    try:
        return (await result.undo()).words
    except ToolFailure as failure:
        return failure.words or ""


# Lists.


@pytest.fixture
def shopping(tmp_path: Path) -> Path:
    path = tmp_path / "shopping.md"
    path.write_text("# Shopping\n\n- [ ] milk\n- [x] eggs\n\nFor Saturday.\n")
    return path


@pytest.fixture
def lists(shopping: Path) -> Lists:
    return Lists(ListsOptions(folder=shopping.parent))


async def test_what_was_put_on_a_list_is_taken_off_again(lists: Lists, shopping: Path) -> None:
    before = shopping.read_bytes()
    words = await undo_of(lists.add_to_list("bread, eggs and milk"))
    assert words == "I've taken bread and eggs off the shopping list again."
    assert shopping.read_bytes() == before


@pytest.mark.parametrize("said", ["milk", "everything"])
async def test_what_was_crossed_off_is_put_back(lists: Lists, shopping: Path, said: str) -> None:
    before = shopping.read_bytes()
    assert await undo_of(lists.cross_off_list(said)) == "I've put milk back on the shopping list."
    assert shopping.read_bytes() == before


async def test_what_others_wrote_meanwhile_stays(lists: Lists, shopping: Path) -> None:
    result = await lists.add_to_list("bread and eggs")
    assert isinstance(result, Undoable)
    text = shopping.read_text().replace("- [ ] eggs", "- [ ] ten eggs") + "- [ ] tea\n"
    shopping.write_text(text)
    assert await heard(result) == "I've taken bread off the shopping list again."
    assert shopping.read_text() == text.replace("- [ ] bread\n", "")


async def test_a_thing_with_a_note_is_not_taken_from_above_it(lists: Lists, shopping: Path) -> None:
    result = await lists.add_to_list("bread")
    text = shopping.read_text().replace("- [ ] bread\n", "- [ ] bread\n      the dark one\n")
    shopping.write_text(text)
    assert await heard(result) == CHANGED
    assert shopping.read_text() == text


async def test_a_list_that_is_gone_stays_away(lists: Lists, shopping: Path) -> None:
    result = await lists.add_to_list("bread")
    shopping.unlink()
    assert await heard(result) == CHANGED
    assert not shopping.exists()


async def test_a_call_that_changed_no_list_has_no_undo(lists: Lists) -> None:
    assert type(await lists.add_to_list("milk")) is VerbatimResult


async def test_a_cancelled_undo_of_a_list_is_whole_or_has_not_begun(
    lists: Lists, shopping: Path
) -> None:
    before = shopping.read_bytes()
    result = await lists.add_to_list("bread")
    after = shopping.read_bytes()
    assert isinstance(result, Undoable)
    undoing = asyncio.ensure_future(result.undo())
    await asyncio.sleep(0)
    undoing.cancel()
    with suppress(asyncio.CancelledError):
        await undoing
    await asyncio.get_running_loop().shutdown_default_executor()  # its thread has ended
    assert shopping.read_bytes() in (before, after)


things = st.sampled_from(["milk", "egg", "eggs", "rye bread", "tea", "two pears", "call Tom"])
deeds = st.tuples(st.sampled_from(["add_to_list", "cross_off_list"]), st.lists(things, min_size=1))
lines = st.sampled_from(
    ["# Shopping", "", "- [ ] milk", "- [x] eggs", "* ~~tea~~", "  - rye bread", "3. pears",
     "      a note", "- [ ] milk", "text"]
)  # fmt: skip


@given(st.lists(lines), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.lists(deeds, max_size=6))
@settings(max_examples=40, deadline=None)
async def test_undoing_everything_leaves_each_list_as_it_was(
    written: list[str], end: str, ends: bool, done: list[tuple[str, list[str]]]
) -> None:
    # Nobody else writes into these files, so nothing is waited for.
    with (
        TemporaryDirectory() as folder,
        patch.object(edited_file, "QUIET_S", 0),
        patch.object(edited_file, "EMPTY_S", 0),
    ):
        path = Path(folder) / "shopping.md"
        path.write_bytes((end.join(written) + (end if ends else "")).encode())
        lists = Lists(ListsOptions(folder=Path(folder)))
        states, undos = list[bytes](), list[Undoable]()
        for tool, names in done:
            states.append(path.read_bytes())
            with suppress(ToolFailure):
                result = await getattr(lists, tool)(", ".join(names))
                if isinstance(result, Undoable):
                    undos.append(result)
                    continue
            assert path.read_bytes() == states.pop()
        for result in reversed(undos):
            await result.undo()
            text = states.pop()
            assert path.read_bytes() == (text or b"# Shopping\n\n")


@given(st.lists(lines), st.lists(things, min_size=1, unique=True), st.lists(things))
def test_an_undo_on_a_list_that_goes_on_touches_no_other_line(
    written: list[str], added: list[str], later: list[str]
) -> None:
    before = "".join(f"{line}\n" for line in written)
    made = with_added(before, added)
    now = with_added(made.text, [f"later {each}" for each in later]).text
    text, names = without_change(now, before, made.text)
    assert names == made.added or set(names) == set(made.added)
    kept = [line for line in now.split("\n") if "later" in line]
    assert [line for line in text.split("\n") if "later" in line] == kept
    assert sorted(text.split("\n")) == sorted([*before.split("\n"), *kept])


# Timers.


@pytest.fixture
def time() -> MovedTime:
    return MovedTime()


@pytest.fixture
async def timers(tmp_path: Path, time: MovedTime) -> Any:
    made = Timers(None, services_of(tmp_path, HeardAnnouncer(), time))
    yield made
    await made.aclose()


async def set_now(timers: Timers) -> list[Any]:
    return await timers._store.all()  # pyright: ignore[reportPrivateUsage]


async def test_what_was_set_is_cancelled(timers: Timers) -> None:
    assert (
        await undo_of(timers.set_timer("ten minutes", "pasta")) == "The pasta timer is cancelled."
    )
    assert await undo_of(timers.set_alarm("at 7")) == "The alarm is cancelled."
    words = await undo_of(timers.set_reminder("call mum", "at 9"))
    assert words == "The reminder to call mum is cancelled."
    assert await set_now(timers) == []


async def test_what_was_cancelled_runs_on_as_if_it_had_not_been(
    timers: Timers, time: MovedTime
) -> None:
    await timers.set_timer("ten minutes", "pasta")
    await timers.set_alarm("every weekday at 7", "work")
    before = await set_now(timers)
    result = await timers.cancel_timer("everything")
    time.present += timedelta(seconds=60)
    words = "The pasta timer has 9 minutes left. The work alarm is set for 7 PM every weekday."
    assert await heard(result) == words
    assert await set_now(timers) == before


async def test_what_was_changed_has_its_time_again(timers: Timers) -> None:
    await timers.set_timer("ten minutes", "pasta")
    before = await set_now(timers)
    words = await undo_of(timers.change_timer("pasta", "five minutes", "add"))
    assert words == "The pasta timer has 10 minutes left."
    assert await set_now(timers) == before


async def test_what_somebody_has_changed_since_stays(timers: Timers) -> None:
    first = await timers.set_timer("ten minutes", "pasta")
    second = await timers.change_timer("pasta", "20 minutes")
    await timers.change_timer("pasta", "30 minutes")
    before = await set_now(timers)
    assert [await heard(first), await heard(second)] == [CHANGED, CHANGED]
    assert await set_now(timers) == before


async def test_a_timer_that_would_have_ended_by_now_is_not_set_again(
    timers: Timers, time: MovedTime
) -> None:
    await timers.set_timer("a minute")
    result = await timers.cancel_timer()
    time.present += timedelta(seconds=61)
    assert await heard(result) == "Its time has passed by now, so I can't undo that."
    assert await set_now(timers) == []


async def test_what_was_stopped_does_not_ring_again(tmp_path: Path, time: MovedTime) -> None:
    store = Timers(None, services_of(tmp_path, HeardAnnouncer(), time))
    await store.set_timer("a minute")
    (entry,) = await set_now(store)
    await store._store.update(replace(entry, state="ringing"))  # pyright: ignore[reportPrivateUsage]
    assert type(await store.cancel_timer()) is VerbatimResult
    await store.aclose()


timer_deeds = st.one_of(
    st.tuples(st.just("set_timer"), st.tuples(st.sampled_from(["9 minutes", "an hour"]))),
    st.tuples(st.just("set_alarm"), st.tuples(st.sampled_from(["at 7", "every monday at 8"]))),
    st.tuples(st.just("set_reminder"), st.tuples(st.just("call mum"), st.just("at 9"))),
    st.tuples(
        st.just("change_timer"),
        st.tuples(st.sampled_from(["timer", "last"]), st.sampled_from(["5 more minutes", "at 10"])),
    ),
    st.tuples(st.just("cancel_timer"), st.tuples(st.sampled_from(["last", "all alarms", "all"]))),
)


@given(st.lists(timer_deeds, max_size=8), st.lists(st.booleans(), min_size=8, max_size=8))
@settings(max_examples=40, deadline=None)
async def test_undoing_everything_leaves_what_is_set_as_it_was(
    done: list[tuple[str, tuple[str, ...]]], waits: list[bool]
) -> None:
    time = MovedTime()
    with TemporaryDirectory() as folder:
        timers = Timers(None, services_of(Path(folder), HeardAnnouncer(), time))
        made = list[tuple[list[Any], Undoable]]()
        for (tool, arguments), wait in zip(done, waits, strict=False):
            before = await set_now(timers)
            if wait:
                time.present += timedelta(seconds=20)
            with suppress(ToolFailure):
                result = await getattr(timers, tool)(*arguments)
                if isinstance(result, Undoable):
                    made.append((before, result))
                    continue
            assert await set_now(timers) == before
        for before, result in reversed(made):
            await result.undo()
            assert await set_now(timers) == before
        await timers.aclose()


# Home Assistant.


class KeptHome(Link):
    """A home that keeps what it is told."""

    async def carry_out(self, orders: Any) -> Home:
        self.orders += orders
        states = dict[str, tuple[str, Any]]()
        for order in orders:
            for each in self.home.now(order.devices):
                was_on = {"turn_on": "on", "turn_off": "off", "toggle": "on"}
                state = was_on.get(order.service, next(iter(order.states), each.state))
                if order.service == "toggle" and each.state == "on":
                    state = "off"
                given_ = dict(order.data)
                if "brightness_pct" in given_:
                    given_["brightness"] = round(given_.pop("brightness_pct") / 100 * 255)
                if "position" in given_:
                    given_["current_position"] = given_.pop("position")
                if given_.pop("color_name", None):
                    given_ = {"hs_color": [1, 2], "color_mode": "hs"}
                elif named := next((name for name in given_ if "color" in name), None):
                    mode = named.removesuffix("_kelvin").removesuffix("_color")
                    given_["color_mode"] = mode
                states[each.id] = (state, {**each.attributes, **given_})
        self.home = self.home.with_states(states)
        return self.home


def state_of(home: Home, key: str) -> tuple[Any, ...]:
    (one,) = (each for each in home.devices if each.id == key)
    named = ("brightness", "temperature", "volume_level", "current_position")
    return one.state, one.attributes.get("color_mode"), *map(one.number, named)


@pytest.mark.parametrize("action", ["on", "off", "toggle"])
async def test_each_light_is_again_as_it_was(action: Any) -> None:
    link = KeptHome(HOME)
    result = await toolset(link).control_home("all the lights", action)
    assert await heard(result)
    for each in HOME.devices:
        if each.domain in ("light", "switch"):
            before, now = state_of(HOME, each.id), state_of(link.home, each.id)
            assert now[0] == before[0]
            assert now[2:] == pytest.approx(before[2:], abs=3)


@pytest.mark.parametrize(
    ("said", "value", "key"),
    [
        ("kitchen lights", "10 percent", "light.kitchen_lights"),
        ("desk lamp", "blue", "light.office_rgbw_lights"),
        ("ceiling lights", "blue", "light.ceiling_lights"),
        ("night light", "40 percent", "light.bed_light"),
        ("heating", "warmer", "climate.heatpump"),
        ("thermostat", "off", "climate.hvac"),
        ("walkman", "quieter", "media_player.walkman"),
        ("living room window", "20 percent", "cover.living_room_window"),
    ],
)
async def test_a_value_is_again_what_it_was(said: str, value: str, key: str) -> None:
    link = KeptHome(HOME)
    result = await toolset(link).set_home(said, value)
    assert state_of(link.home, key) != state_of(HOME, key)
    assert await heard(result) not in ("", CHANGED)
    now, before = state_of(link.home, key), state_of(HOME, key)
    assert now[0] == before[0]
    if before[0] != "off":
        assert now[1] == before[1]
        assert now[2:] == pytest.approx(before[2:], abs=3)


@pytest.mark.parametrize(
    ("key", "deed"),
    [
        ("lock.front_door", "lock"),
        ("lock.front_door", "unlock"),
        ("cover.garage_door", "close"),
        ("scene.movie_night", "on"),
        ("script.good_night", "on"),
        ("media_player.bedroom", "next"),
        ("media_player.bedroom", "off"),
        ("vacuum.demo_vacuum_0_ground_floor", "start"),
    ],
)
def test_what_is_not_certain_has_no_way_back(key: str, deed: Any) -> None:
    (order,) = orders([device(key)], deed)
    assert order_back(order, device(key)) is None


def test_nothing_that_may_let_somebody_in_has_a_way_back() -> None:
    for each in HOME.devices:
        for deed in ("on", "off", "open", "close", "lock", "unlock", "toggle", "start"):
            for order in orders([each], deed):
                way = order_back(order, each)
                guarded = each.domain == "lock" or each.id == "cover.garage_door"
                assert way is None or not guarded


async def test_a_light_that_somebody_has_switched_since_stays() -> None:
    link = KeptHome(HOME)
    result = await toolset(link).control_home("kitchen lights", "off")
    link.home = HOME
    link.orders.clear()
    assert await heard(result) == CHANGED
    assert link.orders == []


async def test_what_of_a_room_has_no_way_back_is_said() -> None:
    link = KeptHome(HOME)
    result = await toolset(link).control_home("bedroom", "off")
    assert isinstance(result, Undoable)
    told = await heard(result)
    assert told.endswith("I can't undo the rest.") == any(
        order.domain == "media_player" for order in link.orders
    )


# In an agent.


def test_a_toolset_that_changes_nothing_brings_no_undo(tmp_path: Path) -> None:
    assert undo_for([Calculator()]) == []
    assert undo_for([Calculator(), Lists(ListsOptions(folder=tmp_path))]) == [UNDO]
    assert undo_for([Timers()]) == [UNDO]
    assert undo_for([toolset(Link(HOME))]) == [UNDO]


@pytest.mark.parametrize("words", ["undo that", "take that back", "no, put it back as it was"])
async def test_a_conversation_takes_a_list_s_change_back(
    lists: Lists, shopping: Path, words: str
) -> None:
    before = shopping.read_bytes()
    agent = CaalAgent(settings=plain_settings(), tiers={}, warm=False, tools=[lists])
    model = ScriptedModel(
        [ScriptedCall("add_to_list", {"items": "bread"})], [ScriptedCall("undo", {})]
    )
    async with AgentConversation(agent, model) as talk:
        tools = [entry.exposed for entry in agent.table]
        await talk.say("put bread on the shopping list")
        turn = await talk.say(words)
        assert turn.text == "I've taken bread off the shopping list again."
        assert [entry.exposed for entry in agent.table] == tools
    assert tools[-1] == "undo"
    assert shopping.read_bytes() == before
