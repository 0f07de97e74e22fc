"""A real livekit-server on ports of its own, for tests and benches."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO

from livekit import api

from caal_node.cli.processes.livekit_server import find_server as find_server

KEY = "devkey"
SECRET = secrets.token_hex(16)  # 32 characters: the server warns of shorter ones
READY_DEADLINE_S = 20.0
STOP_DEADLINE_S = 5.0
# Ports are chosen free and may be taken before the server has them.
ATTEMPTS = 3
_POLL_S = 0.05


class ServerDied(Exception):
    """The server ended, or did not answer in time; the message holds the end of its log."""


@dataclass(frozen=True, slots=True)
class LiveKit:
    """Where a running server is, and the key pair that it takes."""

    url: str
    key: str
    secret: str

    def token(self, room: str, identity: str, *, agent: bool = False) -> str:
        """A token for one participant of one room; `agent` may set its own attributes."""
        grants = api.VideoGrants(
            room_join=True, room=room, can_update_own_metadata=True, agent=agent
        )
        token = api.AccessToken(self.key, self.secret).with_identity(identity).with_grants(grants)
        if agent:
            token = token.with_kind("agent")
        return token.with_ttl(timedelta(hours=1)).to_jwt()


@contextlib.contextmanager
def running(binary: Path) -> Iterator[LiveKit]:
    """Start the server, wait until it answers, stop it at the end.

    Raises:
        ServerDied: it ended, or did not answer in READY_DEADLINE_S.
    """
    with tempfile.TemporaryFile() as log, contextlib.ExitStack() as open_:
        for left in reversed(range(ATTEMPTS)):
            try:
                port = open_.enter_context(_attempt(binary, log))
                break
            except ServerDied:
                if not left:
                    raise
        else:
            raise AssertionError("there is one attempt at least")
        yield LiveKit(f"ws://127.0.0.1:{port}", KEY, SECRET)


class KillableServer:
    """A server of its own on ports that stay: it can be killed and started again."""

    def __init__(self, binary: Path) -> None:
        self._binary = binary
        self._ports = _free_ports()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        self._server: subprocess.Popen[bytes] | None = None
        self.livekit = LiveKit(f"ws://127.0.0.1:{self._ports[0]}", KEY, SECRET)

    def start(self) -> None:
        """Returns when it answers. Raises: ServerDied."""
        self._server = _started(self._binary, self._log, *self._ports)
        _wait_until_ready(self._server, self._ports[0], self._log)

    def kill(self) -> None:
        """Its rooms are forgotten with it."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()

    def close(self) -> None:
        self.kill()
        self._log.close()


@contextlib.contextmanager
def _attempt(binary: Path, log: IO[bytes]) -> Generator[int]:
    port, tcp, udp = _free_ports()
    server = _started(binary, log, port, tcp, udp)
    try:
        _wait_until_ready(server, port, log)
        yield port
    finally:
        server.terminate()
        try:
            server.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _started(
    binary: Path, log: IO[bytes], port: int, tcp: int, udp: int
) -> subprocess.Popen[bytes]:
    # JSON is YAML too.
    config = json.dumps(
        {
            "port": port,
            "bind_addresses": ["127.0.0.1"],
            "rtc": {
                "tcp_port": tcp,
                "udp_port": udp,
                "use_external_ip": False,
                "node_ip": "127.0.0.1",
                "interfaces": {"includes": ["lo"]},
                "enable_loopback_candidate": True,
            },
            "keys": {KEY: SECRET},
            "logging": {"level": "warn"},
        }
    )
    return subprocess.Popen([binary, "--config-body", config], stdout=log, stderr=subprocess.STDOUT)


def _free_ports() -> tuple[int, int, int]:
    """HTTP, RTC over TCP, RTC over UDP: held together for a moment, so that they differ."""
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        for kind in (socket.SOCK_STREAM, socket.SOCK_STREAM, socket.SOCK_DGRAM):
            sock = held.enter_context(socket.socket(socket.AF_INET, kind))
            sock.bind(("127.0.0.1", 0))
            ports.append(sock.getsockname()[1])
    return ports[0], ports[1], ports[2]


def _wait_until_ready(server: subprocess.Popen[bytes], port: int, log: IO[bytes]) -> None:
    deadline = time.monotonic() + READY_DEADLINE_S
    while server.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        # Another process's progress: there is nothing to wait on but the time.
        time.sleep(_POLL_S)
    log.seek(0)
    tail = log.read()[-2000:].decode(errors="replace")
    raise ServerDied(f"livekit-server did not start (exit code {server.poll()}):\n{tail}")
