"""The devices of a home that Assist may use, read from what Home Assistant answers.

Home Assistant's answers are taken as they come: what has another form than it should is left out,
and texts are cut.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

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
