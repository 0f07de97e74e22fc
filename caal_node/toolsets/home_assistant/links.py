"""The two ways to reach a Home Assistant: its websocket API, and its own MCP server."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final, cast

import httpx2
import yaml
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosedError,
    InvalidHandshake,
    InvalidURI,
    WebSocketException,
)
from websockets.frames import CloseCode

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
    exposed_entities,
    failed,
    is_done,
    lost,
    read_areas,
    read_devices,
    settle_s,
    too_talkative,
    turned_away,
    unreachable,
)
from caal_node.toolsets.http_service import AT_ONCE_CHARS, TooLarge, let_go, read_object

# Home Assistant's websocket API: the one that tells areas, aliases and what Assist may use.
#
# A connection is opened for each call of a tool and closed behind it, so that nothing has to be
# kept alive or noticed to be dead, and every call sees what is exposed now. What one connection may
# say is capped, and large messages are read in a worker thread.

MESSAGE_MAX_BYTES: Final = 8 * 1024 * 1024
"""The registry of a home with five thousand devices."""
CONNECTION_CHARS_MAX: Final = 32 * 1024 * 1024
"""What one connection may say in all: three such registries, and the states."""
MESSAGES_MAX: Final = 20_000
"""Messages of one connection. A home of 2,000 devices that all change each second says as much."""
OPEN_S: Final = 5.0
_CLOSE_S: Final = 1.0
_WHY_CHARS: Final = 200
_NEEDS_ADMIN: Final = (
    "The token's person is no administrator, so Home Assistant does not say what Assist may use. "
    'Make the token as an administrator, or write via = "mcp".'
)

State = tuple[str, Mapping[str, Any]]


class WebsocketServer:
    """A Home Assistant by its address and a token.

    Args:
        url: The address without a path, such as http://homeassistant.local:8123.
    """

    def __init__(self, url: str, token: str) -> None:
        self._place: Final = f"{url.replace('http', 'ws', 1)}/api/websocket"
        self._token: Final = token

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[HomeLink]:
        """Open a connection; see `HomeAssistantServer.open`."""
        try:
            async with asyncio.timeout(CALL_S):
                # Nothing is compressed, so that a short message cannot unpack to a giant one.
                async with connect(
                    self._place,
                    open_timeout=OPEN_S,
                    close_timeout=_CLOSE_S,
                    ping_interval=None,
                    compression=None,
                    max_size=MESSAGE_MAX_BYTES,
                    proxy=None,
                ) as socket:
                    link = _WebsocketLink(socket)
                    await link.sign_in(self._token)
                    yield link
        except TimeoutError as error:
            raise unreachable("it does not answer in time") from error
        except (InvalidHandshake, InvalidURI) as error:
            raise unreachable("what answers there is no Home Assistant") from error
        except ConnectionClosedError as error:
            # We close it for a message that is too long.
            ours = None if error.rcvd_then_sent else error.sent
            if ours is not None and ours.code == CloseCode.MESSAGE_TOO_BIG:
                raise too_talkative() from error
            raise lost(error) from error
        except (OSError, WebSocketException) as error:
            raise lost(error) from error


class _WebsocketLink:
    """One connection. What it is told of states comes between the answers, and is kept."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self._chars_left, self._messages_left = CONNECTION_CHARS_MAX, MESSAGES_MAX
        self._allowed = frozenset[str]()
        """The entities whose states are asked for. What is told of others is not kept."""
        self._states = dict[str, State]()
        self._changed = set[str]()
        self._home = Home()
        self._version = ""

    async def sign_in(self, token: str) -> None:
        """Show the token.

        Raises:
            ToolRefused: it is not taken.
        """
        greeting = await self._receive()
        self._version = str(greeting.get("ha_version", ""))[:_WHY_CHARS]
        if greeting.get("type") != "auth_required":
            raise unreachable("what answers there is no Home Assistant")
        await self._socket.send(json.dumps({"type": "auth", "access_token": token}))
        if (await self._receive()).get("type") != "auth_ok":
            raise turned_away(
                "Home Assistant does not take the token. Make a new one for caal.toml."
            )

    async def read_home(self) -> Home:
        """Read the registries and the states; see `HomeLink.read_home`."""
        (exposed,) = await self._ask({"type": "homeassistant/expose_entity/list"})
        allowed = await asyncio.to_thread(exposed_entities, exposed)
        await asyncio.to_thread(let_go, exposed)
        self._allowed = frozenset(allowed)
        config, areas, floors, devices, entries, _ = await self._ask(
            {"type": "get_config"},
            {"type": "config/area_registry/list"},
            {"type": "config/floor_registry/list"},
            {"type": "config/device_registry/list"},
            {"type": "config/entity_registry/get_entries", "entity_ids": allowed},
            {"type": "subscribe_entities", "entity_ids": allowed},
        )
        # The states come behind the answer, and none come where nothing is exposed.
        while allowed and not self._states:
            self._take(await self._receive())
        rooms = await asyncio.to_thread(read_areas, areas, floors)
        found = await asyncio.to_thread(
            read_devices, allowed, dict(self._states), entries, devices, rooms
        )
        await asyncio.to_thread(let_go, [areas, floors, devices, entries])
        told = _mapping(config)
        self._home = Home(
            found,
            tuple(rooms.values()),
            str(_mapping(told.get("unit_system")).get("temperature", "°C")),
            str(told.get("location_name", ""))[:_WHY_CHARS],
            self._version,
        )
        return self._home

    async def carry_out(self, orders: Sequence[Order]) -> Home:
        """Call the services and wait for what they do; see `HomeLink.carry_out`."""
        self._changed.clear()
        await self._ask(
            *(
                {
                    "type": "call_service",
                    "domain": each.domain,
                    "service": each.service,
                    "service_data": dict(each.data),
                    "target": {"entity_id": [device.id for device in each.devices]},
                }
                for each in orders
            )
        )
        awaited = dict[str, list[tuple[Order, Device]]]()
        for order in orders:
            for device in order.devices:
                awaited.setdefault(device.id, []).append((order, device))
        open_ids = {key for key, wanted in awaited.items() if not self._is_done(wanted)}
        try:
            async with asyncio.timeout(settle_s(orders)):
                while open_ids:
                    # Others may change all the time: only what a message is about is looked at.
                    for key in self._take(await self._receive()) & open_ids:
                        if self._is_done(awaited[key]):
                            open_ids.discard(key)
        except TimeoutError:
            pass  # what has not changed by now is told as it is
        self._home = self._home.with_states(self._states)
        return self._home

    def _is_done(self, wanted: Sequence[tuple[Order, Device]]) -> bool:
        """Say whether a device is as every order for it wants it."""
        return all(
            is_done(order, self._now(device)) if can_be_seen(order) else device.id in self._changed
            for order, device in wanted
        )

    def _now(self, device: Device) -> Device:
        state, attributes = self._states.get(device.id, (device.state, device.attributes))
        return replace(device, state=state, attributes=attributes)

    async def _ask(self, *commands: Mapping[str, Any]) -> list[Any]:
        """Send commands together, and return the result of each.

        Raises:
            ToolFailure: one is refused.
        """
        numbers = [next(self._ids) for _ in commands]
        for number, command in zip(numbers, commands, strict=True):
            await self._socket.send(json.dumps({"id": number, **command}))
        results = dict[int, Any]()
        while len(results) < len(numbers):
            answer = await self._receive()
            number = answer.get("id")
            if answer.get("type") != "result" or number not in numbers:
                self._take(answer)
            elif answer.get("success") is True:
                results[cast("int", number)] = answer.get("result")
            else:
                self._refuse(_mapping(answer.get("error")))
        return [results[number] for number in numbers]

    def _refuse(self, error: Mapping[str, Any]) -> None:
        if error.get("code") == "unauthorized":
            raise turned_away(_NEEDS_ADMIN)
        raise failed(" ".join(str(error.get("message", "")).split())[:_WHY_CHARS])

    def _take(self, message: Mapping[str, Any]) -> set[str]:
        """Keep what a message says of states (`a` has new ones, `c` has changes), and return the
        ids of those that it is about."""
        event = _mapping(message.get("event"))
        added, changes = _mapping(event.get("a")), _mapping(event.get("c"))
        for key in added.keys() & self._allowed:
            told = _mapping(added[key])
            self._states[key] = (str(told.get("s", "")), _mapping(told.get("a")))
        for key in changes.keys() & self._allowed:
            state, attributes = self._states.get(key, ("", {}))
            change = _mapping(changes[key])
            more, fewer = _mapping(change.get("+")), _mapping(change.get("-"))
            removed = fewer.get("a")
            listed = cast("list[object]", removed) if isinstance(removed, list) else []
            gone = {name for name in listed if isinstance(name, str)}
            kept = {name: value for name, value in attributes.items() if name not in gone}
            newer = {**kept, **_mapping(more.get("a"))}
            self._changed.add(key)
            self._states[key] = (str(more.get("s", state)), newer)
        return (added.keys() & self._allowed) | (changes.keys() & self._allowed)

    async def _receive(self) -> Mapping[str, Any]:
        """Return the next message.

        Raises:
            ToolUnavailable: it is none, or more was said than a home has to say.
        """
        text = await self._socket.recv(decode=True)
        await asyncio.sleep(0)  # messages that are there already would keep the loop from all else
        self._chars_left -= len(text)
        self._messages_left -= 1
        if self._chars_left < 0 or self._messages_left < 0:
            raise too_talkative()
        try:
            if len(text) > AT_ONCE_CHARS:
                return await asyncio.to_thread(read_object, text)
            return read_object(text)
        except TooLarge as error:
            raise too_talkative() from error
        except ValueError as error:
            raise unreachable("what answers there is no Home Assistant") from error


# Home Assistant's own MCP server, for tokens whose person is no administrator.
#
# Its Assist API tells everything that is exposed as one text in YAML, with names, rooms and states,
# and takes Assist's intents. So no floors are known by this way, nor rooms in which nothing is, and
# what has no intent cannot be done. A call is one POST: the server keeps nothing between two.

ANSWER_MAX_BYTES: Final = 2 * 1024 * 1024
"""A thousand for each of the devices that are read. It is one text, which takes 6 ms at once."""
ROW_CHARS_MAX: Final = 16_384
"""Characters of one device's lines; they have some two hundred."""
POLL_S: Final = 0.3
"""Between two looks at what a call has done; this way tells no changes by itself."""
_PATH: Final = "/api/mcp/assist"
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
