"""An MCP server that asks the person something in each call; nothing but the standard library.

`python asking_mcp_server.py FILE` has one tool, `open`. A call of it sends `elicitation/create`
with the parameters of FILE (JSON), and answers with what came back.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TOOL = {"name": "open", "description": "Opens a folder.", "inputSchema": {"type": "object"}}


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main() -> None:
    call: Any = None
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                info = {"name": "asking", "version": "1"}
                result: dict[str, Any] = {"protocolVersion": "2025-11-25", "serverInfo": info}
                send(id=message["id"], result={**result, "capabilities": {"tools": {}}})
            case "tools/list":
                send(id=message["id"], result={"tools": [TOOL]})
            case "tools/call":
                call = message["id"]
                asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
                send(id="question", method="elicitation/create", params=asked)
            case None if message.get("id") == "question":
                told = json.dumps(message.get("result") or message.get("error"))
                send(id=call, result={"content": [{"type": "text", "text": told}]})
            case _ if "id" in message:
                send(id=message["id"], error={"code": -32601, "message": "unknown method"})
            case _:
                pass


if __name__ == "__main__":
    main()
