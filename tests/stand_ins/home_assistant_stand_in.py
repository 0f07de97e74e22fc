"""A stand-in for Home Assistant that answers with what a real one has answered.

It has the websocket API, and of its MCP server what one POST asks.

The recordings are `tests/data/home_assistant/`, made by `python -m tests.real_home_assistant
record`. A service changes the states as the real one does, as far as `SERVICES` says.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import yaml
from aiohttp import web

RECORDINGS: Final = Path(__file__).parents[1] / "data" / "home_assistant"
_RECORDED: Final = {path.stem: path.read_text("utf-8") for path in RECORDINGS.glob("*.json")}
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
    return json.loads(_RECORDED[name.replace("/", ".")])


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
        text = recorded("mcp.context")["result"]["content"][0]["text"]
        rows = json.loads(text)["result"].partition("\n")[2]
        self.rows: list[dict[str, Any]] = yaml.safe_load(rows)
        """What Assist tells a model by the MCP server."""

    async def speak(self, request: web.Request) -> web.WebSocketResponse:
        """Speak with one client of the websocket API until it leaves."""
        socket = web.WebSocketResponse(compress=False)
        await socket.prepare(request)
        await socket.send_json({"type": "auth_required", "ha_version": VERSION})
        if await socket.receive_json() != {"type": "auth", "access_token": TOKEN}:
            await socket.send_json({"type": "auth_invalid", "message": "Invalid access"})
            return socket
        await socket.send_json({"type": "auth_ok", "ha_version": VERSION})
        watching: tuple[int, list[str]] = (0, [])
        async for message in socket:
            command = json.loads(message.data)
            number, kind = command["id"], command["type"]
            if (other := self.answer(command)) is not None:
                await socket.send_str(other)
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
                        await socket.send_str(event)
            elif kind == "config/entity_registry/get_entries":
                entries = recorded(kind)
                result["result"] = {key: entries.get(key) for key in command["entity_ids"]}
            else:
                result["result"] = recorded(kind)
            await socket.send_json(result)
            if kind == "subscribe_entities":
                added = {
                    key: {"s": self.states[key]["state"], "a": self.states[key]["attributes"]}
                    for key in command["entity_ids"]
                    if key in self.states
                }
                await socket.send_json({"id": number, "type": "event", "event": {"a": added}})
        return socket

    async def post(self, request: web.Request) -> web.Response:
        """Answer one request to the MCP server."""
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.Response(status=401)
        body = await request.json()
        if body["method"] == "tools/list":
            return web.json_response(recorded("mcp.tools"))
        arguments = body["params"]["arguments"]
        self._intend(body["params"]["name"].rpartition("__")[2], arguments)
        text = json.dumps({"result": f"Live Context:\n{yaml.safe_dump(self.rows)}"})
        content = [{"type": "text", "text": text}]
        return web.json_response(
            {"jsonrpc": "2.0", "id": body["id"], "result": {"content": content, "isError": False}}
        )

    def _intend(self, intent: str, arguments: dict[str, Any]) -> None:
        for row in self.rows:
            if arguments.get("name") not in row["names"].split(", "):
                continue
            if intent in ("HassTurnOn", "HassLightSet"):
                row["state"] = "on"
            elif intent == "HassTurnOff":
                row["state"] = "off"
            more = row.setdefault("attributes", {})
            if "brightness" in arguments:
                more["brightness"] = str(round(arguments["brightness"] / 100 * 255))
            if "temperature" in arguments:
                more["temperature"] = str(arguments["temperature"])

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
async def stand_in(
    speak: Callable[[web.Request], Awaitable[web.StreamResponse]] | None = None,
) -> AsyncGenerator[HomeAssistantStandIn]:
    """Serve on a free port of this machine; `speak` is a websocket API of another kind."""
    home = HomeAssistantStandIn()
    app = web.Application()
    app.router.add_get("/api/websocket", speak or home.speak)
    app.router.add_post("/api/mcp/assist", home.post)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    home.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield home
    finally:
        await runner.cleanup()
