"""Runs a real livekit-server on loopback: one that is installed, else one that is built with Go."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Self

import httpx2
from rich.console import Console

from caal_node.core.errors import ConfigError
from caal_node.http_client import open_client
from caal_node.models import child_process
from caal_node.weights import cache

# The newest whose go.mod has no replace directive; `go install` refuses later ones.
VERSION = "1.13.5"
# 75 s with an empty cache on two cores; a slow line gets four times that.
BUILD_DEADLINE_S = 300.0

_SUFFIX = ".exe" if sys.platform == "win32" else ""


# It is ready in one to two seconds.
READY_DEADLINE_S = 20.0
POLL_S = 0.05
# Ports are chosen free and may be taken before the server has them.
ATTEMPTS = 3
PARENT_WATCHDOG = Path(__file__).with_name("parent_watchdog.py")


def find_server() -> Path | None:
    """Return `livekit-server` on PATH, else the one built earlier, else None."""
    if found := shutil.which("livekit-server"):
        return Path(found)
    return _built() if _built().is_file() else None


def obtain_server(console: Console | None = None) -> Path | None:
    """Return what `find_server` finds, else build one; None without Go or where the build fails.

    It blocks, for about a minute where it builds. A build that fails is reported in one line.

    Raises:
        ConfigError: the cache cannot be written.
    """
    if found := find_server():
        return found
    go = shutil.which("go")
    if go is None:
        return None
    console = console or Console(stderr=True)
    with cache.locked("livekit-server", cache.binaries()):
        if _built().is_file():
            return _built()
        notice = f"Building livekit-server {VERSION} with Go, about a minute the first time"
        console.print(notice, highlight=False)
        with console.status("go install"):
            failure = _build(go)
    if failure:
        console.print(f"livekit-server cannot be built ({failure})", highlight=False, markup=False)
        return None
    return _built()


def _built() -> Path:
    return cache.binaries() / f"livekit-server-{VERSION}{_SUFFIX}"


def _build(go: str) -> str | None:
    """Build into a folder of its own and move the result; return why it failed, if it did."""
    with tempfile.TemporaryDirectory(prefix="build-", dir=cache.binaries()) as folder:
        package = f"github.com/livekit/livekit-server/cmd/server@v{VERSION}"
        try:
            done = subprocess.run(
                [go, "install", package],
                env={**os.environ, "GOBIN": folder},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=BUILD_DEADLINE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"not ready after {BUILD_DEADLINE_S:.0f} s"
        except OSError as error:
            return str(error)
        program = Path(folder) / f"server{_SUFFIX}"
        if done.returncode != 0 or not program.is_file():
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            return (lines or ["no reason given"])[-1][:200]
        program.replace(_built())
    return None


class LiveKitServer:
    """`async with LiveKitServer(program) as server:` then `url`, `api_key`, `api_secret`.

    It has free ports and a random key of its own, so it never meets another server. It ends with
    the block, and with this process however that ends.
    """

    def __init__(
        self,
        program: Path,
        *,
        media_on_lan: bool = False,
        ready_deadline_s: float = READY_DEADLINE_S,
    ) -> None:
        """`media_on_lan` lets other devices send and get sound; signalling stays on loopback."""
        self.api_key = f"API{secrets.token_hex(6)}"
        self.api_secret = secrets.token_urlsafe(32)
        self._program = program
        self._media_on_lan = media_on_lan
        self._ready_deadline_s = ready_deadline_s
        self._port: int | None = None
        self._process: Process | None = None
        self.log: Path | None = None
        """The file that the server logs to; a clean end removes it."""

    @property
    def url(self) -> str:
        """The address for LIVEKIT_URL: `ws://127.0.0.1:PORT`."""
        if self._port is None:
            raise RuntimeError("the server is not open")
        return f"ws://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        handle, name = tempfile.mkstemp(prefix="caal-livekit-", suffix=".log")
        os.close(handle)
        self.log = Path(name)
        for _ in range(ATTEMPTS):
            try:
                if await self._start():
                    return self
            except BaseException:
                await self._stop()
                raise
            await self._stop()
        raise ConfigError(
            f"{self._program}: did not start ({_last_line(self.log)}); see {self.log}, "
            "or take it off PATH to have one built"
        )

    async def __aexit__(self, *_: object) -> None:
        await self._stop()
        if self.log is not None:
            self.log.unlink(missing_ok=True)

    async def _start(self) -> bool:
        """Return whether it came up. It does not where another program took its port first."""
        assert self.log is not None
        http, tcp, udp = _free_ports()
        config = {
            "port": http,
            "bind_addresses": ["127.0.0.1"],
            "keys": {self.api_key: self.api_secret},
            "rtc": {
                "tcp_port": tcp,
                "udp_port": udp,
                # Without it, the addresses of all of the machine's networks are offered.
                **({} if self._media_on_lan else {"node_ip": "127.0.0.1"}),
                "enable_loopback_candidate": True,
                "use_external_ip": False,
            },
            "logging": {"level": "warn"},
        }
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", str(PARENT_WATCHDOG), str(self._program)),
                stdin=PIPE,
                stdout=log,
                stderr=log,
                # By the environment: a command line is open to everybody on the machine. JSON is
                # YAML.
                env={**os.environ, "LIVEKIT_CONFIG": json.dumps(config)},
                start_new_session=True,
            )
        if not await self._ready(http):
            return False
        self._port = http
        return True

    async def _ready(self, port: int) -> bool:
        assert self._process is not None
        ended = asyncio.create_task(self._process.wait())
        try:
            async with (
                asyncio.timeout(self._ready_deadline_s),
                open_client(trust_env=False) as client,
            ):
                while not ended.done():
                    try:
                        reply = await client.get(f"http://127.0.0.1:{port}/")
                    except httpx2.TransportError:
                        await asyncio.wait({ended}, timeout=POLL_S)
                    else:
                        return reply.status_code == 200
        except TimeoutError:
            return False
        finally:
            ended.cancel()
            await asyncio.wait({ended})
        return False

    async def _stop(self) -> None:
        process, self._process, self._port = self._process, None, None
        if process is not None:
            await child_process.end(process)


def _free_ports() -> tuple[int, int, int]:
    """Return ports for signalling (TCP), media over TCP and media over UDP, all different."""
    with (
        socket.socket() as http,
        socket.socket() as tcp,
        socket.socket(type=socket.SOCK_DGRAM) as udp,
    ):
        for each in (http, tcp, udp):
            each.bind(("127.0.0.1", 0))
        a, b, c = (each.getsockname()[1] for each in (http, tcp, udp))
    return (a, b, c) if len({a, b, c}) == 3 else _free_ports()


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return (lines or ["without a word"])[-1][:200]
