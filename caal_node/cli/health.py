"""`caal-node health`: whether the worker of this machine can take rooms, for containers and units.

LiveKit's own answer at the worker's port says that the process runs; it stays "OK" while the
LiveKit server is away, since the worker goes on trying. So the server is asked as well, with the
worker's keys.
"""

from __future__ import annotations

import asyncio
from typing import Final

import httpx2
import typer

from caal_node.cli.checks.room_and_sound import livekit_away, require_livekit
from caal_node.config.settings import Settings
from caal_node.core.errors import ConfigError
from caal_node.http_client import open_client

PORT: Final = 8081
"""Where LiveKit's workers answer when they run as `start`."""
DEADLINE_S: Final = 5.0
"""Seconds for everything. An event loop that is silent for longer is heard in the room."""
_SHOWN_CHARS: Final = 200


async def run_health(settings: Settings, port: int = PORT) -> int:
    """Print what is found in one line; the exit code is 1 if the worker cannot take rooms."""
    require_livekit(settings)
    try:
        async with asyncio.timeout(DEADLINE_S):
            fault = await worker_fault(port) or await livekit_away(settings)
    except TimeoutError:
        fault = f"no answer within {DEADLINE_S:g} s"
    except ConfigError as error:  # the LiveKit server refuses the keys
        fault = str(error)
    typer.echo(f"unhealthy: {fault}" if fault else "healthy")
    return 1 if fault else 0


async def worker_fault(port: int) -> str | None:
    """Return what is wrong with the worker at this port, in one line; None if nothing is."""
    try:
        async with open_client(trust_env=False) as client:
            answer = await client.get(f"http://127.0.0.1:{port}/", timeout=DEADLINE_S)
    except httpx2.TransportError:
        return f"no worker answers at port {port}. Start it with: caal-node start"
    if answer.status_code != httpx2.codes.OK:
        return f"the worker says: {answer.text[:_SHOWN_CHARS]}"
    return None
