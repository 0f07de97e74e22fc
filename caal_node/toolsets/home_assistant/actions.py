"""What can be done to devices, which service of Home Assistant does it, and what follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from caal_node.toolsets.home_assistant.devices import Device

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
