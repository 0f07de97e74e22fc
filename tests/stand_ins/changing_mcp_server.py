"""A server that does more than answer: its tools change, it tells of progress, it asks.

`python changing_mcp_server.py` speaks 2026-07-28, built on the SDK; with an older version of the
protocol as its argument it speaks that one, in nothing but the standard library. Both have the
tools `era`, `grow` (adds one more), `count` (three signs of progress), `ask` (asks which room, and
says how that ended), `keep` and `kept` (one text, for as long as it runs) and `wait` (for ever).
Both tell `pid`, `wait started` and `wait cancelled` over TCP to 127.0.0.1:$EVENTS_PORT.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any

NAMES = ["era", "grow", "count", "ask", "keep", "kept", "wait"]
ROOM = {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]}
EVENTS = socket.create_connection(("127.0.0.1", int(os.environ["EVENTS_PORT"])))


def tell(line: str) -> None:
    EVENTS.sendall(line.encode() + b"\n")


def ended(answer: dict[str, Any]) -> str:
    return f"{answer['action']} {(answer.get('content') or {}).get('room', '')}".strip()


class Old:
    """Of an era that begins with `initialize`."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.names = list(NAMES)
        self.kept = ""
        self.asking: Any = None

    def send(self, **message: Any) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def say(self, request_id: Any, text: str) -> None:
        self.send(id=request_id, result={"content": [{"type": "text", "text": text}]})

    def take(self, message: dict[str, Any]) -> None:
        match message:
            case {"method": "initialize", "id": request_id}:
                more = {
                    "protocolVersion": self.version,
                    "serverInfo": {"name": "o", "version": "1"},
                }
                self.send(id=request_id, result={**more, "capabilities": {"tools": CHANGES}})
            case {"method": "tools/list", "id": request_id}:
                tools = [{"name": n, "inputSchema": {"type": "object"}} for n in self.names]
                self.send(id=request_id, result={"tools": tools})
            case {"method": "tools/call", "id": request_id, "params": params}:
                self.call(request_id, params)
            case {"method": "notifications/cancelled"}:
                tell("wait cancelled")
            case {"method": _, "id": request_id}:
                self.send(id=request_id, error={"code": -32601, "message": "unknown method"})
            case {"id": "question", "result": answer}:
                self.say(self.asking, ended(answer))
            case _:
                pass

    def call(self, request_id: Any, params: dict[str, Any]) -> None:
        match params["name"]:
            case "era":
                self.say(request_id, self.version)
            case "grow":
                self.names.append(f"more{len(self.names)}")
                self.send(method="notifications/tools/list_changed")
                self.say(request_id, "grown")
            case "count":
                token = params["_meta"]["progressToken"]
                for step in (1, 2, 3):
                    told = {"progressToken": token, "progress": step, "total": 3}
                    told["message"] = f"step {step}\u202e"
                    self.send(method="notifications/progress", params=told)
                self.say(request_id, "counted")
            case "ask":
                self.asking = request_id
                asked = {"message": "Which room?", "requestedSchema": ROOM}
                self.send(id="question", method="elicitation/create", params=asked)
            case "keep":
                self.kept = params["arguments"]["text"]
                self.say(request_id, "kept")
            case "kept":
                self.say(request_id, self.kept)
            case "wait":
                tell("wait started")
            case name:
                self.say(request_id, f"called {name}")


CHANGES = {"listChanged": True}


def serve_old(version: str) -> None:
    server = Old(version)
    for line in sys.stdin:
        server.take(json.loads(line))


async def serve_new() -> None:
    import anyio
    from mcp.server import Server
    from mcp.server.stdio import stdio_server
    from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
    from mcp.shared.subscriptions import ToolsListChanged
    from mcp_types import (
        CallToolResult,
        ElicitRequest,
        ElicitRequestFormParams,
        InputRequiredResult,
        ListToolsResult,
        TextContent,
        Tool,
    )

    names, bus = list(NAMES), InMemorySubscriptionBus()
    kept = ""

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(
            tools=[Tool(name=name, input_schema={"type": "object"}) for name in names]
        )

    async def call_tool(context: Any, params: Any) -> CallToolResult | InputRequiredResult:
        nonlocal kept
        said = f"called {params.name}"
        match params.name:
            case "era":
                said = context.protocol_version
            case "grow":
                names.append(f"more{len(names)}")
                await bus.publish(ToolsListChanged())
                said = "grown"
            case "count":
                for step in (1, 2, 3):
                    await context.session.report_progress(step, 3, f"step {step}\u202e")
                said = "counted"
            case "ask":
                if not params.input_responses:
                    asked = ElicitRequestFormParams(message="Which room?", requested_schema=ROOM)
                    return InputRequiredResult(input_requests={"r": ElicitRequest(params=asked)})
                said = ended(params.input_responses["r"].model_dump())
            case "keep":
                kept, said = params.arguments["text"], "kept"
            case "kept":
                said = kept
            case "wait":
                tell("wait started")
                try:
                    await anyio.sleep_forever()
                except anyio.get_cancelled_exc_class():
                    tell("wait cancelled")
                    raise
        return CallToolResult(content=[TextContent(text=said)])

    server: Server[Any] = Server(
        "lively",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(bus),
    )
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    tell(f"pid {os.getpid()}")
    if sys.argv[1:]:
        serve_old(sys.argv[1])
    else:
        import asyncio

        asyncio.run(serve_new())
