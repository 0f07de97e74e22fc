"""The owner's connection to a Home Assistant, and how its first people come to be."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncGenerator
from typing import Any, Final

import httpx2
from websockets.asyncio.client import ClientConnection, connect

from tests.real_home_assistant.boot import HomeAssistantDied

ANSWER_S: Final = 120.0
"""The first of its MCP server's installs what that one needs."""
_MAX_BYTES: Final = 16 * 1024 * 1024


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
        async with asyncio.timeout(ANSWER_S):
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
    async with httpx2.AsyncClient(base_url=url, timeout=ANSWER_S) as client:
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
