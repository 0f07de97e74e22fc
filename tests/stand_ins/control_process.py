"""`caal-node control`, as a process of its own on a port of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2

from tests.stand_ins.livekit_server import LiveKit

CONTROL = (
    "import sys; from caal_node.control.app import serve;"
    "from caal_node.config.settings import load_settings;"
    "serve(load_settings(), port=int(sys.argv[1]))"
)
START_S = 60.0
ATTEMPTS = 3
"""A port is chosen free and may be taken before the process has it."""


@asynccontextmanager
async def control_process(livekit: LiveKit, token: str) -> AsyncGenerator[str]:
    """`serve` in a process of its own; yields its address."""
    env = {
        "LIVEKIT_URL": livekit.url,
        "LIVEKIT_API_KEY": livekit.key,
        "LIVEKIT_API_SECRET": livekit.secret,
        "CAAL_CONTROL_TOKEN": token,
    }
    async with on_a_port("-c", CONTROL, env=env) as address:
        yield address


@asynccontextmanager
async def on_a_port(
    *arguments: str, env: Mapping[str, str], cwd: Path | None = None, quiet: bool = False
) -> AsyncGenerator[str]:
    """Python with these arguments and a free port behind them; yields its address.

    Args:
        quiet: Leave out what it says on stderr.
    """
    for _ in range(ATTEMPTS):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *arguments, str(port)),
            env={**os.environ, **env},
            cwd=cwd,
            stderr=DEVNULL if quiet else None,
        )
        address = f"http://127.0.0.1:{port}"
        try:
            if await _serves(process, address):
                yield address
                return
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()
    raise AssertionError(f"it ended before it answered, {ATTEMPTS} times")


async def _serves(process: Process, address: str) -> bool:
    """Whether it came up; False where it ended before."""
    async with asyncio.timeout(START_S), httpx2.AsyncClient() as http:
        while process.returncode is None:
            with contextlib.suppress(httpx2.TransportError):
                if (await http.get(f"{address}/health")).status_code < 500:
                    return True
            # Another process's start: there is nothing to wait on but the time.
            await asyncio.sleep(0.1)
    return False
