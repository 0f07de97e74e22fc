"""The client under test: one scenario of the official suite, through `ServerManager` alone.

The suite starts it with the server's address as its last argument, the scenario's name in
MCP_CONFORMANCE_SCENARIO and what it needs to know in MCP_CONFORMANCE_CONTEXT (JSON).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Mapping
from typing import Any, Final

import httpx2
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl

from mcp_bridge import (
    Accepted,
    BridgeError,
    MemoryStore,
    OAuth,
    Question,
    ServerConfig,
    ServerManager,
)

REDIRECT_URI: Final = "http://localhost:3000/callback"
METADATA_URL: Final = "https://conformance-test.local/client-metadata.json"
"""The suite's own name for us, in place of a registration."""
SERVER: Final = "suite"
ANYWHERE_HERE: Final = tuple(f"http://localhost:{port}" for port in range(1024, 65536))
"""The suite's authorization servers have ports of their own, which nobody knows beforehand."""
ARGUMENTS: Final[Mapping[str, Mapping[str, Any]]] = {"add_numbers": {"a": 5, "b": 3}}
"""By tool; others are called without."""


async def go_there(_: str, page: str) -> str:
    """A person who consents to everything: the page sends them back at once."""
    async with httpx2.AsyncClient(trust_env=False) as browser:
        answer = await browser.get(page)
    return answer.headers["location"]


async def say_yes(question: Question) -> Accepted:
    """A person who takes what is proposed."""
    proposed = {f.name: f.default for f in question.fields if f.default is not None}
    yes = {f.name: True for f in question.fields if f.kind == "boolean" and f.default is None}
    return Accepted({**yes, **proposed})


def oauth(context: Mapping[str, Any]) -> OAuth:
    client = None
    if client_id := context.get("client_id"):
        secret = context.get("client_secret")
        client = OAuthClientInformationFull(
            client_id=client_id,
            client_secret=secret,
            redirect_uris=[AnyUrl(REDIRECT_URI)],
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
        )
    store = MemoryStore(client)
    return OAuth(
        sign_in=go_there,
        redirect_uri=REDIRECT_URI,
        stores=lambda _: store,
        client_metadata_url=METADATA_URL,
        client_name="conformance-client",
    )


async def run(url: str, context: Mapping[str, Any]) -> None:
    server = ServerConfig(SERVER, transport="http", url=url, authorization_servers=ANYWHERE_HERE)
    async with ServerManager([server], elicitor=say_yes, oauth=oauth(context)) as manager:
        tools = {tool.tool: tool.name for tool in await manager.list_tools()}
        logging.info("tools: %s; failed: %s", list(tools), dict(manager.failed))
        calls = [(call["name"], call["arguments"]) for call in context.get("toolCalls", [])]
        for tool, arguments in calls or [(tool, ARGUMENTS.get(tool, {})) for tool in tools]:
            if tool not in tools:
                continue
            try:
                result = await manager.call_tool(tools[tool], arguments)
                logging.info("%s: %s", tool, "error" if result.is_error else "ok")
            except BridgeError as error:
                logging.info("%s: %s", tool, error)


def main() -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    asyncio.run(run(sys.argv[-1], context))


if __name__ == "__main__":
    main()
