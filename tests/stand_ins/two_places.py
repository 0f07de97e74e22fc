"""An address that a policy allows and one that it does not, both on this machine.

127.0.0.1 stands for inside: each path of its server redirects to the same path outside. 127.0.0.2
stands for outside, and notes who has come. With `CAAL_NETWORK=127.0.0.1` no test has to leave the
machine.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

INSIDE = "127.0.0.1"
OUTSIDE = "127.0.0.2"
CHILD_S = 60.0
"""Seconds for one process, which imports LiveKit on a busy machine."""


@dataclass
class TwoPlaces:
    """The servers' ports, and what has reached the one outside."""

    inside_port: int
    outside_port: int
    arrived: list[str] = field(default_factory=list[str])
    """The request lines, and `datagram`."""
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def note(self, what: str) -> None:
        with self._changed:
            self.arrived.append(what)
            self._changed.notify_all()

    def has_arrived(self, within_s: float) -> bool:
        """Wait until somebody has come to the one outside."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self.arrived), within_s)

    @property
    def inside(self) -> str:
        return f"http://{INSIDE}:{self.inside_port}"

    @property
    def outside(self) -> str:
        return f"http://{OUTSIDE}:{self.outside_port}"


@contextmanager
def two_places() -> Generator[TwoPlaces]:
    """Run both servers. A datagram to the outside's port is noted as well."""
    places = TwoPlaces(0, 0)

    class Outside(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(1000)
            places.note(self.raw_requestline.decode(errors="replace").strip())
            with suppress(OSError):
                if self.raw_requestline and self.parse_request():
                    self.send_error(404)
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing: a test's output is its own."""

    class Inside(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # WebSockets read no older one

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(307)
            there = f"{places.outside}{self.path}"
            is_websocket = "upgrade" in self.headers
            self.send_header("Location", there.replace("http", "ws") if is_websocket else there)
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            self.end_headers()

        do_GET = do_POST = do_HEAD = answer

        def log_message(self, format: str, *args: object) -> None:
            """See above."""

    outside = ThreadingHTTPServer((OUTSIDE, 0), Outside)
    inside = ThreadingHTTPServer((INSIDE, 0), Inside)
    places.inside_port, places.outside_port = inside.server_port, outside.server_port
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind((OUTSIDE, outside.server_port))

    own_end, end = socket.socketpair()

    def receive() -> None:
        while own_end not in select.select([datagrams, own_end], [], [])[0]:
            datagrams.recv(100)
            places.note("datagram")

    threads = [
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        for server in (outside, inside)
    ]
    threads.append(threading.Thread(target=receive, daemon=True))
    for thread in threads:
        thread.start()
    try:
        yield places
    finally:
        for server in (outside, inside):
            server.shutdown()
            server.server_close()
        end.close()
        for thread in threads:
            thread.join(5)
        datagrams.close()
        own_end.close()


def run_python(
    code: str, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `code` in a process of its own, since an audit hook stays for good."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=CHILD_S,
        check=False,
    )


def answer_of(code: str, *arguments: str, env: Mapping[str, str] | None = None) -> Any:
    """Return the JSON of the last line that `code` prints."""
    done = run_python(code, *arguments, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])
