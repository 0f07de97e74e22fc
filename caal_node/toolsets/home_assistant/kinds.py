"""What kinds of devices people speak of: "the lights", "a window", "the temperature"."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from caal_node.policy.heard_words import stem, words
from caal_node.toolsets.home_assistant.devices import Device

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
