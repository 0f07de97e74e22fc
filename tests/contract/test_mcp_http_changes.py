"""Tools that change at a server over HTTP, of either era, are listed anew and told of."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from mcp.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged as Changed
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from mcp_bridge import BridgeEvent, ServerConfig, ServerManager, ToolsChanged
from tests.stand_ins.mcp_events import PATIENCE_S

SCHEMA = {"type": "object"}


def new(*, grows_unheard: bool = False) -> ASGIApp:
    """2026-07-28, by the SDK: changes go out on the stream of `subscriptions/listen`.

    `grows_unheard`: it changes right after it was listed first, and tells nobody.
    """
    names, bus = ["grow"], InMemorySubscriptionBus()

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        listed = list(names)
        if grows_unheard and "more" not in names:
            names.append("more")
        return ListToolsResult(tools=[Tool(name=name, input_schema=SCHEMA) for name in listed])

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        if params.name == "grow":
            names.append("more")
            await bus.publish(Changed())
        return CallToolResult(content=[TextContent(text=f"called {params.name}")])

    server: Server[Any] = Server(
        "new",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(bus),
    )
    return server.streamable_http_app()


def old() -> ASGIApp:
    """2025-06-18, by hand: changes go out on the stream that the client opens with GET.

    https://modelcontextprotocol.io/specification/2025-06-18/basic/transports
    """
    names, told = ["grow"], asyncio.Queue[dict[str, Any]]()

    async def stream() -> AsyncIterator[str]:
        while True:
            yield f"event: message\ndata: {json.dumps(await told.get())}\n\n"

    async def asked(request: Request) -> Response:
        if request.method == "GET":
            return StreamingResponse(stream(), media_type="text/event-stream")
        message = await request.json()
        result: dict[str, Any]
        match message:
            case {"method": "initialize"}:
                result = {
                    "protocolVersion": "2025-06-18",
                    "serverInfo": {"name": "old", "version": "1"},
                    "capabilities": {"tools": {"listChanged": True}},
                }
            case {"method": "tools/list"}:
                result = {"tools": [{"name": name, "inputSchema": SCHEMA} for name in names]}
            case {"method": "tools/call", "params": {"name": name}}:
                if name == "grow":
                    names.append("more")
                    told.put_nowait(
                        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
                    )
                result = {"content": [{"type": "text", "text": f"called {name}"}]}
            case {"id": number}:
                error = {"code": -32601, "message": "unknown method"}
                return JSONResponse({"jsonrpc": "2.0", "id": number, "error": error})
            case _:
                return Response(status_code=202)
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return JSONResponse(answer, headers={"Mcp-Session-Id": "one"})

    return Starlette(routes=[Route("/mcp", asked, methods=["GET", "POST", "DELETE"])])


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncGenerator[str]:
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=0)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        server.should_exit = server.force_exit = True
        await task
        listening.close()


@pytest.mark.parametrize(("make", "era"), [(old, "2025-06-18"), (new, "2026-07-28")])
async def test_tools_that_change_over_http_are_listed_and_told_of(
    make: Callable[[], ASGIApp], era: str
) -> None:
    events: asyncio.Queue[BridgeEvent] = asyncio.Queue()
    async with served(make()) as url:
        config = ServerConfig(name="web", transport="http", url=url, connect_timeout_s=60.0)
        async with ServerManager([config], on_event=events.put_nowait) as manager:
            assert manager.servers[0].protocol == era
            assert [tool.name for tool in await manager.list_tools()] == ["web__grow"]
            assert (await manager.call_tool("web__grow")).value == "called grow"
            async with asyncio.timeout(PATIENCE_S):
                event = await events.get()
            assert event == ToolsChanged("web", ("web__more",), (), (), {})
            assert (await manager.call_tool("web__more")).value == "called more"


async def test_a_change_between_the_first_list_and_the_stream_is_not_lost() -> None:
    events: asyncio.Queue[BridgeEvent] = asyncio.Queue()
    async with served(new(grows_unheard=True)) as url:
        config = ServerConfig(name="web", transport="http", url=url, connect_timeout_s=60.0)
        async with ServerManager([config], on_event=events.put_nowait) as manager:
            async with asyncio.timeout(PATIENCE_S):
                assert await events.get() == ToolsChanged("web", ("web__more",), (), (), {})
            assert (await manager.call_tool("web__more")).value == "called more"
