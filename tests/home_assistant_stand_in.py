"""A stand-in for Home Assistant's websocket API that answers with what a real one has answered.

The recordings are `tests/data/home_assistant/`, made by `python -m tests.real_home_assistant
record`. A service changes the states as the real one does, as far as `SERVICES` says.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from websockets.asyncio.server import ServerConnection, serve

RECORDINGS: Final = Path(__file__).parent / "data" / "home_assistant"
TOKEN: Final = "of-the-stand-in"  # noqa: S105 - it opens nothing
VERSION: Final = "2026.11.0"
STATES: Final = {
    "turn_on": "on",
    "turn_off": "off",
    "open_cover": "opening",
    "close_cover": "closing",
    "lock": "locked",
    "unlock": "unlocked",
    "start": "cleaning",
}
"""The state after a service."""


def recorded(name: str) -> Any:
    """Return what the real one has answered to a command, or as `mcp.context` and `mcp.tools`."""
    return json.loads((RECORDINGS / f"{name.replace('/', '.')}.json").read_text("utf-8"))


class HomeAssistantStandIn:
    """The state of the home, and what was asked of it."""

    def __init__(self) -> None:
        self.url = ""
        self.states: dict[str, dict[str, Any]] = {
            each["entity_id"]: each for each in recorded("get_states")
        }
        self.exposed: dict[str, Any] = recorded("homeassistant/expose_entity/list")
        self.called: list[dict[str, Any]] = []
        self.stubborn: set[str] = set()
        """Devices on which a service has no effect."""
        self.is_admin = True
        self.answer: Callable[[dict[str, Any]], str | None] = lambda _: None
        """A text to be sent in place of the answer to a command; None for the answer."""
        self.fails_with = ""
        """What every service fails with."""
        self.connections = 0

    async def serve(self, socket: ServerConnection) -> None:
        """Speak with one client until it leaves."""
        self.connections += 1
        await socket.send(json.dumps({"type": "auth_required", "ha_version": VERSION}))
        shown = json.loads(await socket.recv())
        if shown != {"type": "auth", "access_token": TOKEN}:
            await socket.send(json.dumps({"type": "auth_invalid", "message": "Invalid access"}))
            return
        await socket.send(json.dumps({"type": "auth_ok", "ha_version": VERSION}))
        watching: tuple[int, list[str]] = (0, [])
        async for text in socket:
            command = json.loads(text)
            number, kind = command["id"], command["type"]
            if (other := self.answer(command)) is not None:
                await socket.send(other)
                continue
            result: dict[str, Any] = {"id": number, "type": "result", "success": True}
            if kind == "homeassistant/expose_entity/list" and not self.is_admin:
                result |= {
                    "success": False,
                    "error": {"code": "unauthorized", "message": "Unauthorized"},
                }
            elif kind == "homeassistant/expose_entity/list":
                result["result"] = self.exposed
            elif kind == "subscribe_entities":
                watching = (number, command["entity_ids"])
                result["result"] = None
            elif kind == "call_service":
                if self.fails_with:
                    error = {"code": "home_assistant_error", "message": self.fails_with}
                    result |= {"success": False, "error": error}
                else:
                    self.called.append(command)
                    result["result"] = {"context": {}, "response": None}
                    for event in self._change(command, watching):
                        await socket.send(event)
            elif kind == "config/entity_registry/get_entries":
                entries = recorded(kind)
                result["result"] = {key: entries.get(key) for key in command["entity_ids"]}
            else:
                result["result"] = recorded(kind)
            await socket.send(json.dumps(result))
            if kind == "subscribe_entities":
                added = {
                    key: {"s": self.states[key]["state"], "a": self.states[key]["attributes"]}
                    for key in command["entity_ids"]
                    if key in self.states
                }
                event = {"id": number, "type": "event", "event": {"a": added}}
                await socket.send(json.dumps(event))

    def _change(self, command: dict[str, Any], watching: tuple[int, list[str]]) -> list[str]:
        changes: dict[str, Any] = {}
        data = command["service_data"]
        for key in command["target"]["entity_id"]:
            if key in self.stubborn:
                continue
            state, more = self.states[key], dict[str, Any]()
            state["state"] = STATES.get(command["service"], state["state"])
            if "brightness_pct" in data:
                more["brightness"] = round(data["brightness_pct"] / 100 * 255)
            more |= {name: data[name] for name in ("temperature", "volume_level") if name in data}
            state["attributes"] |= more
            changes[key] = {"+": {"s": state["state"], "a": more}}
        event = {"id": watching[0], "type": "event", "event": {"c": changes}}
        return [json.dumps(event)] if changes else []


@asynccontextmanager
async def stand_in() -> AsyncGenerator[HomeAssistantStandIn]:
    """Serve on a free port of this machine."""
    home = HomeAssistantStandIn()
    async with serve(home.serve, "127.0.0.1", 0, compression=None) as server:
        port = server.sockets[0].getsockname()[1]
        home.url = f"http://127.0.0.1:{port}"
        yield home
        await asyncio.sleep(0)
