"""A stand-in for n8n with one workflow, `export`, whose webhook answers with giant JSON.

`python -m tests.bench.giant_webhook BYTES` prints its address and serves until standard input ends.
A call may ask for another size: {"bytes": 1000}.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Final

from aiohttp import web

from caal_node.models.child_process import end
from tests.bench.giants import records_json

API_KEY: Final = "none"
_WORKFLOW: Final[dict[str, Any]] = {
    "id": "w1",
    "name": "export",
    "active": True,
    "description": "Export everything.",
    "createdAt": "2026-01-05T12:00:00.000Z",
    "settings": {"availableInMCP": True},
    "nodes": [
        {
            "id": "n1",
            "name": "Webhook",
            "type": "n8n-nodes-base.webhook",
            "webhookId": "h1",
            "parameters": {"httpMethod": "POST", "path": "export", "responseMode": "lastNode"},
        }
    ],
    "connections": {},
}


@asynccontextmanager
async def served(size: int) -> AsyncGenerator[str]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.giant_webhook", str(size), stdin=PIPE, stdout=PIPE
    )
    try:
        assert child.stdout is not None
        yield (await child.stdout.readline()).decode().strip()
    finally:
        await end(child)


async def _main() -> None:
    usual = int(sys.argv[1])

    @cache
    def body(size: int) -> bytes:
        return records_json(size).encode()

    async def workflows(_: web.Request) -> web.Response:
        return web.json_response({"data": [_WORKFLOW], "nextCursor": None})

    async def export(request: web.Request) -> web.Response:
        size = int((await request.json()).get("bytes", usual))
        return web.Response(body=body(size), content_type="application/json")

    app = web.Application()
    app.router.add_get("/api/v1/workflows", workflows)
    app.router.add_post("/webhook/export", export)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    print(f"http://{host}:{port}", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(_main())
