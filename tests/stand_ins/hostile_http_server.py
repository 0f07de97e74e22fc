"""A web server that answers with whatever it likes: as n8n, as Ollama, and as an OpenAI server.

`python -m tests.stand_ins.hostile_http_server NAME` prints its address and serves until standard
input ends. NAME is one of `ANSWERS`, which is what a request gets whose words hold `ATTACK`. Every
other one is answered well, so that it can be seen that the next turn works.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
import zlib
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from typing import Any, Final, TypeAlias

from caal_node.models.child_process import end

API_KEY: Final = "none"
ATTACK: Final = "attack"
GOOD_REPLY: Final = "All is well."
_MIB: Final = 2**20
Bytes: TypeAlias = Iterator[bytes]


def _head(*headers: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", "Connection: close", *headers, "", ""]).encode()


def _typed(kind: str, *more: str) -> bytes:
    return _head(f"Content-Type: {kind}", *more)


HTML: Final = "text/html; charset=utf-8"
JSON: Final = "application/json"
LINES: Final = "application/x-ndjson"
EVENTS: Final = "text/event-stream"


def _whole(kind: str, body: bytes, *more: str) -> Callable[[], Bytes]:
    return lambda: iter([_typed(kind, f"Content-Length: {len(body)}", *more) + body])


def _for_ever(kind: str, piece: bytes, *more: str, pause_s: float = 0.0) -> Callable[[], Bytes]:
    def answer() -> Bytes:
        yield _typed(kind, *more)
        for each in repeat(piece):
            yield each
            time.sleep(pause_s)

    return answer


def _chunked(kind: str, piece: bytes) -> Callable[[], Bytes]:
    """Each piece in an HTTP chunk of its own, 10,000 of them in a packet."""
    chunk = b"%x\r\n%s\r\n" % (len(piece), piece)
    return _for_ever(kind, chunk * 10_000, "Transfer-Encoding: chunked")


def _packed(kind: str, of: bytes, mib: int) -> Callable[[], Bytes]:
    """So many mebibytes, as a few kilobytes."""

    @cache
    def bomb() -> bytes:
        packer = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
        parts = [packer.compress(of * (_MIB // len(of))) for _ in range(mib)]
        return b"".join([*parts, packer.flush()])

    return lambda: _whole(kind, bomb(), "Content-Encoding: gzip")()


def _many(first: str, each: str, last: str, size: int) -> bytes:
    count = (size - len(first) - len(last)) // (len(each) + 1)
    return (first + ",".join([each] * count) + last).encode()


def _before_the_head(piece: bytes) -> Callable[[], Bytes]:
    return lambda: repeat(piece * 2_000)


_EVENT: Final = b'data: {"choices": [{"delta": {"content": ""}}]}\n\n'

ANSWERS: Final[dict[str, Callable[[], Bytes]]] = {
    # Pages in place of a workflow's answer.
    "open tags": _whole(HTML, b"<a " * 10_000),
    "cdata": _whole(HTML, b"<![CDATA[" * 100_000),
    "attributes": _whole(HTML, b"<p " + b"".join(b"a%d=1 " % i for i in range(120_000))),
    # Other bodies in place of a workflow's answer.
    "deep JSON": _whole(JSON, b"[" * 500_000 + b"]" * 500_000),
    "drip": _for_ever(JSON, b" ", pause_s=0.1),
    "giant headers": lambda: iter([_typed(JSON, *["a:b"] * 18_000) + b"{}"]),
    "cookies": lambda: iter([_typed(JSON, *[f"Set-Cookie: a{i}=b" for i in range(4_500)]) + b"{}"]),
    "hundreds": _before_the_head(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "steps": _for_ever(LINES, b"{}\n" * 20_000),
    "chunked steps": _chunked(LINES, b"x"),
    # Packed.
    "packed JSON": _packed(JSON, b" ", 256),
    "packed page": _packed(HTML, b"<a ", 64),
    "packed events": _packed(EVENTS, b"\n", 256),
    "packed lines": _packed(LINES, b"\n", 256),
    # A model's reply.
    "newlines": _for_ever(LINES, b"\n" * 65_536),
    "slow events": _for_ever(EVENTS, _EVENT, pause_s=0.1),
    "tiny chunks": _chunked(EVENTS, b"\n"),
    "empty lines": _for_ever(LINES, b"{}\n" * 20_000),
    "calls in a line": _whole(
        JSON, _many('{"message": {"tool_calls": [', "{}", "]}}", _MIB - 8) + b"\n"
    ),
    "choices": _whole(JSON, _many('{"choices": [', "{}", "]}", _MIB - 8)),
    "wrong page": lambda: iter([_head(f"Content-Type: {HTML}", status="502 Bad") + b"<a" * _MIB]),
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    name = ""
    streams = ""
    """How the workflow says that it answers; at `list` the list of workflows is the attack."""

    def do_GET(self) -> None:
        self._respond("GET", b"")

    def do_POST(self) -> None:
        self._respond("POST", self.rfile.read(int(self.headers.get("content-length", 0))))

    def _respond(self, method: str, body: bytes) -> None:
        self.close_connection = True
        path = self.path.partition("?")[0]
        good = self._good(path, body)
        with suppress(OSError):
            for piece in _whole(*good)() if good else ANSWERS[self.name]():
                self.wfile.write(piece)

    def _good(self, path: str, body: bytes) -> tuple[str, bytes] | None:
        """Return what is answered in good faith; None where the attack begins."""
        match path:
            case "/api/v1/workflows" if self.streams != "list":
                return JSON, json.dumps({"data": [self._workflow()], "nextCursor": None}).encode()
            case "/webhook/lookup" if ATTACK.encode() not in body:
                return JSON, b'{"found": "bread"}'
            case "/api/show":
                return JSON, json.dumps({"capabilities": ["completion", "tools"]}).encode()
            case "/v1/models":
                return JSON, json.dumps({"data": [{"id": "stand-in"}]}).encode()
            case "/api/chat" if ATTACK not in _last_words(body):
                line = {"message": {"content": GOOD_REPLY}, "done": True, "done_reason": "stop"}
                return LINES, json.dumps(line).encode() + b"\n"
            case "/v1/chat/completions" if ATTACK not in _last_words(body):
                choice = {"message": {"content": GOOD_REPLY}, "finish_reason": "stop"}
                event = json.dumps({"choices": [choice]}).encode()
                if json.loads(body)["stream"]:
                    return EVENTS, b"data: " + event + b"\n\ndata: [DONE]\n\n"
                return JSON, event
            case _:
                return None

    def _workflow(self) -> dict[str, Any]:
        parameters = {"httpMethod": "POST", "path": "lookup", "responseMode": self.streams}
        node = {"id": "n1", "name": "Webhook", "type": "n8n-nodes-base.webhook", "webhookId": "h1"}
        return {
            "id": "w1",
            "name": "lookup",
            "active": True,
            "description": "Look something up. Parameters: what (required, string).",
            "createdAt": "2026-01-05T12:00:00.000Z",
            "settings": {"availableInMCP": True},
            "nodes": [{**node, "parameters": parameters}],
            "connections": {},
        }

    def log_message(self, format: str, *args: object) -> None:
        pass


def _last_words(body: bytes) -> str:
    messages: list[dict[str, Any]] = json.loads(body)["messages"]
    return next((str(m["content"]) for m in reversed(messages) if m["role"] == "user"), "")


@asynccontextmanager
async def hostile_server(name: str, streams: str = "lastNode") -> AsyncGenerator[str]:
    """Serve `ANSWERS[name]` from a process of its own, and yield the address."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.stand_ins.hostile_http_server", name, streams),
        stdin=PIPE,
        stdout=PIPE,
    )
    try:
        assert child.stdout is not None
        yield (await child.stdout.readline()).decode().strip()
    finally:
        await end(child)


def main() -> None:
    _Handler.name, _Handler.streams = sys.argv[1:]
    next(ANSWERS[_Handler.name]())  # A bomb is made once, and takes seconds.
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
