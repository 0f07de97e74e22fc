"""MCP servers with many tools each, and an n8n with many workflows, in the standard library alone.

`python reload_peers.py mcp SERVER COUNT FILE` is one server over stdio, which lists its tools in
pages of 100; `python reload_peers.py n8n COUNT FILE` prints its address and serves the public API
until standard input ends. Both read FILE whenever they are asked: `some` has every tenth described
anew and another at the end, `all` has each described anew.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

PAGE = 100
DOINGS = ("list", "send", "count", "print", "archive", "share", "check", "sort", "merge", "split")
THINGS = ("invoice", "report", "meeting", "parcel", "lamp", "recipe", "contract", "photo", "route")


def chosen(count: int, change: str) -> list[tuple[int, str]]:
    """The numbers that are there now, each with the end of its description."""
    said = {"some": " It has been changed.", "all": " All have been changed."}.get(change, "")
    every = 10 if change == "some" else 1
    return [(n, "" if n % every else said) for n in range(count + (change == "some"))]


def name_of(number: int) -> str:
    doing, thing = DOINGS[number % len(DOINGS)], THINGS[number % len(THINGS)]
    return f"{doing}_{thing}_{number}"


def tool(server: int, number: int, end: str) -> dict[str, Any]:
    """A tool of some 900 bytes, as servers write them."""
    doing, thing, *_ = name_of(number).split("_")
    text = {"type": "string", "description": f"The name of the {thing}, as it is in the list."}
    properties = {
        "name": text,
        "owner": {"type": "string", "description": f"Whose {thing} it is; everybody's if empty."},
        "since": {"type": "string", "format": "date", "description": "The first day, YYYY-MM-DD."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
        "order": {"type": "string", "enum": ["newest", "oldest", "name", "size"]},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Any of these."},
    }
    return {
        "name": name_of(number),
        "title": f"{doing} {thing}".title(),
        "description": f"Use this to {doing} the {thing} number {number} of house {server}. It "
        f"gives what it has done, and for whom, in the order that you ask for.{end}",
        "inputSchema": {"type": "object", "properties": properties, "required": ["name"]},
        "annotations": {"readOnlyHint": number % 3 == 0, "openWorldHint": False},
    }


def workflow(number: int, end: str) -> dict[str, Any]:
    doing, thing, *_ = name_of(number).split("_")
    notes = f"Does {doing} the {thing} of house {number}.{end}\n@param name the {thing}\n"
    webhook = {
        "id": f"n{number}",
        "name": "Webhook",
        "type": "n8n-nodes-base.webhook",
        "webhookId": f"h{number}",
        "notes": f"{notes}@param limit (number, optional) how many at most",
        "parameters": {"httpMethod": "POST", "path": f"p{number}", "responseMode": "lastNode"},
    }
    code: dict[str, Any] = {"id": "c", "name": "Code", "type": "n8n-nodes-base.code"}
    code["parameters"] = {"jsCode": "return $input.all().map(one => one.json.body.name);\n" * 20}
    return {
        "id": f"w{number}",
        "name": name_of(number).replace("_", " "),
        "active": True,
        "createdAt": f"2026-01-01T00:00:{number:06d}Z",
        "updatedAt": f"2026{end}",
        "versionId": f"v{end}",
        "activeVersionId": f"v{end}",
        "settings": {"availableInMCP": True},
        "nodes": [webhook, code],
        "connections": {},
    }


def serve_mcp(server: int, count: int, change: Path) -> None:
    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if request["method"] == "initialize":
            info: dict[str, Any] = {"serverInfo": {"name": "many", "version": "1"}}
            info |= {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            return {"result": info}
        if request["method"] != "tools/list":
            return {"error": {"code": -32601, "message": "unknown method"}}
        params: dict[str, Any] = request.get("params") or {}
        at = int(params.get("cursor") or 0)
        there = chosen(count, change.read_text())
        result: dict[str, Any] = {"tools": [tool(server, *one) for one in there[at : at + PAGE]]}
        if at + PAGE < len(there):
            result["nextCursor"] = str(at + PAGE)
        return {"result": result}

    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            told = {"jsonrpc": "2.0", "id": request["id"], **answer(request)}
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()


def serve_n8n(count: int, change: Path) -> None:
    class Api(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            at, limit = (int(query.get(key, ["0"])[0]) for key in ("cursor", "limit"))
            there = chosen(count, change.read_text())
            page = {
                "data": [workflow(*one) for one in there[at : at + limit]],
                "nextCursor": str(at + limit) if at + limit < len(there) else None,
            }
            body = json.dumps(page).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    if sys.argv[1] == "mcp":
        serve_mcp(int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    else:
        serve_n8n(int(sys.argv[2]), Path(sys.argv[3]))
