"""`caal-node health`: whether the worker of this machine can take rooms, for containers and units.

LiveKit's own answer at the worker's port says that the process runs; it stays "OK" while the
LiveKit server is away, since the worker goes on trying. So the server is asked as well, with the
worker's keys. A probe runs every minute, so this imports little: not `control`, which takes three
seconds.
"""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
from typing import Final

import aiohttp
import typer
from livekit import api

from caal_node.config.settings import Settings

PORT: Final = 8081
"""Where LiveKit's workers answer when they run as `start`."""
DEADLINE_S: Final = 5.0
"""Seconds for everything. An event loop that is silent for longer is heard in the room."""
SHOWN_CHARS: Final = 300
_NO_ROOM: Final = "-"
"""The only room that is asked for: which rooms there are is of no interest."""


async def run_health(settings: Settings, port: int = PORT) -> int:
    """Print what is found in one line; the exit code is 1 if the worker cannot take rooms."""
    try:
        async with (
            asyncio.timeout(DEADLINE_S),
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=DEADLINE_S)) as http,
        ):
            fault = await _worker_fault(http, port) or await _livekit_fault(http, settings)
    except TimeoutError:
        fault = f"no answer within {DEADLINE_S:g} s"
    typer.echo(f"unhealthy: {fault[:SHOWN_CHARS]}" if fault else "healthy")
    return 1 if fault else 0


async def _worker_fault(http: aiohttp.ClientSession, port: int) -> str | None:
    try:
        async with http.get(f"http://127.0.0.1:{port}/") as answer:
            if answer.status == 200:
                return None
            said = await answer.content.read(SHOWN_CHARS)
    except aiohttp.ClientError:
        return f"no worker answers at port {port}. Start it with: caal-node start"
    return f"the worker says: {said.decode(errors='replace')}"


async def _livekit_fault(http: aiohttp.ClientSession, settings: Settings) -> str | None:
    secret = settings.livekit_api_secret
    if not settings.livekit_url or not settings.livekit_api_key or secret is None:
        return "LIVEKIT_URL, LIVEKIT_API_KEY or LIVEKIT_API_SECRET is not set. Set all three."
    key = settings.livekit_api_key
    server = api.LiveKitAPI(settings.livekit_url, key, secret.get_secret_value(), session=http)
    try:
        await server.room.list_rooms(api.ListRoomsRequest(names=[_NO_ROOM]))
    except api.TwirpError as error:
        return (
            f"the LiveKit server at {settings.livekit_url} refuses the worker's keys or the "
            f"request ({error.status}). Check LIVEKIT_API_KEY and LIVEKIT_API_SECRET."
        )
    except aiohttp.ClientError:
        return f"the LiveKit server at {settings.livekit_url} does not answer"
    return None
