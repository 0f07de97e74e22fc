"""A real Home Assistant with its demo devices: `python -m tests.real_home_assistant [ARGUMENTS]`.

It is installed from PyPI into a folder that later runs find again, booted with an empty
configuration, onboarded by its own API, and filled with rooms, names and devices that Assist may
use. Then `tests/contract/test_home_assistant_tools.py` runs against it, with pytest's arguments.
With the one argument `record`, what it answers is written to `tests/data/home_assistant/` instead,
which is what the quick tests read.

Home Assistant 2026.11 wants Python 3.14: HOME_ASSISTANT_PYTHON names one, else uv finds or fetches
it. HOME_ASSISTANT_COMMAND is a command that starts a Home Assistant which is installed already.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any, Final

import httpx2
from websockets.asyncio.client import ClientConnection, connect

VERSION: Final = os.environ.get("HOME_ASSISTANT_VERSION", "2026.11.0")
"""The version that was recorded."""
PYTHON: Final = os.environ.get("HOME_ASSISTANT_PYTHON", "3.14")
COMMAND: Final = os.environ.get("HOME_ASSISTANT_COMMAND", "")
TESTS: Final = "tests/contract/test_home_assistant_tools.py"
RECORDINGS: Final = Path(__file__).parent / "data" / "home_assistant"
INSTALL_S: Final = 900
BOOT_S: Final = 300.0
"""The first start installs what its integrations need, which takes about a minute."""
STOP_S: Final = 30.0
TEST_S: Final = 600
_POLL_S: Final = 0.5
_ANSWER_S: Final = 120.0
"""The first of its MCP server's installs what that one needs."""
_MAX_BYTES: Final = 16 * 1024 * 1024
_LAST: Final = "vacuum.demo_vacuum_0_ground_floor"
"""One of the demo's devices. When it is there, so are the others."""

CONFIGURATION: Final = """
homeassistant:
  name: Test home
  latitude: 52.52
  longitude: 13.40
  elevation: 34
  unit_system: metric
  time_zone: Europe/Berlin
  country: DE
http:
  server_host: 127.0.0.1
  server_port: {port}
api:
config:
onboarding:
websocket_api:
conversation:
demo:
input_boolean:
  guest_mode:
    name: Guest mode
input_number:
  water_target:
    name: Water target
    min: 30
    max: 80
    unit_of_measurement: "°C"
script:
  good_night:
    alias: Good night
    sequence: []
scene:
  - name: Movie night
    entities:
      light.bed_light: "off"
logger:
  default: warning
"""
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


class HomeAssistantDied(Exception):
    """It ended, was not ready in time, or refused what a test home needs; with what it said."""


def installed() -> list[str]:
    """Return the command that starts Home Assistant, which is installed if it is missing.

    Raises:
        subprocess.CalledProcessError, subprocess.TimeoutExpired: a step of the installation failed.
    """
    if COMMAND:
        return shlex.split(COMMAND)
    default = Path.home() / ".cache" / "caal-node" / f"home-assistant-{VERSION}"
    folder = Path(os.environ.get("HOME_ASSISTANT_HOME") or default)
    uv = [str(Path(sys.executable).parent / "uv")]
    if not (folder / "installed").exists():
        make = [*uv, "venv", "--clear", "--python", PYTHON, str(folder)]
        subprocess.run(make, check=True, timeout=INSTALL_S)
        # The demo needs numpy, and no manifest says so.
        wanted = [f"homeassistant=={VERSION}", "numpy"]
        python = ["--python", str(folder / "bin" / "python")]
        subprocess.run([*uv, "pip", "install", *python, *wanted], check=True, timeout=INSTALL_S)
        (folder / "installed").touch()
    return [str(folder / "bin" / "hass")]


@contextlib.contextmanager
def running(command: list[str], folder: Path) -> Generator[str]:
    """Start Home Assistant on a free port with its configuration in `folder`; yield its address.

    Raises:
        HomeAssistantDied: it did not come up.
    """
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = int(one.getsockname()[1])
    (folder / "configuration.yaml").write_text(CONFIGURATION.format(port=port))
    url = f"http://127.0.0.1:{port}"
    with (folder / "log.txt").open("w+b") as log:
        process = subprocess.Popen(
            [*command, "--config", str(folder)],
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait(process, f"{url}/api/onboarding", folder / "log.txt")
            yield url
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + BOOT_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx2.HTTPError):
            if httpx2.get(url, timeout=5).status_code == 200:
                return
        time.sleep(_POLL_S)
    said = log.read_bytes()[-3000:].decode(errors="replace")
    raise HomeAssistantDied(f"Home Assistant did not start:\n{said}")


class HomeAssistantOwner:
    """The owner's connection, by which a home is set up."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._ids = itertools.count(1)

    async def ask(self, kind: str, **fields: Any) -> Any:
        """Return the whole answer to one command.

        Raises:
            HomeAssistantDied: it says that the command did not work.
            TimeoutError: it does not answer.
        """
        number = next(self._ids)
        await self._socket.send(json.dumps({"id": number, "type": kind, **fields}))
        async with asyncio.timeout(_ANSWER_S):
            while (answer := json.loads(await self._socket.recv())).get("id") != number:
                pass
        if not answer["success"]:
            raise HomeAssistantDied(f"{kind}: {answer['error']}")
        return answer["result"]


@contextlib.asynccontextmanager
async def owner(url: str, token: str) -> AsyncGenerator[HomeAssistantOwner]:
    """Connect with an owner's token."""
    place = url.replace("http", "ws", 1) + "/api/websocket"
    async with connect(place, max_size=_MAX_BYTES, proxy=None) as socket:
        await socket.recv()
        await socket.send(json.dumps({"type": "auth", "access_token": token}))
        await socket.recv()
        yield HomeAssistantOwner(socket)


async def tokens(url: str) -> tuple[str, str]:
    """Make the owner and a second person, and return a token that lasts of each.

    Raises:
        HomeAssistantDied: a step was refused.
    """
    async with httpx2.AsyncClient(base_url=url, timeout=_ANSWER_S) as client:
        who = {"name": "Owner", "username": "owner", "password": "of-the-test-home"}
        made = await _post(
            client, "/api/onboarding/users", {**who, "client_id": url, "language": "en"}
        )
        access = await _access(client, url, made["auth_code"])
        signed = {"Authorization": f"Bearer {access}"}
        for step in ("core_config", "analytics"):
            await _post(client, f"/api/onboarding/{step}", {}, signed)
        await _post(
            client,
            "/api/onboarding/integration",
            {"client_id": url, "redirect_uri": f"{url}/done"},
            signed,
        )
        # Its own MCP server, for the other way to reach it.
        flow = await _post(
            client, "/api/config/config_entries/flow", {"handler": "mcp_server"}, signed
        )
        await _post(client, f"/api/config/config_entries/flow/{flow['flow_id']}", {}, signed)
        async with owner(url, access) as home:
            lasting = await home.ask(
                "auth/long_lived_access_token", client_name="caal-node", lifespan=1
            )
            guest = await home.ask("config/auth/create", name="Guest", group_ids=["system-users"])
            named = {"username": "guest", "password": "of-the-guest"}
            await home.ask(
                "config/auth_provider/homeassistant/create", user_id=guest["user"]["id"], **named
            )
        flow = await _post(
            client,
            "/auth/login_flow",
            {
                "client_id": url,
                "handler": ["homeassistant", None],
                "redirect_uri": f"{url}/done",
            },
        )
        done = await _post(
            client, f"/auth/login_flow/{flow['flow_id']}", {**named, "client_id": url}
        )
        access = await _access(client, url, done["result"])
        async with owner(url, access) as home:
            second = await home.ask(
                "auth/long_lived_access_token", client_name="caal-node", lifespan=1
            )
    return lasting, second


async def _access(client: httpx2.AsyncClient, url: str, code: str) -> str:
    wanted = {"grant_type": "authorization_code", "code": code, "client_id": url}
    answer = await client.post("/auth/token", data=wanted)
    return answer.json()["access_token"]


async def _post(
    client: httpx2.AsyncClient, path: str, body: Any, headers: dict[str, str] | None = None
) -> Any:
    answer = await client.post(path, json=body, headers=headers or {})
    if answer.status_code >= 300:
        raise HomeAssistantDied(f"{path} answered {answer.status_code}: {answer.text[:300]}")
    return answer.json()


async def furnish(home: HomeAssistantOwner) -> None:
    """Give the demo's devices rooms and names, and let Assist use them and nothing else.

    Raises:
        HomeAssistantDied: the demo's devices do not come, or a step was refused.
    """
    deadline = time.monotonic() + BOOT_S
    while _LAST not in {each["entity_id"] for each in await home.ask("get_states")}:
        if time.monotonic() > deadline:
            raise HomeAssistantDied("the demo's devices did not come")
        await asyncio.sleep(_POLL_S)
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


async def record(url: str, token: str) -> None:
    """Write what Home Assistant answers to `tests/data/home_assistant/`."""
    async with owner(url, token) as home:
        exposed = await home.ask("homeassistant/expose_entity/list")
        names = list(exposed["exposed_entities"])
        answers: dict[str, Any] = {
            "get_config": await home.ask("get_config"),
            "homeassistant/expose_entity/list": exposed,
            "config/area_registry/list": await home.ask("config/area_registry/list"),
            "config/floor_registry/list": await home.ask("config/floor_registry/list"),
            "config/device_registry/list": await home.ask("config/device_registry/list"),
            "config/entity_registry/get_entries": await home.ask(
                "config/entity_registry/get_entries", entity_ids=names
            ),
            "get_states": [
                _without_keys(each)
                for each in await home.ask("get_states")
                if each["entity_id"] in names
            ],
        }
    answers["get_config"]["components"] = []
    entries: dict[str, Any] = answers["config/entity_registry/get_entries"]
    used = {each["device_id"] for each in entries.values() if each}
    answers["config/device_registry/list"] = [
        each for each in answers["config/device_registry/list"] if each["id"] in used
    ]
    RECORDINGS.mkdir(parents=True, exist_ok=True)
    for kind, answer in answers.items():
        _write(kind.replace("/", "."), answer)
    async with httpx2.AsyncClient(timeout=_ANSWER_S) as client:
        tools = await _mcp(client, url, token, "tools/list", {})
        context = next(
            each["name"] for each in tools["result"]["tools"] if "GetLiveContext" in each["name"]
        )
        wanted: dict[str, Any] = {"name": context, "arguments": {}}
        spoken = await _mcp(client, url, token, "tools/call", wanted)
    for name, answer in (("mcp.tools", tools), ("mcp.context", spoken)):
        _write(name, answer)


def _without_keys(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state without the address of its picture, which has a key."""
    kept = {key: value for key, value in state["attributes"].items() if key != "entity_picture"}
    return {**state, "attributes": kept}


def _write(name: str, answer: Any) -> None:
    text = json.dumps(answer, indent=1, ensure_ascii=False, sort_keys=True)
    (RECORDINGS / f"{name}.json").write_text(f"{text}\n")


async def _mcp(
    client: httpx2.AsyncClient, url: str, token: str, method: str, params: Any
) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return (await client.post(f"{url}/api/mcp/assist", json=body, headers=headers)).json()


async def _furnished(url: str) -> tuple[str, str]:
    owners, guests = await tokens(url)
    async with owner(url, owners) as home:
        await furnish(home)
    return owners, guests


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="caal-home-", ignore_cleanup_errors=True) as folder,
        running(installed(), Path(folder)) as url,
    ):
        began = time.monotonic()
        owners, guests = asyncio.run(_furnished(url))
        print(f"Home Assistant runs at {url}, furnished in {time.monotonic() - began:.0f} s")
        if sys.argv[1:] == ["record"]:
            asyncio.run(record(url, owners))
            return 0
        own = {
            "HOME_ASSISTANT_TEST_URL": url,
            "HOME_ASSISTANT_TEST_TOKEN": owners,
            "HOME_ASSISTANT_TEST_GUEST_TOKEN": guests,
        }
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", TESTS, *sys.argv[1:]],
            env={**os.environ, **own},
            timeout=TEST_S,
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
