"""Home Assistant's websocket API: the one that tells areas, aliases and what Assist may use.

A connection is opened for each call of a tool and closed behind it, so that nothing has to be kept
alive or noticed to be dead, and every call sees what is exposed now. What one connection may say is
capped, and large messages are read in a worker thread.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final, cast

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosedError,
    InvalidHandshake,
    InvalidURI,
    WebSocketException,
)
from websockets.frames import CloseCode

from caal_node.toolsets.home_assistant.devices import (
    CALL_S,
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


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
