"""The devices of a home that Assist may use, and what a connection to its Home Assistant does.

Home Assistant's answers are taken as they come: what has another form than it should is left out,
and texts are cut.
"""

from __future__ import annotations

import heapq
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

from caal_node.core.errors import ToolBroke, ToolFailure, ToolOutside, ToolRefused, ToolUnavailable
from caal_node.network.guard import refusal_in
from caal_node.policy.heard_words import stem, words

# What kinds of devices people speak of: "the lights", "a window", "the temperature".

Stems = tuple[str, ...]


@lru_cache(4096)
def stems_of(text: str) -> Stems:
    """Return the words of a text in order, without case and endings."""
    return tuple(stem(word) for word in words(text))


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of devices."""

    spelt: tuple[Stems, ...]
    """The ways to say it, each as stems."""
    selectors: frozenset[str]
    """Home Assistant's domains (`light`), or domains with a device class (`cover.garage`)."""
    by_name: frozenset[str] = frozenset()
    """Domains of which a device is of the kind where its name says so: a switch "Tree lights"."""

    def has(self, device: Device) -> bool:
        """Say whether a device is of this kind."""
        if not self.selectors.isdisjoint((device.domain, f"{device.domain}.{device.kind}")):
            return True
        if device.domain not in self.by_name:
            return False
        named = {stem for name in device.names for stem in stems_of(name)}
        return any(named.issuperset(each) for each in self.spelt)


def _kind(spelt: str, selectors: str, by_name: str = "") -> Kind:
    ways = tuple(stems_of(each) for each in spelt.split(","))
    return Kind(ways, frozenset(selectors.split()), frozenset(by_name.split()))


KINDS: Final = (
    _kind("light, lamp, lighting, bulb", "light", "switch input_boolean"),
    _kind("plug, socket, outlet, switch", "switch"),
    _kind("fan, ventilator", "fan", "switch"),
    _kind(
        "blind, shutter, curtain, shade, awning, roller",
        "cover.blind cover.shutter cover.curtain cover.shade cover.awning cover.",
    ),
    _kind(
        "garage, garage door, gate",
        "cover.garage cover.gate binary_sensor.garage_door",
        "cover binary_sensor",
    ),
    _kind("window", "cover.window binary_sensor.window", "cover binary_sensor"),
    _kind(
        "door",
        "lock cover.door cover.garage cover.gate binary_sensor.door binary_sensor.garage_door "
        "binary_sensor.opening",
        "cover binary_sensor",
    ),
    _kind("lock", "lock"),
    _kind(
        "thermostat, heating, heater, radiator, climate, air conditioning, air conditioner",
        "climate water_heater",
        "switch",
    ),
    _kind(
        "television, tv, telly",
        "media_player.tv media_player.receiver media_player.projector",
        "media_player switch remote",
    ),
    _kind("speaker, music, player, radio, media, sound, volume", "media_player"),
    _kind("vacuum, vacuum cleaner, hoover, robot", "vacuum"),
    _kind("mower, lawn mower", "lawn_mower"),
    _kind("humidifier, dehumidifier", "humidifier", "switch"),
    _kind("valve, tap", "valve", "switch"),
    _kind("scene", "scene"),
    _kind("script, routine", "script"),
    _kind("automation", "automation"),
    _kind("temperature, warm, cold, hot", "sensor.temperature climate"),
    _kind("humidity, humid, damp", "sensor.humidity humidifier"),
    _kind("battery", "sensor.battery binary_sensor.battery"),
    _kind("power, consumption, electricity", "sensor.power sensor.energy"),
    _kind(
        "motion, movement, presence",
        "binary_sensor.motion binary_sensor.occupancy binary_sensor.presence binary_sensor.moving",
    ),
    _kind("smoke, gas", "binary_sensor.smoke binary_sensor.gas binary_sensor.carbon_monoxide"),
    _kind("alarm", "alarm_control_panel", "switch"),
    _kind("leak, water, moisture", "binary_sensor.moisture sensor.moisture"),
    _kind("sensor", "sensor binary_sensor"),
    _kind("who, person, people, anyone, anybody, somebody, everyone, everybody", "person"),
)
EVERYTHING: Final = frozenset(stems_of("everything anything device thing"))
"""Words that stand for any kind."""


def kinds_in(said: Stems) -> list[tuple[Kind, Stems]]:
    """Return each kind that stems name, with the stems beside its words; longest words first."""
    found = [
        (len(mine), kind, said[:at] + said[at + len(mine) :])
        for kind in KINDS
        for mine in kind.spelt
        for at in range(len(said) - len(mine) + 1)
        if said[at : at + len(mine)] == mine
    ]
    return [(kind, rest) for _, kind, rest in sorted(found, key=lambda each: -each[0])]


# What can be done to devices, which service of Home Assistant does it, and what follows.

Action: TypeAlias = Literal[
    "on", "off", "toggle", "open", "close", "stop", "lock", "start", "pause", "next"
]
Deed: TypeAlias = Action | Literal["unlock"]

SWITCHED: Final = frozenset(
    {
        "light", "switch", "fan", "input_boolean", "media_player", "humidifier", "climate",
        "water_heater", "siren", "remote", "automation", "group",
    }
)  # fmt: skip
GUARDED_COVERS: Final = frozenset({"garage", "gate", "door"})
"""Covers by which somebody could come in."""
WHOLE_ROOM: Final = frozenset({"light", "switch", "fan", "media_player"})
"""What "turn off the kitchen" turns off. Heating, blinds and locks are to be named."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A service, and the states that a device has when it is done; none where that is not seen."""

    service: str
    states: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Order:
    """One service to be called for some devices."""

    domain: str
    service: str
    devices: tuple[Device, ...]
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    states: frozenset[str] = frozenset()
    """States of which each device has one when it is done."""
    attributes: Mapping[str, float] = field(default_factory=dict[str, float])
    """Numbers that it has then, to within `NEARLY`."""


def _effect(service: str, states: str = "") -> Effect:
    return Effect(service, frozenset(states.split()))


_EFFECTS: Final[Mapping[tuple[str, Deed], Effect]] = {
    ("cover", "on"): _effect("open_cover", "open opening"),
    ("cover", "open"): _effect("open_cover", "open opening"),
    ("cover", "off"): _effect("close_cover", "closed closing"),
    ("cover", "close"): _effect("close_cover", "closed closing"),
    ("cover", "stop"): _effect("stop_cover"),
    ("cover", "toggle"): _effect("toggle"),
    ("valve", "open"): _effect("open_valve", "open opening"),
    ("valve", "on"): _effect("open_valve", "open opening"),
    ("valve", "close"): _effect("close_valve", "closed closing"),
    ("valve", "off"): _effect("close_valve", "closed closing"),
    ("valve", "stop"): _effect("stop_valve"),
    ("lock", "lock"): _effect("lock", "locked locking"),
    ("lock", "close"): _effect("lock", "locked locking"),
    ("lock", "on"): _effect("lock", "locked locking"),
    ("lock", "unlock"): _effect("unlock", "unlocked unlocking open"),
    ("vacuum", "on"): _effect("start", "cleaning"),
    ("vacuum", "start"): _effect("start", "cleaning"),
    ("vacuum", "off"): _effect("return_to_base", "returning docked"),
    ("vacuum", "stop"): _effect("return_to_base", "returning docked"),
    ("vacuum", "pause"): _effect("pause", "paused"),
    ("lawn_mower", "on"): _effect("start_mowing", "mowing"),
    ("lawn_mower", "start"): _effect("start_mowing", "mowing"),
    ("lawn_mower", "pause"): _effect("pause", "paused"),
    ("lawn_mower", "off"): _effect("dock", "returning docked"),
    ("lawn_mower", "stop"): _effect("dock", "returning docked"),
    ("media_player", "start"): _effect("media_play", "playing buffering"),
    ("media_player", "pause"): _effect("media_pause", "paused idle"),
    ("media_player", "stop"): _effect("media_pause", "paused idle"),
    ("media_player", "next"): _effect("media_next_track"),
    ("scene", "on"): _effect("turn_on"),
    ("scene", "start"): _effect("turn_on"),
    ("script", "on"): _effect("turn_on"),
    ("script", "start"): _effect("turn_on"),
    ("script", "off"): _effect("turn_off", "off"),
    ("script", "stop"): _effect("turn_off", "off"),
    ("button", "on"): _effect("press"),
    ("button", "start"): _effect("press"),
    ("input_button", "on"): _effect("press"),
    ("input_button", "start"): _effect("press"),
}
_OFF: Final = frozenset({"off", "standby"})


def effect_of(device: Device, deed: Deed) -> Effect | None:
    """Return what does the deed to a device; None where the device cannot do it."""
    if (known := _EFFECTS.get((device.domain, deed))) is not None:
        return known
    if device.domain not in SWITCHED:
        return None
    if deed in ("on", "start"):
        # Heating that is on says how: heat, auto. A player that is on may be idle.
        named = device.domain in ("climate", "water_heater", "media_player")
        return Effect("turn_on", frozenset() if named else frozenset({"on"}))
    if deed in ("off", "stop"):
        return Effect("turn_off", _OFF)
    return Effect("toggle") if deed == "toggle" else None


def is_guarded(device: Device) -> bool:
    """Say whether opening a device may let somebody in."""
    if device.domain == "lock":
        return True
    if device.domain != "cover":
        return False
    named = {"garage", "gate", "door"}.intersection(" ".join(device.names).casefold().split())
    return device.kind in GUARDED_COVERS or (not device.kind and bool(named))


def orders(devices: Iterable[Device], deed: Deed) -> list[Order]:
    """Return the services to be called: one for all devices of which it is the same."""
    grouped = dict[tuple[str, Effect], list[Device]]()
    for each in devices:
        if (effect := effect_of(each, deed)) is not None:
            grouped.setdefault((each.domain, effect), []).append(each)
    return [
        Order(domain, effect.service, tuple(each), states=effect.states)
        for (domain, effect), each in grouped.items()
    ]


_SWITCHES: Final = frozenset({"light", "switch", "fan", "input_boolean"})
_COLOR_SERVICES: Final = frozenset({"color_name", "color_temp_kelvin"})
SET_POSITION: Final = 4
"""Home Assistant's bit of a cover, and of a media player, that a position or volume can be set."""


def order_back(order: Order, device: Device) -> Order | None:
    """Return what sets a device, as it was before `order`, back to that; None where it is not
    certain.

    That is so for all that may let somebody in (locks, garages, gates), for scenes, scripts and
    buttons, and for what is more than its state tells: players, vacuums, mowers and valves.
    """
    back = Order(device.domain, "", (device,), states=frozenset({device.state}))
    match device.domain:
        case domain if domain in _SWITCHES and device.state == "off":
            return replace(back, service="turn_off")
        case "light" if device.state == "on":
            return _light_back(order, device, back)
        case "fan" if order.service == "set_preset_mode":
            return None
        case "fan" if device.state == "on" and (speed := device.number("percentage")) is not None:
            return replace(back, service="set_percentage", data={"percentage": round(speed)})
        case domain if domain in _SWITCHES and device.state == "on":
            return replace(back, service="turn_on")
        case "climate" if order.service == "set_temperature":
            return _number_back(back, order.service, "temperature")
        case "climate" if device.state in (device.attributes.get("hvac_modes") or ()):
            return replace(back, service="set_hvac_mode", data={"hvac_mode": device.state})
        case "media_player" if order.service == "volume_set":
            return _number_back(back, order.service, "volume_level")
        case "cover" if device.state in ("open", "closed") and not is_guarded(device):
            position = device.number("current_position")
            moves = int(device.number("supported_features") or 0) & SET_POSITION
            if position is not None and moves:
                data = {"position": round(position)}
                return replace(back, service="set_cover_position", data=data, states=frozenset())
            return next(iter(orders([device], "open" if device.state == "open" else "close")))
        case _:
            return None


def _light_back(order: Order, device: Device, back: Order) -> Order | None:
    data, attributes = dict[str, Any](), dict[str, float]()
    if (brightness := device.number("brightness")) is not None:
        data["brightness_pct"] = max(1, round(brightness / 255 * 100))
        attributes["brightness"] = brightness
    if not _COLOR_SERVICES.isdisjoint(order.data):
        mode = device.attributes.get("color_mode")
        named = "color_temp_kelvin" if mode == "color_temp" else f"{mode}_color"
        if (color := device.attributes.get(named)) is None:
            return None
        data[named] = color
    return replace(back, service="turn_on", data=data, attributes=attributes)


def _number_back(back: Order, service: str, name: str) -> Order | None:
    if (value := back.devices[0].number(name)) is None:
        return None
    given = {name: value}
    return replace(back, service=service, data=given, states=frozenset(), attributes=given)


NEARLY: Final[Mapping[str, float]] = {
    "brightness": 3.0,
    "temperature": 0.5,
    "humidity": 1.0,
    "volume_level": 0.015,
}
"""How far what a device says may lie from what it was told, in the attribute's own unit. Percent
become 255 steps of brightness, and most thermostats know half degrees."""


def can_be_seen(order: Order) -> bool:
    """Say whether the state of a device tells that an order was carried out."""
    return bool(order.states or order.attributes)


def is_done(order: Order, device: Device) -> bool:
    """Say whether a device is as an order wants it; True where that cannot be seen."""
    if order.states and device.state not in order.states:
        return False
    for name, wanted in order.attributes.items():
        got = device.number(name)
        if got is None or abs(got - wanted) > NEARLY[name]:
            return False
    return True


ASSISTANT: Final = "conversation"
"""What Home Assistant calls Assist in its lists of exposed entities."""
DEVICES_MAX: Final = 2_000
"""Devices that are read: ten times what people expose, which is told in the documentation."""
NAME_CHARS: Final = 80
STATE_CHARS: Final = 255
"""Home Assistant's own limit of a state."""
NAMES_MAX: Final = 12
"""Names of one device or area that are read."""
ABSENT: Final = frozenset({"unavailable", "unknown"})


@dataclass(frozen=True, slots=True)
class Area:
    """A room with its floor. The names have the aliases behind the name."""

    id: str
    names: tuple[str, ...]
    floor: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.names[0]


@dataclass(frozen=True, slots=True)
class Device:
    """One entity, as it is now."""

    id: str
    names: tuple[str, ...]
    """The name, and behind it the aliases."""
    state: str
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    area: Area | None = None

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def domain(self) -> str:
        return self.id.partition(".")[0]

    @property
    def kind(self) -> str:
        """Home Assistant's device class, such as `garage` or `temperature`; "" for none."""
        return str(self.attributes.get("device_class") or "")

    @property
    def is_reachable(self) -> bool:
        return self.state != "unavailable"

    def number(self, attribute: str) -> float | None:
        """Return an attribute that is a number, or None."""
        value = self.attributes.get(attribute)
        return float(value) if isinstance(value, int | float) and value == value else None


@dataclass(frozen=True, slots=True)
class Home:
    """Everything that Assist may use, with the unit in which temperatures are told."""

    devices: tuple[Device, ...] = ()
    areas: tuple[Area, ...] = ()
    temperature_unit: str = "°C"
    name: str = ""
    version: str = ""

    def with_states(self, states: Mapping[str, tuple[str, Mapping[str, Any]]]) -> Home:
        """Return the same home with newer states and attributes, by entity id."""
        newer = (
            replace(each, state=states[each.id][0], attributes=states[each.id][1])
            if each.id in states
            else each
            for each in self.devices
        )
        return replace(self, devices=tuple(newer))

    def now(self, devices: Iterable[Device]) -> tuple[Device, ...]:
        """Return `devices` as they are in this home, each by the name that it has in `devices`."""
        known = {each.id: each for each in self.devices}
        return tuple(replace(known.get(each.id, each), names=each.names) for each in devices)


def exposed_entities(answer: object) -> list[str]:
    """Return the ids that Assist may use, of an answer to `homeassistant/expose_entity/list`."""
    told = _mapping(_mapping(answer).get("exposed_entities"))
    allowed = [name for name, to in told.items() if _mapping(to).get(ASSISTANT) is True]
    return heapq.nsmallest(DEVICES_MAX, allowed)  # to sort a hundred thousand is one step of C


def read_areas(areas: object, floors: object) -> dict[str, Area]:
    """Read the registries of areas and floors; the result is by the area's id."""
    named = {
        str(floor.get("floor_id")): _names(floor.get("name"), floor.get("aliases"))
        for floor in _mappings(floors)
    }
    found = dict[str, Area]()
    for each in _mappings(areas):
        key = str(each.get("area_id"))
        if names := _names(each.get("name"), each.get("aliases")):
            found[key] = Area(key, names, named.get(str(each.get("floor_id")), ()))
    return found


def read_devices(
    allowed: Iterable[str],
    states: Mapping[str, tuple[str, Mapping[str, Any]]],
    entries: object,
    device_registry: object,
    areas: Mapping[str, Area],
) -> tuple[Device, ...]:
    """Join the states of what is allowed with the registries of entities and devices.

    An entity is in its own area, or else in that of its device, or of the device that this is a
    part of.
    """
    registered = _mapping(entries)
    known = {str(each.get("id")): each for each in _mappings(device_registry)}
    rooms = {
        key: each.get("area_id")
        or _mapping(known.get(str(each.get("parent_device_id")))).get("area_id")
        for key, each in known.items()
    }
    found = list[Device]()
    for key in allowed:
        if key not in states:
            continue
        entry = _mapping(registered.get(key))
        if entry.get("disabled_by") or entry.get("hidden_by"):
            continue
        state, attributes = states[key]
        called = attributes.get("friendly_name") or key.partition(".")[2].replace("_", " ")
        area = areas.get(str(entry.get("area_id") or rooms.get(str(entry.get("device_id")))))
        names = _names(called, entry.get("aliases"))
        found.append(Device(key, names or (key,), state[:STATE_CHARS], attributes, area))
    return tuple(found)


def read_states(answer: object) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """Return the state and the attributes by entity id, of an answer to `get_states`."""
    return {
        str(each.get("entity_id")): (str(each.get("state")), _mapping(each.get("attributes")))
        for each in _mappings(answer)
    }


def _names(name: object, aliases: object) -> tuple[str, ...]:
    listed = cast("list[object]", aliases) if isinstance(aliases, list) else []
    # The alias None stands for the name itself.
    texts = [each for each in (name, *listed) if isinstance(each, str) and each.strip()]
    cut = (" ".join(each.split())[:NAME_CHARS] for each in texts)
    return tuple(dict.fromkeys(cut))[:NAMES_MAX]


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return [_mapping(each) for each in listed]


# A connection to a Home Assistant, however it is reached, and the errors of one.

CALL_S: Final = 12.0
"""The time for all of one tool's call: a slow device answers Home Assistant within ten seconds."""
SETTLE_S: Final = 1.5
"""The time in which a device that was told to change says that it has."""
SETTLE_UNSEEN_S: Final = 0.5
"""The same where its state says nothing of it: a track that is skipped, a blind that stops."""
UNREACHABLE: Final = "I can't reach Home Assistant right now."
REFUSED: Final = "Home Assistant doesn't let me in."
NOT_TAKEN: Final = (
    "Home Assistant does not take the token; make a new one in its profile and run: "
    "caal-node tools add home_assistant"
)
FAILED: Final = "Home Assistant could not do that."


class HomeLink(Protocol):
    """One open connection, which lives as long as one call of a tool."""

    async def read_home(self) -> Home:
        """Return the home as it is now, with what Assist may use and nothing else.

        Raises:
            ToolFailure: it cannot be had.
        """
        ...

    async def carry_out(self, orders: Sequence[Order]) -> Home:
        """Call the services, wait at most `SETTLE_S` for what they do, and return the home.

        Raises:
            ToolFailure: Home Assistant refuses one of them.
        """
        ...


class HomeAssistantServer(Protocol):
    """A Home Assistant to which a connection can be opened."""

    def open(self) -> AbstractAsyncContextManager[HomeLink]:
        """Open a connection.

        Raises:
            ToolUnavailable: it cannot be reached, or does not answer.
            ToolRefused: it does not take the token.
        """
        ...


def settle_s(orders: Sequence[Order]) -> float:
    """Return the seconds to wait for what orders do."""
    return SETTLE_S if any(can_be_seen(each) for each in orders) else SETTLE_UNSEEN_S


def unreachable(why: str) -> ToolUnavailable:
    """Return the error for a Home Assistant that does not answer."""
    failure = ToolUnavailable(f"Home Assistant cannot be reached: {why}")
    failure.words = UNREACHABLE
    return failure


def too_talkative() -> ToolUnavailable:
    """Return the error for a Home Assistant that says more than is read."""
    failure = ToolUnavailable(
        "Home Assistant says more than can be read: expose fewer devices to Assist."
    )
    failure.words = (
        "Your home has more to say than I can read. Please expose fewer devices to the assistant."
    )
    return failure


def lost(error: Exception) -> ToolFailure:
    """Return the error for a connection that could not be made or was lost."""
    if (why := refusal_in(error)) is not None:
        return ToolOutside(f"Home Assistant is where this process may not connect to: {why}")
    return unreachable(_why(error))


def _why(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens at its address"
    if isinstance(error, socket.gaierror):
        return "its host's name is not known here"
    return type(error).__name__


def turned_away(why: str) -> ToolRefused:
    """Return the error for a token that is not taken, or may not do enough."""
    failure = ToolRefused(why)
    failure.words = REFUSED
    return failure


def failed(why: str) -> ToolBroke:
    """Return the error for a service that Home Assistant could not carry out."""
    failure = ToolBroke(f"Home Assistant could not do that: {why}")
    failure.words = FAILED
    return failure
