"""An MCP server that repeats its key wherever it can, and does not keep to JSON and the protocol.

`API_KEY=... python nonconforming_mcp_server.py` speaks 2025-06-18 over stdio, in nothing but the
standard library. Its tools say what they do.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

KEY = os.environ.get("API_KEY", "")
TITLE = "\x1b]0;owned\x07\x1b[31mred\u202e"
ANSWERS = {
    "half_an_emoji": rb'{"content": [{"type": "text", "text": "cut \ud83d"}]}',
    "no_utf8": b'{"content": [{"type": "text", "text": "caf\xe9"}]}',
    "nulls": b'{"content": [{"type": "text", "text": "done"}], "isError": null}',
    "bare_text": b'{"content": "done"}',
    "list": b'{"structuredContent": ["a", "b"]}',
    "endless_number": b'{"content": [], "structuredContent": {"n": ' + b"9" * 5_000 + b"}}",
}


def send(message: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}).encode())


def write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def result_of(name: str, token: object) -> dict[str, Any]:
    if name == "tell_progress":
        said = {"progressToken": token, "progress": 1, "message": f"GET /?key={KEY}"}
        send({"method": "notifications/progress", "params": said})
    elif name == "ask":
        schema = {"type": "object", "properties": {"why": {"type": "string", "title": KEY}}}
        params = {"message": f"Is {KEY} right?", "requestedSchema": schema}
        send({"id": "q1", "method": "elicitation/create", "params": params})
        sys.stdin.readline()
    elif name == "exit":
        sys.exit(f"{TITLE} {KEY}")
    return {"content": [{"type": "text", "text": f"done with {KEY}"}]}


def tools() -> list[dict[str, Any]]:
    names = (*ANSWERS, "tell_progress", "ask", "exit")
    plain: dict[str, Any] = {"type": "object"}
    listed = [{"name": n, "description": f"Asks with {KEY}.", "inputSchema": plain} for n in names]
    secret = {"type": "object", "properties": {"key": {"default": KEY}}}
    odd = [
        {"name": "no_schema", "description": "Says."},
        {"name": "odd_icon", "description": "Says.", "inputSchema": {}, "icons": ["a.png"]},
        {"description": "Has no name.", "inputSchema": plain},
    ]
    return [*odd, *listed, {"name": "secret\nschema", "inputSchema": secret}]


def serve(request: dict[str, Any]) -> None:
    params = request.get("params") or {}
    if request["method"] == "initialize":
        about = {"name": "loose", "version": "1"}
        capabilities: dict[str, Any] = {"tools": {}}
        found: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": capabilities}
        send({"id": request["id"], "result": {**found, "serverInfo": about}})
    elif request["method"] == "tools/list":
        send({"id": request["id"], "result": {"tools": tools()}})
    elif request["method"] != "tools/call":
        send({"id": request["id"], "error": {"code": -32601, "message": "unknown method"}})
    elif (raw := ANSWERS.get(params.get("name", ""))) is not None:
        write(b'{"jsonrpc": "2.0", "id": %d, "result": %b}' % (request["id"], raw))
    else:
        token = (params.get("_meta") or {}).get("progressToken")
        send({"id": request["id"], "result": result_of(params["name"], token)})


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            serve(message)
