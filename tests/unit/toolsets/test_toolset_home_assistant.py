"""Which devices are meant, what is done to them, and how it is said, over a recorded home."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from caal_node.core.errors import (
    ConfigError,
    InvalidArguments,
    NetworkRefused,
    ToolBroke,
    ToolFailure,
    ToolOutside,
    ToolUnavailable,
)
from caal_node.toolsets import http_service
from caal_node.toolsets.home_assistant import (
    HomeAssistant,
    HomeAssistantOptions,
    links,
)
from caal_node.toolsets.home_assistant.devices import (
    DEVICES_MAX,
    Area,
    Device,
    Home,
    HomeLink,
    Order,
    effect_of,
    exposed_entities,
    is_done,
    is_guarded,
    lost,
    read_areas,
    read_devices,
    read_states,
    too_talkative,
)
from caal_node.toolsets.home_assistant.links import (
    MESSAGES_MAX,
    ROW_CHARS_MAX,
    _WebsocketLink,  # pyright: ignore[reportPrivateUsage]
    home_of_context,
    intent_of,
)
from caal_node.toolsets.home_assistant.naming import Ambiguous, NotFound, find
from caal_node.toolsets.home_assistant.spoken_states import records, sentence, which_sentence
from caal_node.toolsets.home_assistant.values import Unfit, is_settable, order_for
from caal_node.toolsets.http_service import let_go, read_object
from tests.stand_ins.home_assistant_stand_in import recorded


def recorded_home() -> Home:
    areas = read_areas(
        recorded("config/area_registry/list"), recorded("config/floor_registry/list")
    )
    devices = read_devices(
        exposed_entities(recorded("homeassistant/expose_entity/list")),
        read_states(recorded("get_states")),
        recorded("config/entity_registry/get_entries"),
        recorded("config/device_registry/list"),
        areas,
    )
    return Home(devices, tuple(areas.values()))


HOME = recorded_home()
LIGHTS_BELOW = {
    "light.ceiling_lights",
    "light.entrance_color_white_lights",
    "light.kitchen_lights",
    "light.living_room_rgbww_lights",
    "switch.decorative_lights",
}
LIGHTS = LIGHTS_BELOW | {"light.bed_light", "light.office_rgbw_lights"}


def device(key: str) -> Device:
    return next(each for each in HOME.devices if each.id == key)


def found(said: str, **how: Any) -> set[str]:
    return {each.id for each in find(HOME, said, usable=lambda _: True, **how).devices}


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("kitchen lights", {"light.kitchen_lights"}),
        ("the kitchen light", {"light.kitchen_lights"}),
        ("the light in the kitchen", {"light.kitchen_lights"}),
        ("reading lamp", {"light.living_room_rgbww_lights"}),
        ("the lamp on the desk", {"light.office_rgbw_lights"}),
        ("ceiling lamp", {"light.ceiling_lights"}),
        ("kitchin light", {"light.kitchen_lights"}),
        ("all the lights", LIGHTS),
        ("lights downstairs", LIGHTS_BELOW),
        ("ground floor lights", LIGHTS_BELOW),
        ("all lights except the kitchen", LIGHTS - {"light.kitchen_lights"}),
        ("kitchen and hall lights", {"light.kitchen_lights", "light.entrance_color_white_lights"}),
        ("bed light, desk lamp and the hoover", {
            "light.bed_light", "light.office_rgbw_lights", "vacuum.demo_vacuum_0_ground_floor",
        }),
        ("lounge lights", {
            "light.ceiling_lights", "light.living_room_rgbww_lights", "switch.decorative_lights",
        }),
        ("windows", {"cover.hall_window", "cover.kitchen_window", "cover.living_room_window"}),
        ("is any window open", {
            "cover.hall_window", "cover.kitchen_window", "cover.living_room_window",
        }),
        ("which doors are locked", {"lock.front_door", "lock.kitchen_door", "cover.garage_door"}),
        ("front door", {"lock.front_door"}),
        ("office thermostat", {"climate.hvac"}),
        ("heating", {"climate.heatpump"}),
        ("bedroom fan", {"fan.ceiling_fan"}),
        ("temperature outside", {"sensor.outside_temperature"}),
        ("who is home", {"person.owner"}),
        ("movie night", {"scene.movie_night"}),
        ("christmas tree", {"switch.decorative_lights"}),
        ("everything in the kitchen", {
            "light.kitchen_lights", "cover.kitchen_window", "vacuum.demo_vacuum_0_ground_floor",
        }),
    ],
)  # fmt: skip
def test_people_s_words_find_devices(said: str, wanted: set[str]) -> None:
    assert found(said) == wanted


@pytest.mark.parametrize("said", ["coffee machine", "", "the", "swing fan", "!?", "bathroom light"])
def test_what_is_not_there_is_not_found(said: str) -> None:
    with pytest.raises(NotFound) as raised:
        found(said)
    assert "There is no" in str(raised.value)


def test_the_lights_are_those_of_the_room() -> None:
    assert found("the lights", room="Kitchen") == {"light.kitchen_lights"}
    assert found("the lights", room="lounge") == found("living room lights")
    assert found("all lights", room="Kitchen") == LIGHTS
    assert found("the lights", room="a room's id") == LIGHTS


def test_one_of_several_is_asked_for() -> None:
    with pytest.raises(Ambiguous) as raised:
        found("the fan", one=True)
    assert which_sentence(raised.value.devices) == (
        "Which one do you mean: Ceiling Fan in Bedroom or Living Room Fan in Living Room?"
    )
    assert found("the fan", one=True, room="bedroom") == {"fan.ceiling_fan"}
    assert len(found("the fans", one=True)) == 2


def test_a_device_is_called_as_it_was_called() -> None:
    (lamp,) = find(HOME, "desk lamp", usable=lambda _: True).devices
    assert lamp.name == "desk lamp"
    assert HOME.now([lamp])[0].name == "desk lamp"


@given(st.text(max_size=250), st.booleans(), st.text(max_size=30))
def test_any_words_find_only_what_is_usable(said: str, one: bool, room: str) -> None:
    try:
        meant = find(HOME, said, usable=lambda each: each.domain == "light", one=one, room=room)
    except (Ambiguous, NotFound):
        return
    assert meant.devices
    assert {each.domain for each in meant.devices} == {"light"}
    assert len({each.id for each in meant.devices}) == len(meant.devices)


WORDS = [
    *("the", "kitchen", "hall", "lights", "lamp", "fan", "and", "except"),
    *("all", "upstairs", "bed", "door", ",", "temperature"),
]


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_any_sequence_of_a_home_s_words_is_found_or_not(said: str) -> None:
    with suppress(NotFound):
        assert find(HOME, said, usable=lambda _: True).devices


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["exposed_entities", "conversation", "light.a", "name", "aliases", "area_id",
                 "floor_id", "id", "device_id", "state", "attributes", "entity_id"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)  # fmt: skip


@given(JSON, JSON, JSON, JSON, JSON, JSON)
def test_answers_of_any_form_make_a_home(
    exposed: Any, areas: Any, floors: Any, states: Any, entries: Any, registry: Any
) -> None:
    rooms = read_areas(areas, floors)
    known = read_states(states)
    devices = read_devices(exposed_entities(exposed), known, entries, registry, rooms)
    told = records(devices)
    assert json.dumps(told)
    if devices:
        assert sentence(devices)


def test_an_entity_is_where_its_device_or_the_whole_of_it_is() -> None:
    areas = {"hall": Area("hall", ("Hall",))}
    states = {"light.a": ("on", {"friendly_name": "A"})}
    registry = [
        {"id": "part", "area_id": None, "parent_device_id": "whole"},
        {"id": "whole", "area_id": "hall"},
    ]
    for owner in ("part", "whole"):
        entries = {"light.a": {"device_id": owner, "area_id": None}}
        (light,) = read_devices(["light.a"], states, entries, registry, areas)
        assert light.area == areas["hall"]


@pytest.mark.parametrize(
    ("key", "value", "service", "data"),
    [
        ("light.bed_light", "40 percent", "turn_on", {"brightness_pct": 40}),
        ("light.bed_light", "forty percent", "turn_on", {"brightness_pct": 40}),
        ("light.bed_light", "0%", "turn_off", {}),
        ("light.bed_light", "full brightness", "turn_on", {"brightness_pct": 100}),
        ("light.bed_light", "blue", "turn_on", {"color_name": "blue"}),
        ("light.bed_light", "warm white", "turn_on", {"color_temp_kelvin": 2700}),
        ("light.bed_light", "4000 kelvin", "turn_on", {"color_temp_kelvin": 4000}),
        ("light.kitchen_lights", "a bit brighter", "turn_on", {"brightness_pct": 91}),
        ("light.kitchen_lights", "dimmer by 10 percent", "turn_on", {"brightness_pct": 61}),
        ("climate.hvac", "23 degrees", "set_temperature", {"temperature": 23}),
        ("climate.hvac", "77 fahrenheit", "set_temperature", {"temperature": 25}),
        ("climate.hvac", "warmer", "set_temperature", {"temperature": 22}),
        ("climate.hvac", "two degrees colder", "set_temperature", {"temperature": 19}),
        ("climate.hvac", "heat", "set_hvac_mode", {"hvac_mode": "heat"}),
        ("climate.hvac", "fan only", "set_hvac_mode", {"hvac_mode": "fan_only"}),
        ("cover.hall_window", "half open", "set_cover_position", {"position": 50}),
        ("fan.ceiling_fan", "66 percent", "set_percentage", {"percentage": 66}),
        ("fan.living_room_fan", "sleep", "set_preset_mode", {"preset_mode": "sleep"}),
        ("media_player.walkman", "30 percent", "volume_set", {"volume_level": 0.3}),
        ("media_player.walkman", "quieter", "volume_set", {"volume_level": 0.9}),
        ("humidifier.humidifier", "50 percent", "set_humidity", {"humidity": 50}),
        ("number.volume", "60", "set_value", {"value": 60}),
        ("light.bed_light", "on", "turn_on", {}),
        ("cover.kitchen_window", "closed", "close_cover", {}),
        ("select.speed", "light speed", "select_option", {"option": "light_speed"}),
    ],
)  # fmt: skip
def test_words_become_a_service(key: str, value: str, service: str, data: dict[str, Any]) -> None:
    order = order_for(device(key), value)
    assert (order.service, order.data) == (service, data)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("light.bed_light", "purply", "0 to 100 percent"),
        ("light.bed_light", "400 percent", "0 to 100"),
        ("climate.hvac", "90 degrees", "7 to 35 degrees"),
        ("cover.kitchen_window", "half open", "opened and closed"),
        ("select.speed", "warp", "light_speed"),
        ("lock.front_door", "50 percent", "cannot be set"),
    ],
)
def test_what_does_not_fit_says_what_does(key: str, value: str, why: str) -> None:
    with pytest.raises(Unfit, match=why):
        order_for(device(key), value)


@given(st.sampled_from([each for each in HOME.devices if is_settable(each)]), st.text(max_size=120))
def test_any_value_is_an_order_or_a_reason(one: Device, value: str) -> None:
    try:
        order = order_for(one, value)
    except Unfit:
        return
    assert order.devices == (one,)
    assert json.dumps(order.data)


def test_a_fahrenheit_home_is_set_in_fahrenheit() -> None:
    warm = replace(
        device("climate.hvac"),
        attributes={"min_temp": 45, "max_temp": 95, "temperature": 70, "hvac_modes": []},
    )
    assert order_for(warm, "72", "°F").data == {"temperature": 72}
    assert order_for(warm, "20 celsius", "°F").data == {"temperature": 68}


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("light.kitchen_lights", "The kitchen lights are on, at 71 percent."),
        ("lock.front_door", "The front door is locked."),
        ("binary_sensor.basement_floor_wet", "The basement floor wet is dry."),
        ("sensor.outside_temperature", "The outside temperature is 15.6 degrees Celsius."),
        ("sensor.outside_humidity", "The outside humidity is 54 percent."),
        ("switch.ac", "The AC is off."),
        ("cover.hall_window", "The hall window is 10 percent open."),
        (
            "climate.heatpump",
            "The HeatPump is heating, set to 20 degrees Celsius, and it's 25 now.",
        ),
    ],
)
def test_a_state_is_said(key: str, said: str) -> None:
    assert sentence([device(key)]) == said


def test_several_are_said_by_their_states_the_open_ones_first() -> None:
    windows = find(HOME, "windows", usable=lambda _: True).devices
    assert sentence(windows) == (
        "The hall window and the living room window are open. The kitchen window is closed."
    )


def test_what_lets_somebody_in_is_guarded() -> None:
    guarded = {each.id for each in HOME.devices if is_guarded(each)}
    assert guarded == {"lock.front_door", "lock.kitchen_door", "cover.garage_door"}
    # No word of `control_home` unlocks.
    assert effect_of(device("lock.front_door"), "open") is None
    assert effect_of(device("lock.front_door"), "off") is None


def test_a_brightness_of_255_steps_is_near_enough() -> None:
    lamp = device("light.kitchen_lights")
    order = Order("light", "turn_on", (lamp,), attributes={"brightness": 181.0})
    assert is_done(order, lamp)
    assert not is_done(replace(order, attributes={"brightness": 200.0}), lamp)
    heating = device("climate.hvac")
    order = order_for(heating, "22.5 degrees")
    assert not is_done(order, heating)


def context() -> str:
    return recorded("mcp.context")["result"]["content"][0]["text"]


def test_assist_s_own_words_are_read_as_the_same_home() -> None:
    home = home_of_context(context())
    names = {each.name: each for each in home.devices}
    assert set(names) == {each.name for each in HOME.devices} - {"Good night"}
    assert names["Kitchen Lights"].area is not None
    assert names["Kitchen Lights"].area.name == "Kitchen"
    assert names["Bed Light"].names == ("Bed Light", "night light")
    assert sentence([names["Front Door"]]) == "The front door is locked."
    assert records([names["Ceiling Lights"]])["devices"][0]["brightness_percent"] == 71


def rows_of(number: int) -> str:
    rows = (
        f"- names: Lamp {each}\n  domain: light\n  state: 'on'\n  areas: Hall\n"
        for each in range(number)
    )
    return json.dumps({"result": f"Live Context:\n{''.join(rows)}"})


def test_of_50_000_rows_no_more_are_built_than_devices_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built = list[int]()
    load = yaml.load

    def counted(text: str, **how: Any) -> object:
        built.append(len(text))
        return load(text, **how)

    monkeypatch.setattr(yaml, "load", counted)
    assert len(home_of_context(rows_of(50_000)).devices) == DEVICES_MAX
    assert len(built) == DEVICES_MAX
    assert max(built) < 100


def test_a_row_that_is_no_device_costs_itself_alone() -> None:
    rows = json.loads(rows_of(3))["result"]
    text = rows + f"- names: {'x' * ROW_CHARS_MAX}\n- 7\n- [a]\n- names: Last\n  domain: light\n"
    names = [each.name for each in home_of_context(json.dumps({"result": text})).devices]
    assert names == ["Lamp 0", "Lamp 1", "Lamp 2", "Last"]


def test_names_that_unfold_to_gigabytes_are_none() -> None:
    """Aliases of YAML cost nothing until somebody writes them out."""
    levels = "".join(f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 12))
    row = f"- l0: &l0 aaaaaaaaaa\n{levels}  names: *l11\n  areas: *l11\n"
    named = f"{row}- names: Lamp\n  domain: light\n  attributes:\n    a: [1]\n"
    home = home_of_context(json.dumps({"result": f"Live Context:\n{named}"}))
    assert [each.name for each in home.devices] == ["Lamp"]


@given(st.lists(st.tuples(st.text(min_size=1), st.text())))
def test_rows_are_read_one_by_one_as_yaml_reads_them_together(rows: list[tuple[str, str]]) -> None:
    told = [{"names": name, "state": state} for name, state in rows]
    text = yaml.safe_dump(told)
    home = home_of_context(json.dumps({"result": f"Live Context:\n{text}"}))
    states = [state[:255] for name, state in rows if name.replace(",", "").strip()]
    assert [each.state for each in home.devices] == states


def test_every_intent_that_is_used_is_one_that_assist_has() -> None:
    offered = {
        each["name"].rpartition("__")[2] for each in recorded("mcp.tools")["result"]["tools"]
    }
    lamp = next(each for each in home_of_context(context()).devices if each.name == "Bed Light")
    for key, action in (
        ("light.bed_light", "on"),
        ("lock.front_door", "unlock"),
        ("cover.hall_window", "stop"),
        ("vacuum.demo_vacuum_0_ground_floor", "start"),
        ("media_player.walkman", "next"),
    ):
        effect = effect_of(device(key), action)  # type: ignore[arg-type]
        assert effect is not None
        name, arguments = intent_of(
            Order(key.partition(".")[0], effect.service, (device(key),)), device(key)
        )
        assert name in offered
        assert arguments["name"] == device(key).name
    assert intent_of(order_for(lamp, "40 percent"), lamp) == (
        "HassLightSet",
        {"brightness": 40, "name": "Bed Light", "area": "Bedroom"},
    )
    with pytest.raises(InvalidArguments, match="websocket"):
        intent_of(Order("select", "select_option", (lamp,)), lamp)


@given(st.one_of(st.text(max_size=80), JSON.map(json.dumps)))
def test_any_words_of_assist_make_a_home_or_a_failure(text: str) -> None:
    for given_text in (text, json.dumps({"result": f"Live Context:\n{text}"})):
        with suppress(ToolFailure):
            home_of_context(given_text)


class Link:
    """A home without a network, that does what it is told."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.orders: list[Order] = []

    async def read_home(self) -> Home:
        return self.home

    async def carry_out(self, orders: Sequence[Order]) -> Home:
        self.orders += orders
        states = {
            each.id: (next(iter(order.states), each.state), each.attributes)
            for order in orders
            for each in order.devices
        }
        return self.home.with_states(states)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[HomeLink]:
        yield self


def toolset(link: Link, **options: Any) -> HomeAssistant:
    url = "http://home.test:8123"
    chosen = HomeAssistantOptions(url=url, token=SecretStr("x"), **options)
    return HomeAssistant(chosen, server=link)


async def test_a_room_is_turned_off_without_its_heating_and_blinds() -> None:
    link = Link(HOME)
    await toolset(link).control_home(device="living room", action="off")
    assert {order.domain for order in link.orders} == {"light", "switch", "fan"}


async def test_devices_of_one_kind_are_one_service() -> None:
    link = Link(HOME)
    await toolset(link).set_home(device="lights downstairs", value="30 percent")
    (order,) = link.orders
    assert len(order.devices) == 4  # the switch has no brightness


async def test_what_a_device_cannot_do_is_said() -> None:
    with pytest.raises(InvalidArguments, match=r"Front Door \(lock\) cannot do that"):
        await toolset(Link(HOME)).control_home(device="front door", action="next")


@pytest.mark.parametrize("value", ["100 percent", "open", "up"])
async def test_a_garage_is_not_opened_by_a_value_either(value: str) -> None:
    door = device("cover.garage_door")
    door = replace(door, attributes={**door.attributes, "supported_features": 15})
    link = Link(Home((door,)))
    with pytest.raises(InvalidArguments, match="call unlock_door"):
        await toolset(link).set_home(device="garage door", value=value)
    for action in ("on", "open", "toggle"):
        with pytest.raises(InvalidArguments, match="call unlock_door"):
            await toolset(link).control_home(device="garage", action=action)
    assert not link.orders


async def test_several_doors_are_not_opened_at_once() -> None:
    link = Link(HOME)
    with pytest.raises(InvalidArguments):
        await toolset(link).unlock_door(door="all doors")
    assert not link.orders


async def test_more_than_a_hundred_do_not_change_at_once() -> None:
    many = Home(tuple(Device(f"light.n{n}", (f"Light {n}",), "off") for n in range(101)))
    with pytest.raises(InvalidArguments, match="101 devices"):
        await toolset(Link(many)).control_home(device="all lights", action="on")


async def test_check_says_what_is_missing() -> None:
    with pytest.raises(ConfigError, match="exposes nothing"):
        await toolset(Link(Home())).check()
    with pytest.raises(ConfigError, match="no area 'Cellar'; it has Kitchen"):
        await toolset(Link(HOME), room="Cellar").check()
    assert await toolset(Link(HOME), room="lounge").check() == (
        "Home Assistant exposes 33 devices in 6 rooms"
    )


@pytest.mark.parametrize(
    "url", ["home.local/lovelace", "ftp://home", "http://home/lovelace", "http://"]
)
def test_an_address_is_judged(url: str) -> None:
    with pytest.raises(ValidationError, match="address"):
        HomeAssistantOptions(url=url, token=SecretStr("x"))


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("homeassistant.local:8123", "http://homeassistant.local:8123"),
        ("homeassistant.local", "http://homeassistant.local:8123"),
        ("192.168.1.5", "http://192.168.1.5:8123"),
        ("home.example.org", "https://home.example.org"),
        ("https://home.example.org", "https://home.example.org"),
    ],
)
def test_a_scheme_and_its_own_port_may_be_left_out(url: str, meant: str) -> None:
    assert HomeAssistantOptions(url=url, token=SecretStr("x")).url == meant


def test_the_ways_to_fail_are_tool_failures() -> None:
    with pytest.raises(ToolBroke):
        home_of_context("no JSON")


def test_a_connection_that_the_owner_does_not_allow_is_told_as_such() -> None:
    behind = OSError("a client's own error")
    behind.__cause__ = NetworkRefused(1, "CAAL_NETWORK=local does not allow this connection")
    failure = lost(behind)
    assert isinstance(failure, ToolOutside)
    assert "CAAL_NETWORK=local" in str(failure)
    assert isinstance(lost(OSError("down")), ToolUnavailable)


@given(JSON, st.sampled_from([None, 2]))
def test_a_long_message_is_read_as_json_is(value: Any, indent: int | None) -> None:
    text = json.dumps({"result": value, "more": [value]}, indent=indent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_service, "AT_ONCE_CHARS", 0)
        assert repr(read_object(text)) == repr(json.loads(text))  # NaN is not itself


@given(st.text('{}[]",:1a \n\\', max_size=30))
def test_what_is_no_json_is_refused_as_such_however_long(text: str) -> None:
    try:
        wanted = json.loads(text)
    except ValueError:
        wanted = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_service, "AT_ONCE_CHARS", -1)
        try:
            found = read_object(text)
        except ValueError:
            assert wanted is None
        else:
            assert repr(found) == repr(wanted if isinstance(wanted, dict) else {})


@pytest.mark.parametrize("text", ['{"a":[' + "{}," * 500_000 + "{}]}", '{"a":' * 40_000])
def test_a_message_ends_where_it_holds_more_than_a_home(text: str) -> None:
    with pytest.raises(http_service.TooLarge):
        read_object(text)


@pytest.mark.parametrize("end", ["", ",", '"a":1'])
@pytest.mark.parametrize("within", ["[{}", '{"a":{"b":[{}]}'])
def test_what_was_read_of_a_broken_text_is_emptied_before_it_is_freed(
    end: str, within: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed: list[object] = []
    monkeypatch.setattr(http_service, "AT_ONCE_CHARS", -1)
    monkeypatch.setattr(http_service, "let_go", lambda value: (freed.extend(value), let_go(value)))
    with pytest.raises(ValueError, match=r".+"):
        read_object(within + end)
    assert freed
    assert not any(freed)


@given(st.recursive(st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_a_value_that_is_let_go_holds_nothing(value: Any) -> None:
    containers = [value]
    for each in containers:
        containers.extend(each.values() if isinstance(each, dict) else each or ())
    let_go(value)
    assert not any(containers)


class Socket:
    """A connection over which somebody says the same for ever, until an answer is due."""

    def __init__(self, floods: Any, answers_after: int) -> None:
        self._floods, self._left = floods, answers_after
        self._asked: list[dict[str, Any]] = []
        self.said = 0

    async def send(self, text: str) -> None:
        self._asked.append(json.loads(text))

    async def recv(self, *, decode: bool) -> str:
        self.said += 1
        if self._left > 0 or not self._asked:
            self._left -= 1
            return json.dumps(self._floods(self.said))
        asked = self._asked.pop(0)
        return json.dumps({"id": asked["id"], "type": "result", "success": True, "result": None})


def event(**said: Any) -> dict[str, Any]:
    return {"type": "event", "event": said}


async def test_states_that_nobody_asked_for_are_not_kept_and_have_an_end() -> None:
    def of_others(number: int) -> Any:
        return event(a={f"sensor.x{number}": {"s": "1", "a": {"much": "x" * 1000}}})

    socket: Any = Socket(of_others, 10 * MESSAGES_MAX)
    link = _WebsocketLink(socket)
    with pytest.raises(ToolUnavailable) as failed:
        await link.read_home()
    assert failed.value.words == too_talkative().words
    assert socket.said == MESSAGES_MAX + 1
    assert not link._states  # pyright: ignore[reportPrivateUsage]


async def test_an_order_is_judged_by_what_is_said_of_its_own_devices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, other = Device("light.a", ("A",), "off"), Device("light.b", ("B",), "off")
    order = Order("light", "turn_on", (one,), {}, states=frozenset({"on"}))
    looked_at: list[str] = []

    def is_done_counted(order: Order, device: Device) -> bool:
        looked_at.append(device.id)
        return is_done(order, device)

    def of_others(number: int) -> Any:
        if number < 1_000:
            return event(c={"light.b": {"+": {"s": str(number)}}})
        return event(c={"light.a": {"+": {"s": "on"}}})

    monkeypatch.setattr(links, "is_done", is_done_counted)
    socket: Any = Socket(of_others, 0)
    link = _WebsocketLink(socket)
    link._allowed = frozenset({"light.a", "light.b"})  # pyright: ignore[reportPrivateUsage]
    link._home = Home((one, other))  # pyright: ignore[reportPrivateUsage]
    home = await link.carry_out([order])
    assert home.now([one])[0].state == "on"
    assert looked_at == ["light.a", "light.a"]


async def test_a_change_that_takes_many_attributes_away_is_quick() -> None:
    many = 20_000
    link = _WebsocketLink(Socket(event, 0))  # type: ignore[arg-type]
    link._allowed = frozenset({"light.a"})  # pyright: ignore[reportPrivateUsage]
    attributes = {f"x{number}": 1 for number in range(many)}
    others = [f"y{number}" for number in range(many)]
    link._take(event(a={"light.a": {"s": "on", "a": attributes}}))  # pyright: ignore[reportPrivateUsage]
    began = time.process_time()
    link._take(event(c={"light.a": {"-": {"a": [*others, "x0", {}]}}}))  # pyright: ignore[reportPrivateUsage]
    assert time.process_time() - began < 0.5  # 6 s where each is looked for in a list
    state, left = link._states["light.a"]  # pyright: ignore[reportPrivateUsage]
    assert (state, len(left)) == ("on", many - 1)
