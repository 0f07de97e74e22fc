"""How devices are, as data for a model and as sentences for a person."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from caal_node.toolsets.home_assistant.devices import ABSENT, Device

TOLD_MAX: Final = 40
"""Devices of a result; a small model reads no more, and the result says how many there are."""
SPOKEN_MAX: Final = 8
"""Devices that a sentence names. Nobody keeps more in mind."""
_BYTE: Final = 255.0
CHOICES_MAX: Final = 5
"""Devices that a question lists."""
GROUPS_MAX: Final = 3
"""States by which more devices than that can be said: "Two are on. The other 14 are off." """
_TEXT_CHARS: Final = 80
_QUIET: Final = frozenset({"off", "closed", "locked", "not reachable", "unknown"})
"""States that are told last."""

_BINARY: Final[Mapping[str, tuple[str, str]]] = {
    "battery": ("low", "fine"),
    "battery_charging": ("charging", "not charging"),
    "carbon_monoxide": ("detecting carbon monoxide", "clear"),
    "cold": ("cold", "not cold"),
    "connectivity": ("connected", "disconnected"),
    "door": ("open", "closed"),
    "garage_door": ("open", "closed"),
    "gas": ("detecting gas", "clear"),
    "heat": ("hot", "not hot"),
    "light": ("bright", "dark"),
    "lock": ("unlocked", "locked"),
    "moisture": ("wet", "dry"),
    "motion": ("seeing motion", "seeing no motion"),
    "moving": ("moving", "still"),
    "occupancy": ("occupied", "empty"),
    "opening": ("open", "closed"),
    "plug": ("plugged in", "unplugged"),
    "presence": ("home", "away"),
    "problem": ("reporting a problem", "fine"),
    "running": ("running", "not running"),
    "safety": ("unsafe", "safe"),
    "smoke": ("detecting smoke", "clear"),
    "sound": ("hearing something", "quiet"),
    "tamper": ("tampered with", "untouched"),
    "vibration": ("vibrating", "still"),
    "window": ("open", "closed"),
}
"""Words for "on" and "off" by device class."""
_STATES: Final[Mapping[str, str]] = {
    "not_home": "away",
    "fan_only": "on, fan only",
    "heat_cool": "on automatic",
    "auto": "on automatic",
    "heat": "on for heating",
    "cool": "on for cooling",
    "dry": "on for drying",
    "returning": "going back to its dock",
}
_RUNNING: Final = frozenset({"heating", "cooling", "drying"})
_UNITS: Final[Mapping[str, str]] = {"°C": " degrees Celsius", "°F": " degrees Fahrenheit"}
_BARE: Final = frozenset({"person", "device_tracker", "scene", "script", "automation"})
"""What is called by its name alone, without "the"."""


def state_of(device: Device) -> str:
    """Return the state in words that follow "is": "on", "closed", "21.5 °C"."""
    state = device.state
    if state == "unavailable":
        return "not reachable"
    if device.domain == "binary_sensor" and device.kind in _BINARY and state in ("on", "off"):
        return _BINARY[device.kind][state == "off"]
    if unit := str(device.attributes.get("unit_of_measurement") or ""):
        return state if state in ABSENT else f"{state}{'' if unit == '%' else ' '}{unit}"
    if device.domain == "scene" or state == "unknown":
        return "unknown"
    if device.domain in ("number", "input_number"):
        return state.removesuffix(".0")
    if device.attributes.get("hvac_action") in _RUNNING and state != "off":
        return str(device.attributes["hvac_action"])
    return _STATES.get(state, state.replace("_", " "))


def record(device: Device) -> dict[str, Any]:
    """Return a device as data: its name, room and state, and the figures that go with it."""
    told: dict[str, Any] = {"name": device.name}
    if device.area is not None:
        told["area"] = device.area.name
    told["state"] = state_of(device)
    told.update(_details(device))
    return told


def records(devices: Sequence[Device]) -> dict[str, Any]:
    """Return devices as data, the first `TOLD_MAX` of them."""
    told: dict[str, Any] = {"devices": [record(each) for each in devices[:TOLD_MAX]]}
    if len(devices) > TOLD_MAX:
        told["more"] = len(devices) - TOLD_MAX
    return told


def _details(device: Device) -> dict[str, Any]:
    if device.state in ABSENT:
        return {}
    found: dict[str, Any] = {}
    if (brightness := device.number("brightness")) is not None and device.state == "on":
        found["brightness_percent"] = round(brightness / _BYTE * 100)
    for key, name in (
        ("current_temperature", "temperature_now"),
        ("temperature", "temperature_target"),
        ("current_position", "open_percent"),
        ("percentage", "speed_percent"),
        ("current_humidity", "humidity_now"),
        ("battery_level", "battery_percent"),
    ):
        if (value := device.number(key)) is not None:
            found[name] = _plain(value)
    if device.domain == "humidifier" and (aim := device.number("humidity")) is not None:
        found["humidity_target"] = _plain(aim)
    if (volume := device.number("volume_level")) is not None and device.state != "off":
        found["volume_percent"] = round(volume * 100)
    for key in ("media_title", "media_artist"):
        if device.state in ("playing", "paused") and device.attributes.get(key):
            found[key.removeprefix("media_")] = str(device.attributes[key])[:_TEXT_CHARS]
    return found


def sentence(devices: Sequence[Device], temperature_unit: str = "°C") -> str:
    """Say how devices are: one in full, several by their states."""
    if len(devices) == 1:
        return f"{_subject(devices[0])} {_whole(devices[0], temperature_unit)}."
    groups = _grouped(devices, temperature_unit)
    return " ".join(_group(state, each, len(devices)) for state, each in groups)


def can_be_said(devices: Sequence[Device], temperature_unit: str = "°C") -> bool:
    """Say whether `sentence` says all of it in few enough words."""
    if len(devices) <= SPOKEN_MAX:
        return True
    return len(_grouped(devices, temperature_unit)) <= GROUPS_MAX


def volume_sentence(devices: Sequence[Device]) -> str:
    """Say how loud players are."""
    levels = [f"{_subject(each)} is at {_volume(each)} percent volume." for each in devices]
    return " ".join(levels[:SPOKEN_MAX])


def _volume(device: Device) -> int:
    return round((device.number("volume_level") or 0.0) * 100)


def _grouped(devices: Sequence[Device], unit: str) -> list[tuple[str, list[Device]]]:
    """Return devices by their state, what is on or open first."""
    groups = dict[str, list[Device]]()
    for each in devices:
        groups.setdefault(_short(each, unit), []).append(each)
    return sorted(groups.items(), key=lambda group: group[0] in _QUIET)


def _group(state: str, devices: Sequence[Device], of: int) -> str:
    if len(devices) == of and of > 2:
        return f"All {of} are {state}."
    if len(devices) > SPOKEN_MAX:
        return f"{len(devices)} are {state}."
    if len(devices) == 1:
        return f"{_subject(devices[0])} {_is(devices[0])} {state}."
    return f"{_joined(devices)} are {state}."


def done_sentence(devices: Sequence[Device], temperature_unit: str = "°C") -> str:
    """Say how devices are now that something was done to them."""
    started = [each for each in devices if each.domain in ("scene", "script")]
    if len(started) == len(devices):
        return f"I've started {' and '.join(each.name for each in started[:SPOKEN_MAX])}."
    return sentence([each for each in devices if each not in started], temperature_unit)


def not_done_sentence(devices: Sequence[Device]) -> str:
    """Say that devices were told to change, and have not."""
    named = _lower_first(_joined(devices))
    return f"I asked, but {named} {_verb(devices, 'has', 'have')} not changed yet."


def unreachable_sentence(devices: Sequence[Device]) -> str:
    """Say that devices cannot be reached."""
    return f"{_joined(devices)} {_verb(devices, 'is', 'are')} not reachable right now."


def which_sentence(devices: Sequence[Device]) -> str:
    """Ask which of several devices is meant."""
    if len(devices) > CHOICES_MAX:
        return f"There are {len(devices)} of those. Which one do you mean?"
    return f"Which one do you mean: {_listed([_with_room(each) for each in devices], 'or')}?"


def _with_room(device: Device) -> str:
    return f"{device.name} in {device.area.name}" if device.area else device.name


def _verb(devices: Sequence[Device], one: str, many: str) -> str:
    plural = len(devices) > 1 or _is(devices[0]) == "are"
    return many if plural else one


def _joined(devices: Sequence[Device]) -> str:
    if len(devices) > SPOKEN_MAX:
        return f"{len(devices)} devices"
    named = [_subject(each, first=not at) for at, each in enumerate(devices)]
    return _listed(named, "and")


def _listed(names: Sequence[str], word: str) -> str:
    names = names[:SPOKEN_MAX]
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def _subject(device: Device, *, first: bool = True) -> str:
    name = " ".join(device.name.split())
    if device.domain in _BARE or name.casefold().startswith(("the ", "my ")) or "'s " in name:
        return name
    return f"{'The' if first else 'the'} {_quiet(name)}"


def _quiet(name: str) -> str:
    """Return a name as it stands in a sentence: "kitchen lights", but "TV" and "AC"."""
    return " ".join(
        word.lower() if re.fullmatch(r"[A-Z][a-zäöüß]+", word) else word for word in name.split()
    )


def _is(device: Device) -> str:
    last = device.name.split()[-1].casefold() if device.name.split() else ""
    return "are" if last.endswith("s") and not last.endswith(("ss", "us", "is")) else "is"


def _short(device: Device, unit: str) -> str:
    """Return what follows "is" for one of several."""
    if device.domain in ("climate", "water_heater") and device.state not in ABSENT:
        now = device.number("current_temperature")
        return (
            state_of(device) if now is None else f"at {_plain(now)}{_UNITS.get(unit, ' degrees')}"
        )
    return _spoken(state_of(device))


def _whole(device: Device, unit: str) -> str:
    """Return the verb and all that is told of one device."""
    verb, state, degrees = _is(device), _spoken(state_of(device)), _UNITS.get(unit, " degrees")
    if device.state in ABSENT:
        return f"{verb} {state}"
    found = _details(device)
    if device.domain in ("climate", "water_heater"):
        parts = [f"{verb} {state}"]
        if "temperature_target" in found and device.state != "off":
            parts.append(f"set to {found['temperature_target']}{degrees}")
        if "temperature_now" in found:
            parts.append(f"and it's {found['temperature_now']} now")
        return ", ".join(parts)
    if device.domain == "media_player" and "title" in found:
        by = f" by {found['artist']}" if "artist" in found else ""
        return f"{verb} {state}: {found['title']}{by}"
    if device.state == "on" and "brightness_percent" in found:
        return f"{verb} on, at {found['brightness_percent']} percent"
    if device.state == "open" and 0 < found.get("open_percent", 0) < 100:
        return f"{verb} {found['open_percent']} percent open"
    if device.state == "on" and "speed_percent" in found:
        return f"{verb} on, at {found['speed_percent']} percent"
    if "humidity_target" in found:
        return f"{verb} {state}, set to {found['humidity_target']} percent"
    return f"{verb} {state}"


def _spoken(state: str) -> str:
    for unit, words in _UNITS.items():
        state = state.replace(f" {unit}", words)
    return re.sub(r"(?<=\d)%", " percent", state)


def _plain(value: float) -> int | float:
    return int(value) if value == int(value) else round(value, 1)


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:] if text.startswith("The ") else text
