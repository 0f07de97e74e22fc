"""The rooms, names and exposed devices of the test home."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from tests.real_home_assistant.boot import BOOT_S, POLL_S, HomeAssistantDied
from tests.real_home_assistant.owner import HomeAssistantOwner

_LAST: Final = "vacuum.demo_vacuum_0_ground_floor"
"""One of the demo's devices. When it is there, so are the others."""
FLOORS: Final = {"Downstairs": ["ground floor"], "Upstairs": ["top floor"]}
AREAS: Final[dict[str, tuple[str, list[str]]]] = {
    "Kitchen": ("Downstairs", []),
    "Living Room": ("Downstairs", ["lounge"]),
    "Hall": ("Downstairs", ["hallway", "entrance"]),
    "Garage": ("Downstairs", []),
    "Bedroom": ("Upstairs", []),
    "Office": ("Upstairs", ["study"]),
}
ENTITIES: Final[dict[str, tuple[str, list[str]]]] = {
    # The area and the aliases of what Assist may use.
    "light.kitchen_lights": ("Kitchen", []),
    "light.ceiling_lights": ("Living Room", []),
    "light.living_room_rgbww_lights": ("Living Room", ["reading lamp"]),
    "light.bed_light": ("Bedroom", ["night light"]),
    "light.office_rgbw_lights": ("Office", ["desk lamp"]),
    "light.entrance_color_white_lights": ("Hall", []),
    "switch.decorative_lights": ("Living Room", ["christmas tree"]),
    "switch.ac": ("Bedroom", []),
    "cover.kitchen_window": ("Kitchen", ["kitchen blinds"]),
    "cover.hall_window": ("Hall", []),
    "cover.living_room_window": ("Living Room", []),
    "cover.garage_door": ("Garage", []),
    "climate.heatpump": ("Living Room", ["heating"]),
    "climate.hvac": ("Office", ["thermostat"]),
    "lock.front_door": ("Hall", []),
    "lock.kitchen_door": ("Kitchen", []),
    "media_player.living_room": ("Living Room", ["television", "TV"]),
    "media_player.bedroom": ("Bedroom", []),
    "media_player.walkman": ("Office", ["speaker"]),
    "fan.living_room_fan": ("Living Room", []),
    "fan.ceiling_fan": ("Bedroom", []),
    "sensor.outside_temperature": ("", []),
    "sensor.outside_humidity": ("", []),
    "binary_sensor.basement_floor_wet": ("Garage", []),
    "binary_sensor.movement_backyard": ("", []),
    "humidifier.humidifier": ("Bedroom", []),
    "select.speed": ("Garage", []),
    "number.volume": ("Office", []),
    "input_boolean.guest_mode": ("", []),
    "script.good_night": ("", []),
    "scene.movie_night": ("", []),
    "person.owner": ("", []),
    _LAST: ("Kitchen", ["hoover"]),
}


async def furnish(home: HomeAssistantOwner) -> None:
    """Give the demo's devices rooms and names, and let Assist use them and nothing else.

    Raises:
        HomeAssistantDied: the demo's devices do not come, or a step was refused.
    """
    deadline = time.monotonic() + BOOT_S
    while _LAST not in {each["entity_id"] for each in await home.ask("get_states")}:
        if time.monotonic() > deadline:
            raise HomeAssistantDied("the demo's devices did not come")
        await asyncio.sleep(POLL_S)
    floors = {
        name: (
            await home.ask("config/floor_registry/create", name=name, aliases=aliases, level=level)
        )["floor_id"]
        for level, (name, aliases) in enumerate(FLOORS.items())
    }
    for area in await home.ask("config/area_registry/list"):
        await home.ask("config/area_registry/delete", area_id=area["area_id"])
    areas = {
        name: (
            await home.ask(
                "config/area_registry/create", name=name, aliases=aliases, floor_id=floors[floor]
            )
        )["area_id"]
        for name, (floor, aliases) in AREAS.items()
    }
    registered = await home.ask("config/entity_registry/get_entries", entity_ids=list(ENTITIES))
    for entity, (area, aliases) in ENTITIES.items():
        if (entry := registered.get(entity)) is None:
            continue
        # The name of its own is the alias None.
        update: dict[str, Any] = {"entity_id": entity, "aliases": [None, *aliases]}
        if entry["device_id"] is None:
            update["area_id"] = areas.get(area)
        elif area:
            # What is named after its device is where its device is.
            await home.ask(
                "config/device_registry/update", device_id=entry["device_id"], area_id=areas[area]
            )
        await home.ask("config/entity_registry/update", **update)
    every = [each["entity_id"] for each in await home.ask("get_states")]
    for entities, exposed in (
        ([each for each in every if each not in ENTITIES], False),
        (list(ENTITIES), True),
    ):
        await home.ask(
            "homeassistant/expose_entity",
            assistants=["conversation"],
            entity_ids=entities,
            should_expose=exposed,
        )
