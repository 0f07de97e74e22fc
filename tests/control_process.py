"""`caal-node control`, as a process of its own on a port of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2

from tests.livekit_server import LiveKit

CONTROL = (
    "import sys; from caal_node.control.serve import serve;"
    "from caal_node.settings import load_settings; serve(load_settings(), port=int(sys.argv[1]))"
)
START_S = 20.0


@asynccontextmanager
async def control_process(livekit: LiveKit, token: str) -> AsyncGenerator[str]:
    """`serve` in a process of its own; yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        CONTROL,
        str(port),
        env=os.environ
        | {
            "LIVEKIT_URL": livekit.url,
            "LIVEKIT_API_KEY": livekit.key,
            "LIVEKIT_API_SECRET": livekit.secret,
            "CAAL_CONTROL_TOKEN": token,
        },
    )
    address = f"http://127.0.0.1:{port}"
    try:
        async with asyncio.timeout(START_S), httpx2.AsyncClient() as http:
            while True:
                with contextlib.suppress(httpx2.TransportError):
                    await http.get(f"{address}/health")
                    break
                # Another process's start: there is nothing to wait on but the time.
                await asyncio.sleep(0.1)
        yield address
    finally:
        process.terminate()
        await process.wait()
