"""A server of vectors in both forms, Ollama's and OpenAI's; each test says what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.stand_ins.embedding_stand_ins import vector


@dataclass
class EmbeddingServer:
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    paths: list[str] = field(default_factory=list[str])
    keys: list[str | None] = field(default_factory=list[str | None])
    answer: Callable[[list[list[float]]], web.StreamResponse] | None = None
    """In place of the vectors that are right."""
    held: asyncio.Event = field(default_factory=asyncio.Event)
    """Requests wait for it; it is set at first."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a request is there."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a client has left a request without an answer."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append(body)
        self.paths.append(request.path)
        self.keys.append(request.headers.get("Authorization"))
        self.arrived.set()
        try:
            await self.held.wait()
        except asyncio.CancelledError:
            self.gone.set()
            raise
        # Twice as long as a unit, as nothing says that a server's vectors are of length one.
        rows = [(2 * vector(text)).tolist() for text in body["input"]]
        if self.answer is not None:
            return self.answer(rows)
        if request.path == "/api/embed":
            return web.json_response({"model": body["model"], "embeddings": rows})
        data = [
            {"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)
        ]
        return web.json_response({"object": "list", "data": data[::-1], "model": body["model"]})


@asynccontextmanager
async def embedding_server() -> AsyncIterator[EmbeddingServer]:
    server = EmbeddingServer()
    server.held.set()
    app = web.Application()
    app.router.add_post("/api/embed", server.handle)
    app.router.add_post("/v1/embeddings", server.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        server.url = f"http://{host}:{port}"
        yield server
    finally:
        await runner.cleanup()
