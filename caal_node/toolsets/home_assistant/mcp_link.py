"""Home Assistant's own MCP server, for tokens whose person is no administrator.

Its Assist API tells everything that is exposed as one text in YAML, with names, rooms and states,
and takes Assist's intents. So no floors are known by this way, nor rooms in which nothing is, and
what has no intent cannot be done. A call is one POST: the server keeps nothing between two.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import httpx2
import yaml

from caal_node.core.errors import InvalidArguments
from caal_node.http_client import TooLongAnswer, open_client, tls_for
from caal_node.toolsets.home_assistant.devices import (
    CALL_S,
    DEVICES_MAX,
    NAME_CHARS,
    NAMES_MAX,
    NOT_TAKEN,
    STATE_CHARS,
    Area,
    Device,
    Home,
    HomeLink,
    Order,
    can_be_seen,
    failed,
    is_done,
    lost,
    settle_s,
    too_talkative,
    turned_away,
    unreachable,
)
from caal_node.toolsets.http_service import TooLarge, read_object

OPEN_S: Final = 5.0
ANSWER_MAX_BYTES: Final = 2 * 1024 * 1024
"""A thousand for each of the devices that are read. It is one text, which takes 6 ms at once."""
ROW_CHARS_MAX: Final = 16_384
"""Characters of one device's lines; they have some two hundred."""
POLL_S: Final = 0.3
"""Between two looks at what a call has done; this way tells no changes by itself."""
_PATH: Final = "/api/mcp/assist"
_WHY_CHARS: Final = 200
_CONTEXT: Final = "GetLiveContext"
_ROW: Final = "\n- "
_YAML_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_INTENTS: Final[Mapping[str, str]] = {
    "turn_on": "HassTurnOn",
    "turn_off": "HassTurnOff",
    "open_cover": "HassTurnOn",
    "close_cover": "HassTurnOff",
    "open_valve": "HassTurnOn",
    "close_valve": "HassTurnOff",
    "lock": "HassTurnOn",
    "unlock": "HassTurnOff",
    "press": "HassTurnOn",
    "stop_cover": "HassStopMoving",
    "stop_valve": "HassStopMoving",
    "start": "HassVacuumStart",
    "return_to_base": "HassVacuumReturnToBase",
    "media_play": "HassMediaUnpause",
    "media_pause": "HassMediaPause",
    "media_next_track": "HassMediaNext",
    "set_temperature": "HassClimateSetTemperature",
    "set_cover_position": "HassSetPosition",
    "set_percentage": "HassFanSetSpeed",
    "set_humidity": "HassHumidifierSetpoint",
    "volume_set": "HassSetVolume",
}
"""Assist's intent for a service. A light's `turn_on` with a value is `HassLightSet`."""
_ARGUMENTS: Final[Mapping[str, str]] = {
    "brightness_pct": "brightness",
    "color_name": "color",
    "color_temp_kelvin": "temperature",
}


class McpServer:
    """A Home Assistant by its address and a token of anybody who may use it."""

    def __init__(self, url: str, token: str) -> None:
        self._url: Final = url
        self._token: Final = token

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[HomeLink]:
        """Open a client; see `HomeAssistantServer.open`."""
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json",
        }
        try:
            async with (
                asyncio.timeout(CALL_S),
                open_client(
                    ANSWER_MAX_BYTES,
                    base_url=self._url,
                    headers=headers,
                    verify=await tls_for(self._url),
                    timeout=httpx2.Timeout(CALL_S, connect=OPEN_S),
                    trust_env=False,
                ) as client,
            ):
                yield _McpLink(client)
        except TimeoutError as error:
            raise unreachable("it does not answer in time") from error
        except TooLongAnswer as error:
            raise too_talkative() from error
        except httpx2.HTTPError as error:
            raise lost(error) from error


class _McpLink:
    """One call's requests."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client
        self._tools: Mapping[str, str] = {}

    async def read_home(self) -> Home:
        """Ask for everything that is exposed; see `HomeLink.read_home`."""
        if not self._tools:
            self._tools = _by_intent(await self._ask("tools/list", {}))
        answer = await self._call(_CONTEXT, {})
        return await asyncio.to_thread(home_of_context, answer)

    async def carry_out(self, orders: Sequence[Order]) -> Home:
        """Send an intent for each device, and look at what it has done; see `HomeLink`."""
        calls = [intent_of(order, device) for order in orders for device in order.devices]
        for name, arguments in calls:
            await self._call(name, arguments)
        loop = asyncio.get_running_loop()
        ends = loop.time() + settle_s(orders)
        while True:
            home = await self.read_home()
            done = all(
                is_done(order, each)
                for order in orders
                if can_be_seen(order)
                for each in home.now(order.devices)
            )
            if done or loop.time() + POLL_S > ends:
                return home
            await asyncio.sleep(POLL_S)

    async def _call(self, intent: str, arguments: Mapping[str, Any]) -> str:
        if (name := self._tools.get(intent)) is None:
            raise failed(f"its MCP server has no {intent}")
        answer = await self._ask("tools/call", {"name": name, "arguments": dict(arguments)})
        texts = [str(part.get("text", "")) for part in _mappings(answer.get("content"))]
        text = "".join(texts)
        if answer.get("isError"):
            raise failed(" ".join(text.split())[:_WHY_CHARS])
        return text

    async def _ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params)}
        reply = await self._client.post(_PATH, json=body)
        if reply.status_code in (401, 403):
            raise turned_away(NOT_TAKEN)
        if reply.status_code == 404:
            raise failed("its integration Model Context Protocol Server is not set up")
        if reply.status_code >= 300:
            raise unreachable(f"it answers with status {reply.status_code}")
        try:
            told = await asyncio.to_thread(_read, reply.content)
        except TooLarge as error:
            raise too_talkative() from error
        except ValueError as error:
            raise unreachable("what answers there is no Home Assistant") from error
        if "error" in told:
            why = str(_mapping(told["error"]).get("message", ""))
            raise failed(" ".join(why.split())[:_WHY_CHARS])
        return _mapping(told.get("result"))


def intent_of(order: Order, device: Device) -> tuple[str, dict[str, Any]]:
    """Return Assist's intent for one device of an order, with its arguments.

    Raises:
        InvalidArguments: Assist has none.
    """
    data = dict(order.data)
    name = _INTENTS.get(order.service)
    if order.domain == "light" and data:
        name = "HassLightSet"
    if name is None:
        raise InvalidArguments(
            f"{device.name} cannot do that by Home Assistant's MCP server "
            '(via = "websocket" can, with a token of an administrator).'
        )
    if order.service == "volume_set":
        data["volume_level"] = round(float(data["volume_level"]) * 100)
    arguments = {_ARGUMENTS.get(key, key): value for key, value in data.items()}
    arguments["name"] = device.name
    if name in ("HassTurnOn", "HassTurnOff"):
        arguments["domain"] = [device.domain]
    if device.area is not None and name != "HassHumidifierSetpoint":
        arguments["area"] = device.area.name
    return name, arguments


def home_of_context(text: str) -> Home:
    """Read the home from the text that Assist gives to models: DEVICES_MAX devices of it.

    Raises:
        ToolFailure: it has another form.
    """
    try:
        _, _, rows = str(read_object(text).get("result")).partition("\n")
        told = [_mapping(each) for row in _rows(rows) for each in _loaded(row)]
    except TooLarge as error:
        raise too_talkative() from error
    except (ValueError, yaml.YAMLError) as error:
        raise failed("its MCP server told the home in an unknown form") from error
    areas = dict[str, Area]()
    devices = dict[str, Device]()
    for at, each in enumerate(told):
        names = _split(each.get("names"))
        if not names:
            continue
        area = None
        if rooms := _split(each.get("areas")):
            area = areas.setdefault(rooms[0], Area(rooms[0], rooms))
        # It tells no ids; the row's number tells two devices of one name apart.
        domain, slug = _scalar(each.get("domain")), "_".join(names[0].casefold().split())
        same = f"{domain}.{slug}"
        key = f"{same}_{at}" if same in devices else same
        attributes = {
            name: _number(value) for name, value in _mapping(each.get("attributes")).items()
        }
        state = _scalar(each.get("state"))[:STATE_CHARS]
        devices[key] = Device(key, names, state, _with_features(domain, attributes), area)
    degrees = {str(each.attributes.get("temperature_unit", "")) for each in devices.values()}
    return Home(tuple(devices.values()), tuple(areas.values()), "°F" if "°F" in degrees else "°C")


def _read(answer: bytes) -> Mapping[str, Any]:
    return read_object(answer.decode())


def _rows(text: str) -> Iterator[str]:
    """Yield the YAML of each device, so that one step of C reads one of them and no more."""
    start = 0
    for _ in range(DEVICES_MAX):
        end = text.find(_ROW, start) + 1 or len(text)
        if end - start <= ROW_CHARS_MAX:
            yield text[start:end]
        if end == len(text):
            return
        start = end


def _loaded(row: str) -> list[object]:
    told: object = yaml.load(row, Loader=_YAML_LOADER)
    return cast("list[object]", told) if isinstance(told, list) else []


_SETTABLE: Final = 4


def _with_features(domain: str, attributes: dict[str, Any]) -> dict[str, Any]:
    """Add what this way does not tell and the other one does: what a device can be set to."""
    if domain == "cover" and "current_position" in attributes:
        attributes["supported_features"] = _SETTABLE
    if domain == "light" and "brightness" in attributes:
        attributes["supported_color_modes"] = ["hs", "color_temp"]
    return attributes


def _by_intent(answer: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the server's names of its tools by their intents: "intent__HassTurnOn"."""
    names = [str(each.get("name", "")) for each in _mappings(answer.get("tools"))]
    return {name.rpartition("__")[2]: name for name in names}


def _split(value: object) -> tuple[str, ...]:
    parts = (each.strip()[:NAME_CHARS] for each in _scalar(value).split(","))
    return tuple(dict.fromkeys(each for each in parts if each))[:NAMES_MAX]


def _scalar(value: object) -> str:
    """Return what is one value as a text: of one with aliases, `str` would write any length."""
    return str(value) if isinstance(value, str | int | float) else ""


def _number(value: object) -> object:
    if not isinstance(value, str):
        return value if isinstance(value, int | float) else _scalar(value)
    try:
        return float(value)
    except ValueError:
        return value


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return list(map(_mapping, cast("list[object]", value))) if isinstance(value, list) else []
