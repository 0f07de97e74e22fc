"""An MCP server for tests, built on the SDK: `python -m tests.stand_ins.mcp_stand_in` speaks stdio.

What it sees goes out as lines over TCP to 127.0.0.1:$EVENTS_PORT, so that a test can wait for it.
With a port as its argument it serves streamable HTTP there, at /mcp.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

import anyio
import uvicorn
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ImageContent,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

PAGE = 4
ANYTHING: dict[str, Any] = {"type": "object", "properties": {}}
Tell = Callable[[str], None]


def text(*texts: str, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text) for text in texts], is_error=is_error)


def rows(count: int) -> dict[str, Any]:
    return {"rows": [{"id": i, "name": f"n{i}", "ok": True} for i in range(count)]}


class StandIn:
    """`tell` gets `NAME started` and `NAME cancelled`."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._waiting = 0
        self.gate = asyncio.Event()

    def server(self) -> Server[Any]:
        return Server("stand-in", on_list_tools=self.list_tools, on_call_tool=self.call_tool)

    def tools(self) -> list[Tool]:
        names = ["echo", "json", "structured", "fails", "picture", "crash", "wait", "pair"]
        names += ["giant", "dense", "blocks", "lies"]
        tools = [
            Tool(name=name, description=f"Does {name}.", input_schema=ANYTHING) for name in names
        ]
        tools[0].annotations = ToolAnnotations(read_only_hint=True)
        tools[5].annotations = ToolAnnotations(read_only_hint=True, destructive_hint=True)
        tools[-1].output_schema = {"type": "object", "required": ["yes"]}
        return tools

    async def list_tools(
        self, ctx: ServerRequestContext[Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        start = int(params.cursor) if params and params.cursor else 0
        tools = self.tools()
        more = str(start + PAGE) if start + PAGE < len(tools) else None
        return ListToolsResult(tools=tools[start : start + PAGE], next_cursor=more)

    async def call_tool(
        self, ctx: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        name, arguments = params.name, params.arguments or {}
        self._tell(f"{name} started")
        try:
            return await self._answer(name, arguments)
        except asyncio.CancelledError:
            self._tell(f"{name} cancelled")
            raise

    async def _answer(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        match name:
            case "echo":
                return text(str(arguments.get("say", "")))
            case "json":
                return text(json.dumps(arguments))
            case "structured":
                return CallToolResult(
                    content=[TextContent(text="a sentence")], structured_content=arguments
                )
            case "fails":
                return text("no such thing: give its full name", is_error=True)
            case "picture":
                picture = ImageContent(data="A" * 4000, mime_type="image/png")
                return CallToolResult(content=[TextContent(text="here it is"), picture])
            case "crash":
                os._exit(7)
            case "wait":
                await anyio.sleep_forever()
                raise AssertionError
            case "pair":  # answers only when two of it are under way
                self._waiting += 1
                if self._waiting == 2:
                    self.gate.set()
                await self.gate.wait()
                return text("both")
            case "giant":
                return text("x" * int(arguments["chars"]))
            case "dense":
                return CallToolResult(content=[], structured_content=rows(int(arguments["rows"])))
            case "blocks":
                return text(*(f"row {i}" for i in range(int(arguments["count"]))))
            case "lies":
                return CallToolResult(content=[], structured_content={"no": 1})
            case _:
                return text(f"called {name}")


async def over_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def over_http(server: Server[Any], port: int, tell: Tell) -> None:
    listening = socket.create_server(("127.0.0.1", port))
    tell("serving")
    config = uvicorn.Config(server.streamable_http_app(), log_level="error")
    await uvicorn.Server(config).serve(sockets=[listening])


async def main() -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", int(os.environ["EVENTS_PORT"]))

    def tell(line: str) -> None:
        writer.write(line.encode() + b"\n")

    tell(f"pid {os.getpid()}")
    server = StandIn(tell).server()
    await (over_http(server, int(sys.argv[1]), tell) if sys.argv[1:] else over_stdio(server))


if __name__ == "__main__":
    asyncio.run(main())
