"""What a device is to be set to, from words: "40 percent", "21 degrees", "red", "brighter"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from caal_node.grounding.quantities import Figure, stated_in
from caal_node.policy.heard_words import words
from caal_node.toolsets.home_assistant.devices import (
    SET_POSITION,
    Action,
    Device,
    Order,
    orders,
    stems_of,
)

VALUE_CHARS: Final = 100
STEP_PERCENT: Final = 20.0
"""How far "brighter" goes where nobody says how far: one can see it, and ask for it again."""
STEP_VOLUME: Final = 10.0
"""Percent, for "louder"."""
STEP_DEGREES: Final = 1.0
"""For "warmer"."""
FULL: Final = 100.0
_UP: Final = frozenset(
    stems_of("brighter up higher more louder warmer hotter increase raise faster stronger")
)
_DOWN: Final = frozenset(
    stems_of(
        "dimmer darker dim down lower less quieter softer colder cooler decrease reduce slower "
        "weaker"
    )
)
_MOST: Final = frozenset(stems_of("full maximum max brightest highest"))
_LEAST: Final = frozenset(stems_of("minimum min lowest dimmest darkest"))
_LEAST_PERCENT: Final = 5.0
"""Of brightness and volume: what can still be seen and heard."""
_HALF: Final = re.compile(r"\bhalf(?:way)?\b")
_BY: Final = re.compile(r"\bby\b|\b(?:more|less|warmer|cooler|colder|brighter|louder|quieter)\b")
COLORS: Final = frozenset(
    words(
        "red green blue yellow orange purple pink white cyan magenta turquoise violet gold salmon "
        "lime lavender teal indigo maroon navy olive coral crimson"
    )
)
"""Names of CSS that Home Assistant knows, of those that people say."""
_WHITES: Final[Mapping[str, int]] = {
    "warm white": 2700, "warm": 2700, "soft white": 2700, "cool white": 5000, "cold white": 5000,
    "neutral white": 4000, "daylight": 6000, "candlelight": 2000,
}  # fmt: skip
"""Kelvin."""
_SWITCHED: Final[Mapping[str, Action]] = {
    "on": "on", "off": "off", "open": "open", "closed": "close", "close": "close",
    "play": "start", "pause": "pause", "stop": "stop",
}  # fmt: skip
"""Values that are actions: some models set what they are to switch."""
_COLOR_MODES: Final = frozenset({"hs", "xy", "rgb", "rgbw", "rgbww"})
_KELVIN: Final = re.compile(r"(\d{4,5})\s?k(?:elvin)?\b")
_BYTE: Final = 255.0


class Unfit(Exception):
    """The device cannot be set so. The text is written for the model."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A value as it was said."""

    text: str
    stems: frozenset[str]
    figure: Figure | None
    direction: int = 0
    """1 for more, -1 for less, 0 for a value of its own."""

    @property
    def number(self) -> float | None:
        return None if self.figure is None else self.figure.value


def order_for(device: Device, value: str, temperature_unit: str = "°C") -> Order:
    """Return the service that sets one device to a value in words.

    Raises:
        Unfit: it cannot be set so; the text says what it takes.
    """
    wanted = _read(value)
    make = _MAKERS.get(device.domain)
    if make is None:
        raise Unfit(f"{device.name} cannot be set to a value; it can be turned on and off.")
    order = make(device, wanted, temperature_unit)
    if order is None and (switched := _SWITCHED.get(wanted.text)) is not None:
        order = next(iter(orders([device], switched)), None)
    if order is None:
        raise Unfit(f"{device.name} cannot be set to {wanted.text!r}. {_takes(device)}")
    return order


def is_settable(device: Device) -> bool:
    """Say whether a device takes a value."""
    return device.domain in _MAKERS


def _read(value: str) -> _Wanted:
    text = " ".join(value[:VALUE_CHARS].casefold().split())
    found = frozenset(stems_of(text))
    figures = stated_in(text).figures
    figure = figures[0] if figures else None
    direction = 0
    if figure is None or _BY.search(text):
        direction = (not _UP.isdisjoint(found)) - (not _DOWN.isdisjoint(found))
    return _Wanted(text, found, figure, direction)


def _level(
    wanted: _Wanted, now: float | None, step: float, least: float = 0.0, most: float = FULL
) -> float | None:
    """Return the number that is wanted, between `least` and `most`."""
    if wanted.direction:
        by = wanted.number if wanted.number is not None else step
        return min(most, max(least, (now or 0.0) + wanted.direction * abs(by)))
    if wanted.number is not None:
        return wanted.number if least <= wanted.number <= most else None
    if not _MOST.isdisjoint(wanted.stems):
        return most
    if not _LEAST.isdisjoint(wanted.stems):
        return max(least, _LEAST_PERCENT if most == FULL else least)
    if _HALF.search(wanted.text):
        return (least + most) / 2
    return None


def _light(device: Device, wanted: _Wanted, unit: str) -> Order | None:
    modes = set[str](device.attributes.get("supported_color_modes") or ())
    base = Order("light", "turn_on", (device,), states=frozenset({"on"}))
    spoken = words(wanted.text)
    color = next((word for word in spoken if word in COLORS), None)
    kelvin = _KELVIN.search(wanted.text)
    white = next((name for name in _WHITES if name in wanted.text), None)
    if (kelvin or white) and "color_temp" in modes:
        least = device.number("min_color_temp_kelvin") or 2000
        most = device.number("max_color_temp_kelvin") or 6500
        degrees = int(kelvin[1]) if kelvin else _WHITES[white or "warm"]
        return replace(base, data={"color_temp_kelvin": int(min(most, max(least, degrees)))})
    if color is not None:
        if modes.isdisjoint(_COLOR_MODES):
            return None
        return replace(base, data={"color_name": color})
    if modes <= {"onoff"}:
        return None
    now = (device.number("brightness") or 0.0) / _BYTE * FULL
    level = _level(wanted, now, STEP_PERCENT)
    if level is None:
        return None
    if level < 1:
        return Order("light", "turn_off", (device,), states=frozenset({"off"}))
    percent = round(level)
    return replace(
        base,
        data={"brightness_pct": percent},
        attributes={"brightness": percent / FULL * _BYTE},
    )


def _climate(device: Device, wanted: _Wanted, unit: str) -> Order | None:
    modes = [str(mode) for mode in device.attributes.get("hvac_modes") or ()]
    for mode in modes:
        if set(stems_of(mode)) <= wanted.stems and wanted.number is None:
            return Order(
                device.domain,
                "set_hvac_mode",
                (device,),
                {"hvac_mode": mode},
                frozenset({mode}),
            )
    least, most = device.number("min_temp"), device.number("max_temp")
    asked = wanted
    if wanted.figure is not None and not wanted.direction:
        asked = replace(wanted, figure=_in_unit(wanted.figure, unit))
    now = device.number("temperature")
    if wanted.direction and now is None:
        return None
    low, high = least if least is not None else 5.0, most if most is not None else 35.0
    degrees = _level(asked, now, STEP_DEGREES, low, high)
    if degrees is None:
        return None
    return Order(
        device.domain,
        "set_temperature",
        (device,),
        {"temperature": degrees},
        attributes={"temperature": degrees},
    )


def _in_unit(figure: Figure, unit: str) -> Figure:
    """Return a temperature in the home's unit; without a unit it is in it already."""
    said = figure.unit.name if figure.unit is not None else ""
    if said == "celsius" and unit == "°F":
        return replace(figure, value=figure.value * 9 / 5 + 32)
    if said == "fahrenheit" and unit == "°C":
        return replace(figure, value=(figure.value - 32) * 5 / 9)
    return figure


def _cover(device: Device, wanted: _Wanted, unit: str) -> Order | None:
    if not int(device.number("supported_features") or 0) & SET_POSITION:
        return None
    position = _level(wanted, device.number("current_position"), STEP_PERCENT)
    if position is None:
        return None
    # It takes a while to get there, so nothing is waited for.
    return Order("cover", "set_cover_position", (device,), {"position": round(position)})


def _fan(device: Device, wanted: _Wanted, unit: str) -> Order | None:
    for preset in device.attributes.get("preset_modes") or ():
        if str(preset).casefold() == wanted.text:
            return Order("fan", "set_preset_mode", (device,), {"preset_mode": preset})
    named = {"low": 33.0, "medium": 66.0, "high": 100.0}
    level = named.get(wanted.text.removesuffix(" speed"))
    if level is None:
        level = _level(wanted, device.number("percentage"), STEP_PERCENT)
    if level is None:
        return None
    return Order("fan", "set_percentage", (device,), {"percentage": round(level)})


def _volume(device: Device, wanted: _Wanted, unit: str) -> Order | None:
    if "mute" in wanted.text:
        muted = "unmute" not in wanted.text
        return Order("media_player", "volume_mute", (device,), {"is_volume_muted": muted})
    now = (device.number("volume_level") or 0.0) * FULL
    level = _level(wanted, now, STEP_VOLUME)
    if level is None:
        return None
    data = {"volume_level": round(level) / FULL}
    return Order("media_player", "volume_set", (device,), data, attributes=data)


def _humidity(device: Device, wanted: _Wanted, unit: str) -> Order | None:
    least, most = device.number("min_humidity") or 0.0, device.number("max_humidity") or FULL
    level = _level(wanted, device.number("humidity"), STEP_VOLUME, least, most)
    if level is None:
        return None
    data = {"humidity": round(level)}
    return Order("humidifier", "set_humidity", (device,), data, attributes={"humidity": level})


def _number(device: Device, wanted: _Wanted, unit: str) -> Order | None:
    least, most = device.number("min"), device.number("max")
    try:
        now: float | None = float(device.state)
    except ValueError:
        now = None
    if least is None or most is None:
        return None
    level = _level(wanted, now, device.number("step") or 1.0, least, most)
    return (
        level if level is None else Order(device.domain, "set_value", (device,), {"value": level})
    )


def _select(device: Device, wanted: _Wanted, unit: str) -> Order | None:
    for option in device.attributes.get("options") or ():
        if words(str(option)) == words(wanted.text):
            data = {"option": option}
            done = frozenset({str(option)})
            return Order(device.domain, "select_option", (device,), data, done)
    return None


def _takes(device: Device) -> str:
    match device.domain:
        case "light":
            modes = set[str](device.attributes.get("supported_color_modes") or ())
            if modes <= {"onoff"}:
                return "It can only be turned on and off."
            colors = "" if modes.isdisjoint(_COLOR_MODES) else ", or a colour such as blue"
            return f"It takes a brightness from 0 to 100 percent{colors}."
        case "climate" | "water_heater":
            least, most = device.attributes.get("min_temp"), device.attributes.get("max_temp")
            modes = ", ".join(str(mode) for mode in device.attributes.get("hvac_modes") or ())
            return f"It takes {least} to {most} degrees, or a mode: {modes}."
        case "select" | "input_select":
            options = ", ".join(str(each) for each in device.attributes.get("options") or ())
            return f"It takes one of: {options[: VALUE_CHARS * 2]}."
        case "number" | "input_number":
            return f"It takes {device.attributes.get('min')} to {device.attributes.get('max')}."
        case "cover" if not int(device.number("supported_features") or 0) & SET_POSITION:
            return "It can only be opened and closed."
        case _:
            return "It takes 0 to 100 percent."


_MAKERS: Final = {
    "light": _light,
    "climate": _climate,
    "water_heater": _climate,
    "cover": _cover,
    "fan": _fan,
    "media_player": _volume,
    "humidifier": _humidity,
    "number": _number,
    "input_number": _number,
    "select": _select,
    "input_select": _select,
}
