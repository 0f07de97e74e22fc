"""Somebody who adds workflows to an n8n while an agent talks, and takes them away again."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import resources
from typing import Any, Final

import httpx2

REGISTERED_S: Final = 30.0
_LOOK_S: Final = 0.1
Body = Mapping[str, Any]


class Author:
    """Works by the public API of the n8n that the environment names."""

    def __init__(self, api: httpx2.AsyncClient, own: AsyncExitStack) -> None:
        self._api = api
        self._own = own

    async def publish(self, body: Body) -> None:
        """Add a workflow until the end of the block. It begins once the trigger is registered."""
        workflow_id = (await self._ask("POST", "workflows", body))["id"]
        await self._ask("POST", f"workflows/{workflow_id}/activate", {})
        # Not deleted too: n8n refuses that until it has unpublished it, and is itself thrown away.
        self._own.push_async_callback(self._ask, "POST", f"workflows/{workflow_id}/deactivate", {})
        for node in body["nodes"]:
            if node["type"].endswith(".webhook"):
                await self._until_there(f"/webhook/{node['parameters']['path']}", "Did you mean")
            elif node["type"].endswith(".mcpTrigger"):
                await self._until_there(f"/mcp/{node['parameters']['path']}", "")

    async def credential(self, kind: str, data: Body) -> dict[str, Any]:
        """Return what a node has under `credentials`."""
        wanted = {"name": "of a test", "type": kind, "data": data}
        told = await self._ask("POST", "credentials", wanted)
        return {kind: {"id": told["id"], "name": told["name"]}}

    async def _until_there(self, path: str, word: str) -> None:
        """Wait, as publishing comes back before a trigger is registered.

        What is asked here runs nothing: a webhook with a method that it does not take, or an MCP
        server without its token.
        """
        async with asyncio.timeout(REGISTERED_S):
            # Another process's progress: there is nothing to wait on but the time.
            while True:
                reply = await self._api.get(path)
                if (word in reply.text) if word else (reply.status_code != 404):
                    return
                await asyncio.sleep(_LOOK_S)

    async def _ask(self, method: str, path: str, body: Body) -> Any:
        reply = await self._api.request(method, f"/api/v1/{path}", json=body)
        assert reply.status_code < 300, f"{method} {path}: {reply.text[:500]}"
        return reply.json()


@asynccontextmanager
async def author() -> AsyncGenerator[Author]:
    async with (
        httpx2.AsyncClient(
            base_url=os.environ["N8N_TEST_URL"],
            headers={"x-n8n-api-key": os.environ["N8N_TEST_API_KEY"]},
            timeout=30,
        ) as api,
        AsyncExitStack() as own,
    ):
        yield Author(api, own)


def sample(file: str, *, name: str) -> dict[str, Any]:
    """Return a sample workflow under another name and at another path."""
    told = json.loads((resources.files("n8n") / "workflows" / file).read_text("utf-8"))
    for node in told["nodes"]:
        if node["type"].endswith(".webhook"):
            node["parameters"]["path"] = name
            node["webhookId"] = f"id-of-{name}"
    kept = {key: told[key] for key in ("nodes", "connections", "settings")}
    return {"name": name, **kept}
