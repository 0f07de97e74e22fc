"""An old-fashioned MCP server with bad manners, in nothing but the standard library.

`python raw_mcp_server.py [FLAG...]` speaks 2024-11-05 over stdio and knows `initialize` only.
Flags: deaf (answers nothing), stubborn (ignores the end of stdin and SIGTERM), family (leaves a
child in its group), noisy (prints what is no JSON-RPC), id-last (puts the id behind the result),
circle (its list of tools never ends), needs=FILE (exits unless FILE exists).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FLAGS = sys.argv[1:]


def tell(line: str) -> None:
    if EVENTS is not None:
        EVENTS.sendall(line.encode() + b"\n")


def answer(request: dict[str, Any], **result: Any) -> None:
    message = {"jsonrpc": "2.0", "id": request["id"], **result}
    if "id-last" in FLAGS:
        message["id"] = message.pop("id")
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def call(request: dict[str, Any]) -> None:
    name = request["params"]["name"]
    arguments: dict[str, Any] = request["params"].get("arguments") or {}
    if name == "wait":
        tell("wait started")
        return
    if name == "hang_up":
        os.close(1)
        return
    if name == "giant":
        said = "x" * int(arguments["chars"])
    else:
        said = json.dumps({"token": os.environ.get("TOKEN"), **arguments})
    answer(request, result={"content": [{"type": "text", "text": said}]})


def serve(request: dict[str, Any]) -> None:
    match request["method"]:
        case "initialize":
            version: dict[str, Any] = {
                "protocolVersion": "2024-11-05",
                "capabilities": {"tools": {}},
            }
            answer(request, result={**version, "serverInfo": {"name": "raw", "version": "1"}})
        case "tools/list":
            names = ("echo", "wait", "giant", "hang_up")
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
            more = {"nextCursor": "again"} if "circle" in FLAGS else {}
            answer(request, result={"tools": tools, **more})
        case "tools/call":
            call(request)
        case "notifications/cancelled":
            tell("cancelled")
        case _ if "id" in request:
            answer(request, error={"code": -32601, "message": "unknown method"})
        case _:
            pass


def main() -> None:
    for flag in FLAGS:
        if flag.startswith("needs=") and not Path(flag.removeprefix("needs=")).exists():
            sys.exit("the file is not there; token was " + os.environ.get("TOKEN", ""))
    if "stubborn" in FLAGS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "family" in FLAGS:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        tell(f"pid {child.pid}")
    tell(f"pid {os.getpid()}")
    if "noisy" in FLAGS:
        sys.stdout.write("Welcome to the server!\n\n{not json\n[1,2]\n")
    for line in sys.stdin:
        if "deaf" not in FLAGS:
            serve(json.loads(line))
    if "stubborn" in FLAGS:
        time.sleep(600)


if __name__ == "__main__":
    port = os.environ.get("EVENTS_PORT")
    EVENTS = socket.create_connection(("127.0.0.1", int(port))) if port else None
    main()
