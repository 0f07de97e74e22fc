"""An MCP server whose tool, `go`, does what its argument `deed` says; the standard library only.

`python noisy_mcp_peer.py stdio` speaks lines; `http` and `ws` listen on a free port of this machine
and print it. A deed is a row of messages, each framed as its transport has it, and some do not end.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import itertools
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

_BATCH_BYTES: Final = 64 * 1024
_WS_MAGIC: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

Send = Callable[[bytes], None]


def answer(call: Any, said: str = "done") -> bytes:
    result = {"content": [{"type": "text", "text": said}]}
    return json.dumps({"jsonrpc": "2.0", "id": call, "result": result}).encode()


def note(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()


def asks(number: int, method: str, **params: Any) -> bytes:
    asked = {"jsonrpc": "2.0", "id": f"s{number}", "method": method, "params": params}
    return json.dumps(asked).encode()


def tool(name: str, words: str = "Does as told.") -> dict[str, Any]:
    properties = {"deed": {"type": "string"}}
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": words, "inputSchema": schema}


def messages(deed: str, call: Any, token: Any) -> Iterator[bytes]:
    """What is sent in place of a call's answer, or before it."""
    text = {"role": "user", "content": {"type": "text", "text": "x" * 1_000}}
    match deed:
        case "junk":
            yield from itertools.repeat(
                b"INFO  processed one more record of the table, and went on"
            )
        case "blank":
            yield from itertools.repeat(b"")
        case "log":
            yield from itertools.repeat(note("notifications/message", level="info", data="x" * 80))
        case "changed":
            yield from itertools.repeat(note("notifications/tools/list_changed"))
        case "progress":
            for done in itertools.count():
                yield note("notifications/progress", progressToken=token, progress=done)
        case "sampling":
            for number in itertools.count():
                yield asks(number, "sampling/createMessage", messages=[text], maxTokens=9)
        case "ping":
            for number in itertools.count():
                yield asks(number, "ping")
        case "giants":
            for _ in range(3):
                yield note("notifications/message", level="info", data="x" * 12_000_000)
            yield answer(call)
        case "late giants":  # what they are is known at their ends only
            for _ in range(3):
                data = json.dumps({"data": [{"a": 1}] * 400_000})
                yield f'{{"params":{data},"method":"notifications/message"}}'.encode()
            yield answer(call)
        case "strangers":
            yield from (answer(f"no such {number}") for number in range(100_000))
            yield answer(call)
        case "twice":
            yield from (answer(call) for _ in range(100_000))
        case "banner":
            yield from (b"loading %d of 2000 [=====>   ]" % step for step in range(2_000))
            yield from (note("notifications/message", level="debug", data="x") for _ in range(500))
            yield b"Ready."
            yield answer(call)
        case "stderr":
            for _ in range(200):
                sys.stderr.write("a line of its log, and no secret\n" * 3_000)
            yield answer(call)
        case "broken":
            yield b"[" * 1_000_000
            yield b'{"a":' * 200_000
            yield b'{"jsonrpc":"2.0","id":1e999,"result":{}}'
            yield b'{"jsonrpc":"2.0","id":' + b"9" * 100_000 + b',"result":{}}'
            yield b'{"jsonrpc":"2.0","id":1,"id":"\\ud800","result":{"content":[]}}'
            yield b'{"jsonrpc":"2.0","method":"notifications/\\udfff\\u0000","params":{}}'
            yield b'{"jsonrpc":"2.0","method":"notifications/progress","params":[[[[1]]]]}'
            yield b"\x00\xff\xfe\x00" * 20_000
            yield b'{"jsonrpc":"2.0","id":null,"error":{"code":' + b"1" * 5_000 + b',"message":""}}'
            yield answer(call)
        case _ if deed.startswith("answer "):
            yield deed.removeprefix("answer ").replace("ID", json.dumps(call)).encode()
        case _:
            yield answer(call, deed)


def replies(request: dict[str, Any]) -> Iterator[bytes]:
    method, call = request.get("method"), request.get("id")
    if call is None or method is None:
        return
    params = request.get("params") or {}
    head = {"jsonrpc": "2.0", "id": call}
    if method == "initialize":
        about: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        about["serverInfo"] = {"name": "noisy", "version": "1"}
        yield json.dumps({**head, "result": about}).encode()
    elif method == "tools/list":
        yield json.dumps({**head, "result": listing(params.get("cursor"))}).encode()
    elif method == "tools/call":
        deed = params["arguments"].get("deed", "")
        yield from messages(deed, call, params.get("_meta", {}).get("progressToken"))
    else:
        yield json.dumps({**head, "error": {"code": -32601, "message": "no such method"}}).encode()


def listing(cursor: str | None) -> dict[str, Any]:
    """As the second word of the command line has it."""
    kind = sys.argv[2] if len(sys.argv) > 2 else ""
    if kind == "many":
        return {"tools": [tool("go"), *(tool(f"t{n}", "x" * 400) for n in range(10_000))]}
    if kind == "endless":
        page = int(cursor or 0)
        return {"tools": [tool("go" if not page else f"t{page}")], "nextCursor": str(page + 1)}
    if kind == "giant":
        wide = {"type": "object", "properties": {f"p{n}": {} for n in range(150_000)}}
        return {"tools": [tool("go"), {"name": "wide", "inputSchema": wide}]}
    return {"tools": [tool("go")]}


def sent_in_batches(units: Iterator[bytes], send: Send) -> None:
    batch: list[bytes] = []
    size = 0
    for unit in units:
        batch.append(unit)
        size += len(unit)
        if size >= _BATCH_BYTES:
            send(b"".join(batch))
            batch, size = [], 0
    send(b"".join(batch))


def stdio() -> None:
    def send(data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    for line in sys.stdin.buffer:  # and what comes during a deed is not read
        sent_in_batches((unit + b"\n" for unit in replies(json.loads(line))), send)


def listen(serve: Callable[[socket.socket], None]) -> None:
    def one(peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError, ValueError):
            serve(peer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        threading.Thread(target=lambda: (sys.stdin.read(), server.close()), daemon=True).start()
        with contextlib.suppress(OSError):
            while True:
                peer, _ = server.accept()
                threading.Thread(target=one, args=(peer,), daemon=True).start()


def head_of(stream: Any) -> tuple[str, dict[str, str]]:
    first = stream.readline().decode("latin-1")
    headers: dict[str, str] = {}
    while line := stream.readline().decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return first, headers


def websocket(peer: socket.socket) -> None:
    stream = peer.makefile("rb")
    _, headers = head_of(stream)
    digest = hashlib.sha1(headers["sec-websocket-key"].encode() + _WS_MAGIC).digest()
    accept = base64.b64encode(digest).decode()
    peer.sendall(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: mcp\r\n\r\n".encode()
    )
    while True:
        request = json.loads(frame_from(stream) or b"{}")
        sent_in_batches((frame(unit) for unit in replies(request)), peer.sendall)


def frame(data: bytes) -> bytes:
    if len(data) < 126:
        return bytes((0x81, len(data))) + data
    if len(data) < 1 << 16:
        return b"\x81\x7e" + len(data).to_bytes(2, "big") + data
    return b"\x81\x7f" + len(data).to_bytes(8, "big") + data


def frame_from(stream: Any) -> bytes:
    kind, size = stream.read(2)
    size &= 0x7F
    if size >= 126:
        size = int.from_bytes(stream.read(2 if size == 126 else 8), "big")
    mask = stream.read(4)
    data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(stream.read(size)))
    if kind & 0x0F == 8:
        raise OSError
    return data if kind & 0x0F == 1 else b""


def http(peer: socket.socket) -> None:
    stream = peer.makefile("rb")
    first, headers = head_of(stream)
    body = stream.read(int(headers.get("content-length", 0)))
    if first.startswith("GET") and "last-event-id" in headers:
        again(peer, None)
        return
    if not first.startswith("POST"):
        peer.sendall(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        return
    request = json.loads(body or b"{}")
    deed = (request.get("params") or {}).get("arguments", {}).get("deed", "")
    if deed in HTTP_DEEDS:
        HTTP_DEEDS[deed](peer, request["id"])
    elif request.get("method") == "tools/call":
        peer.sendall(STREAM)
        sent_in_batches((b"data: " + unit + b"\n\n" for unit in replies(request)), peer.sendall)
    elif told := b"".join(replies(request)):
        peer.sendall(json_head(len(told)) + told)
    else:
        peer.sendall(b"HTTP/1.1 202 Yes\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")


STREAM: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def json_head(size: int, more: str = "") -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{more}"
    return f"{head}connection: close\r\ncontent-length: {size}\r\n\r\n".encode()


def for_ever(peer: socket.socket, unit: bytes) -> None:
    batch = unit * (_BATCH_BYTES // len(unit) + 1)
    while True:
        peer.sendall(batch)


def comments(peer: socket.socket, call: Any) -> None:
    peer.sendall(STREAM)
    for_ever(peer, b":\n")


def returns(peer: socket.socket, call: Any) -> None:
    peer.sendall(STREAM)
    for_ever(peer, b"data: {}\r\r")


def endless_event(peer: socket.socket, call: Any) -> None:
    peer.sendall(STREAM)
    for_ever(peer, b"data: x\n")


def other_events(peer: socket.socket, call: Any) -> None:
    peer.sendall(STREAM)
    for_ever(peer, b"event: other\ndata: x\n\n")


def informational(peer: socket.socket, call: Any) -> None:
    for_ever(peer, b"HTTP/1.1 103 Hm\r\n\r\n")


def header(peer: socket.socket, call: Any) -> None:
    peer.sendall(b"HTTP/1.1 200 OK\r\nx: ")
    for_ever(peer, b"x")


def bomb(peer: socket.socket, call: Any) -> None:
    packed = gzip.compress(b" " * 200_000_000, 1)
    peer.sendall(json_head(len(packed), "content-encoding: gzip\r\n") + packed)


def redirected_bomb(peer: socket.socket, call: Any) -> None:
    packed = gzip.compress(b" " * 200_000_000, 1)
    head = (
        "HTTP/1.1 307 There\r\nlocation: /mcp/\r\ncontent-encoding: gzip\r\nconnection: close\r\n"
    )
    peer.sendall(f"{head}content-length: {len(packed)}\r\n\r\n".encode() + packed)


def page(peer: socket.socket, call: Any) -> None:
    peer.sendall(b"HTTP/1.1 500 No\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n")
    for_ever(peer, b"<a ")


def small_chunks(peer: socket.socket, call: Any) -> None:
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    peer.sendall(head)
    for_ever(peer, b"1\r\n \r\n")


def again(peer: socket.socket, call: Any) -> None:
    peer.sendall(STREAM + b"id: 7\nretry: 0\ndata:\n\n")


HTTP_DEEDS: Final = {
    "comments": comments,
    "returns": returns,
    "endless event": endless_event,
    "other events": other_events,
    "informational": informational,
    "header": header,
    "bomb": bomb,
    "redirected bomb": redirected_bomb,
    "page": page,
    "small chunks": small_chunks,
    "again": again,
}


if __name__ == "__main__":
    match sys.argv[1]:
        case "stdio":
            stdio()
        case "ws":
            listen(websocket)
        case _:
            listen(http)
