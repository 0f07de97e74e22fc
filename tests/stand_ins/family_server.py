"""An MCP server with a family, for the kill matrix; nothing but the standard library.

`python family_server.py MARK KIND [stubborn]` starts one child before it answers anything: `plain`,
`setsid` (in a session of its own), `double-fork` (and its parent is gone) or `cleared` (as the one
before, with an empty environment). MARK stands in the command line of them all, so that they are
found again. `stubborn`: they ignore the end of stdin and SIGTERM. Its tools: `crash` exits with
code 7, `kill_parent` kills the process that started it, and `wait` is never answered.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

TOOLS = ("crash", "kill_parent", "wait")
MARK, KIND, *FLAGS = sys.argv[1:]
CHILD = """
import signal, sys, time
if "stubborn" in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(600)
"""


def answer(request: dict[str, Any]) -> None:
    match request["method"]:
        case "initialize":
            result: dict[str, Any] = {
                "protocolVersion": "2024-11-05",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "family", "version": "1"},
            }
        case "tools/list":
            result = {
                "tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
            }
        case "tools/call":
            if request["params"]["name"] == "wait":
                return
            if request["params"]["name"] == "kill_parent":
                os.kill(os.getppid(), signal.SIGKILL)
                time.sleep(600)  # never reached where the parent was a supervisor
            print("it was a good life", file=sys.stderr, flush=True)
            os._exit(7)
        case _ if "id" in request:
            refusal = {"code": -32601, "message": "unknown method"}
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": refusal}), flush=True)
            return
        case _:
            return
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


def start_child() -> None:
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", CHILD, MARK, *FLAGS],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=KIND != "plain",
        env={} if KIND == "cleared" else None,
    )
    assert child.stdout is not None
    child.stdout.readline()


def main() -> None:
    if "stubborn" in FLAGS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if KIND in ("double-fork", "cleared"):
        if (between := os.fork()) == 0:
            os.setsid()
            start_child()
            os._exit(0)
        os.waitpid(between, 0)
    else:
        start_child()
    for line in sys.stdin:
        answer(json.loads(line))
    while "stubborn" in FLAGS:
        time.sleep(600)


if __name__ == "__main__":
    main()
