"""Home Assistant's devices by four tools, in place of one for each device or service.

The tools are here: control the home, set it, ask it, and unlock it. `devices.py`, `naming.py`,
`values.py` and `spoken_states.py` do no I/O; `links.py` has the two ways to reach a Home
Assistant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from caal_node.core.addresses import server_url
from caal_node.core.counted import counted
from caal_node.core.errors import ConfigError, InvalidArguments, ToolUnavailable
from caal_node.core.prompt_files import sentence as sentence_of
from caal_node.tools.source import Undoable, VerbatimResult
from caal_node.tools.undo import not_undone
from caal_node.toolsets.base import ConfiguredToolset, ToolsetOptions, ToolsetServices, tool
from caal_node.toolsets.home_assistant.devices import (
    WHOLE_ROOM,
    Action,
    Deed,
    Device,
    Home,
    HomeAssistantServer,
    HomeLink,
    Order,
    effect_of,
    is_done,
    is_guarded,
    order_back,
    orders,
)
from caal_node.toolsets.home_assistant.links import McpServer, WebsocketServer
from caal_node.toolsets.home_assistant.naming import Ambiguous, Meant, NotFound, find
from caal_node.toolsets.home_assistant.spoken_states import (
    TOLD_MAX,
    can_be_said,
    done_sentence,
    not_done_sentence,
    records,
    sentence,
    unreachable_sentence,
    volume_sentence,
    which_sentence,
)
from caal_node.toolsets.home_assistant.values import Unfit, is_settable, order_for

PORT: Final = 8123
"""Home Assistant's own, which people leave out."""
AT_ONCE_MAX: Final = 100
"""Devices that one call may change; more are hardly what somebody said."""
_OPENING: Final = frozenset({"on", "open", "toggle"})
_CALL_S: Final = 15.0


def _address(url: str) -> str:
    try:
        parts = urlsplit(server_url(url, ("http", "https"), PORT))
    except ValueError as error:
        example = "write Home Assistant's address, such as http://homeassistant.local:8123"
        raise ValueError(f"{example} ({error})") from None
    if parts.path.strip("/") or parts.query or parts.username:
        raise ValueError("write the address alone, without a path or a password")
    return f"{parts.scheme}://{parts.netloc}"


class HomeAssistantOptions(ToolsetOptions):
    """How Home Assistant is reached."""

    url: Annotated[str, AfterValidator(_address)] = Field(
        description="Home Assistant's address, such as http://homeassistant.local:8123"
    )
    token: SecretStr = Field(
        description="A long-lived access token (in Home Assistant: your profile, Security)"
    )
    room: str = Field(
        default="",
        description="The room that people talk in, as Home Assistant calls it, if it is one",
    )
    via: Literal["websocket", "mcp"] = Field(
        default="websocket",
        description="websocket, or mcp for a token whose person is no administrator",
    )


class HomeAssistant(ConfiguredToolset):
    """Everything that is exposed to Assist, by its names, aliases, rooms and floors."""

    NAME = "home_assistant"
    SUMMARY = "Controls and asks the devices that Home Assistant exposes to Assist."
    Options: ClassVar[type[ToolsetOptions]] = HomeAssistantOptions

    def __init__(
        self,
        options: HomeAssistantOptions | None = None,
        services: ToolsetServices | None = None,
        *,
        server: HomeAssistantServer | None = None,
    ) -> None:
        super().__init__(options, services)
        if server is None:
            kind = WebsocketServer if self.options.via == "websocket" else McpServer
            server = kind(self.options.url, self.options.token.get_secret_value())
        self._server: Final = server

    @tool("write", timeout_s=_CALL_S)
    async def control_home(self, device: str, action: Action) -> Undoable | VerbatimResult:
        """Turn a device at home on or off, or open, close, stop, lock, start, pause or toggle it.

        Example: turn off the kitchen lights -> {"device": "kitchen lights", "action": "off"}
        Example: close all the blinds upstairs -> {"device": "blinds upstairs", "action": "close"}
        Example: start the vacuum -> {"device": "vacuum", "action": "start"}

        Args:
            device: The device, room or kind of devices, in the person's words.
            action: What is to be done.
        """
        async with self._server.open() as link:
            home = await link.read_home()
            meant = await self._meant(home, device, action)
            if action in _OPENING:
                _refuse_opening(meant.devices)
            return await self._change(link, home, meant.devices, orders_of(action))

    @tool("write", timeout_s=_CALL_S)
    async def set_home(self, device: str, value: str) -> Undoable | VerbatimResult:
        """Set a device at home to a value: brightness, colour, temperature, volume, position, mode.

        Example: dim the bed light to 30 percent -> {"device": "bed light", "value": "30 percent"}
        Example: heat the office to 21 -> {"device": "office heating", "value": "21 degrees"}
        Example: make the desk lamp blue -> {"device": "desk lamp", "value": "blue"}

        Args:
            device: The device, or its room and kind, in the person's words.
            value: The value with its unit, or "brighter", "warmer", "louder".
        """
        async with self._server.open() as link:
            home = await link.read_home()
            meant = await self._found(home, device, is_settable)
            _refuse_opening(meant.devices)
            try:
                made = [order_for(each, value, home.temperature_unit) for each in meant.devices]
            except Unfit as error:
                if len(meant.devices) == 1:
                    raise InvalidArguments(str(error)) from error
                made = self._those_that_fit(meant, value, home.temperature_unit)
            wanted = {order.devices[0].id: order for order in made}
            devices = [each for each in meant.devices if each.id in wanted]
            return await self._change(link, home, devices, lambda some: _joined(some, wanted))

    @tool("read", timeout_s=_CALL_S)
    async def ask_home(self, device: str) -> Any:
        """Say how things are at home: whether a device is on, open or locked, or what it measures.

        Example: is the front door locked -> {"device": "front door"}
        Example: which lights are on downstairs -> {"device": "lights downstairs"}
        Example: how warm is it in the bedroom -> {"device": "bedroom temperature"}

        Args:
            device: The device, room or kind of devices, in the person's words.
        """
        async with self._server.open() as link:
            home = await link.read_home()
        devices = (await self._found(home, device, lambda _: True, one=False)).devices
        told = records(devices)
        if not can_be_said(devices, home.temperature_unit):
            return told
        return VerbatimResult(told, sentence(devices, home.temperature_unit))

    @tool("destructive", timeout_s=_CALL_S)
    async def unlock_door(self, door: str) -> Any:
        """Unlock a door, or open a garage door or a gate.

        Example: unlock the front door -> {"door": "front door"}
        Example: open the garage -> {"door": "garage door"}

        Args:
            door: The door, gate or garage, in the person's words.
        """
        async with self._server.open() as link:
            home = await link.read_home()
            meant = await self._found(home, door, is_guarded)
            first, *more = meant.devices
            if more:  # several doors are never opened by one word
                raise _which(Ambiguous(door, meant.devices))
            deed: Deed = "unlock" if first.domain == "lock" else "open"
            return await self._carry_out(link, home, meant.devices, orders_of(deed))

    async def check(self) -> str:
        """Connect, and count what Assist may use."""
        async with self._server.open() as link:
            home = await link.read_home()
        if not home.devices:
            raise ConfigError(
                f"{self.NAME}: Home Assistant exposes nothing to Assist; choose devices there "
                "under Settings, Voice assistants, Expose"
            )
        rooms = {each.area.id for each in home.devices if each.area is not None}
        version = f"Home Assistant {home.version}".strip()
        room = self.options.room
        if room and not any(room.casefold() == name.casefold() for name in _room_names(home)):
            raise ConfigError(
                f"{self.NAME}.room: Home Assistant has no area {room!r}; it has "
                + ", ".join(area.name for area in home.areas)
            )
        devices = counted(len(home.devices), "device")
        return f"{version} exposes {devices} in {counted(len(rooms), 'room')}"

    async def spoken_names(self) -> Sequence[str]:
        async with self._server.open() as link:
            home = await link.read_home()
        rooms = [name for each in home.areas for name in each.names]
        return [*rooms, *(name for each in home.devices for name in each.names)]

    async def _meant(self, home: Home, said: str, action: Action) -> Meant:
        lights_only = action in ("on", "toggle")

        def whole(device: Device) -> bool:
            return device.domain == "light" if lights_only else device.domain in WHOLE_ROOM

        if action not in ("on", "off", "toggle"):
            return await self._found(home, said, lambda each: effect_of(each, action) is not None)
        return await self._found(
            home, said, lambda each: effect_of(each, action) is not None, whole=whole
        )

    async def _found(
        self,
        home: Home,
        said: str,
        usable: Callable[[Device], bool],
        *,
        whole: Callable[[Device], bool] | None = None,
        one: bool = True,
    ) -> Meant:
        room = self.options.room or self.services.announcer.place

        def search() -> Meant:
            try:
                return find(home, said, usable=usable, room=room, one=one, whole=whole)
            except Ambiguous as error:
                raise _which(error) from error
            except NotFound as error:
                try:
                    other = find(home, said, usable=lambda _: True, room=room).devices
                except (Ambiguous, NotFound):
                    raise InvalidArguments(str(error)) from error
                raise InvalidArguments(
                    f"{other[0].name} ({other[0].domain}) cannot do that. {error}"
                ) from error

        # In a thread: among 2,000 devices a name that is not there takes a tenth of a second.
        return await asyncio.to_thread(search)

    def _those_that_fit(self, meant: Meant, value: str, unit: str) -> list[Order]:
        made, why = list[Order](), ""
        for each in meant.devices:
            try:
                made.append(order_for(each, value, unit))
            except Unfit as error:
                why = why or str(error)
        if not made:
            raise InvalidArguments(why)
        return made

    async def _change(
        self,
        link: HomeLink,
        home: Home,
        devices: Sequence[Device],
        wanted: Callable[[Sequence[Device]], list[Order]],
    ) -> Undoable | VerbatimResult:
        """Change what can be reached, with an undo of that where it is certain (`order_back`)."""
        result = await self._carry_out(link, home, devices, wanted)
        before = {each.id: each for each in devices if each.is_reachable}
        made = {each.id: order for order in wanted(list(before.values())) for each in order.devices}
        ways = {key: order_back(order, before[key]) for key, order in made.items()}
        back = {key: way for key, way in ways.items() if way is not None}

        async def undo() -> VerbatimResult:
            async with self._server.open() as link:
                home = await link.read_home()
                now = home.now(before[key] for key in back)
                # What somebody has changed since stays as it is.
                as_left = [each for each in now if is_done(made[each.id], each)]
                if not as_left:
                    raise not_undone("undo_changed")
                done = await self._carry_out(link, home, as_left, lambda some: _joined(some, back))
            if len(as_left) < len(made):
                done.words += f" {sentence_of('undo_cannot_rest')}"
            return done

        return Undoable(result.value, undo, result.words) if back else result

    async def _carry_out(
        self,
        link: HomeLink,
        home: Home,
        devices: Sequence[Device],
        wanted: Callable[[Sequence[Device]], list[Order]],
    ) -> VerbatimResult:
        """Change what can be reached, and say how it is then."""
        if len(devices) > AT_ONCE_MAX:
            raise InvalidArguments(
                f"That is {len(devices)} devices, and at most {AT_ONCE_MAX} change at once. "
                "Name a room."
            )
        gone = [each for each in devices if not each.is_reachable]
        there = [each for each in devices if each.is_reachable]
        if not there:
            failure = ToolUnavailable(unreachable_sentence(gone))
            failure.words = unreachable_sentence(gone)
            raise failure
        made = wanted(there)
        after = await link.carry_out(made)
        by_device = {each.id: order for order in made for each in order.devices}
        now = after.now(there)
        done = [each for each in now if is_done(by_device[each.id], each)]
        late = [each for each in now if each not in done]
        told = records(done)
        words = list[str]()
        if done and all(order.service == "volume_set" for order in made):
            words.append(volume_sentence(done))
        elif done:
            words.append(done_sentence(done, home.temperature_unit))
        for key, some, say in (
            ("not_changed", late, not_done_sentence),
            ("unreachable", gone, unreachable_sentence),
        ):
            if some:
                told[key] = [each.name for each in some[:TOLD_MAX]]
                words.append(say(some))
        return VerbatimResult(told, " ".join(words))


def _refuse_opening(devices: Iterable[Device]) -> None:
    """Refuse what may open a garage or a gate: a misheard word must not, and that tool asks first.

    Raises:
        InvalidArguments: one of the devices is such a one.
    """
    for each in devices:
        if each.domain != "lock" and is_guarded(each):
            raise InvalidArguments(f"To open {each.name}, call unlock_door.")


def orders_of(deed: Deed) -> Callable[[Sequence[Device]], list[Order]]:
    """Return the function that makes the orders of one deed."""
    return lambda devices: orders(devices, deed)


def _joined(devices: Sequence[Device], wanted: dict[str, Order]) -> list[Order]:
    """Join the orders of single devices that are alike, so that they are carried out together."""
    made = list[Order]()
    for each in devices:
        order = wanted[each.id]
        for at, other in enumerate(made):
            if replace(other, devices=order.devices) == order:
                made[at] = replace(other, devices=(*other.devices, each))
                break
        else:
            made.append(order)
    return made


def _which(error: Ambiguous) -> InvalidArguments:
    names = ", ".join(
        f"{each.name} ({each.area.name})" if each.area else each.name for each in error.devices
    )
    failure = InvalidArguments(f"{error.said!r} may be any of: {names}. Ask which one.")
    failure.words = which_sentence(error.devices)
    return failure


def _room_names(home: Home) -> Iterable[str]:
    return (name for area in home.areas for name in area.names)
