"""`mcp-bridge serve` for tests: in this process or in one of its own, and clients to try it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from tests.stand_ins.mcp_events import PATIENCE_S, RAW, ROOT, Events

TOKEN = "a-token-" + "0123456789abcdef"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def raw_command(*flags: str) -> tuple[str, ...]:
    """The server in nothing but the standard library: it starts in some 20 ms."""
    return (sys.executable, "-S", "-E", str(RAW), *flags)


def light_command() -> tuple[str, ...]:
    """Answers each request with its own params: for hundreds of processes."""
    return (sys.executable, "-S", "-E", str(ROOT / "tests/stand_ins/bridge_echo_server.py"))


def client(
    url: str,
    headers: dict[str, str] | None = None,
    *,
    origin: str | None = None,
    **options: Any,
) -> connect:
    return connect(
        url,
        additional_headers=headers,
        origin=Origin(origin) if origin else None,
        compression=None,
        proxy=None,
        open_timeout=PATIENCE_S,
        **{"subprotocols": [Subprotocol("mcp")], **options},
    )


async def ask(socket: ClientConnection, method: str, call: int = 1, **params: Any) -> Any:
    """The answer to a request; what comes before it is passed over."""
    await tell(socket, method, call, **params)
    async with asyncio.timeout(PATIENCE_S):
        while (answer := json.loads(await socket.recv())).get("id") != call:
            pass
    return answer


async def tell(socket: ClientConnection, method: str, call: int | None, **params: Any) -> None:
    known = {} if call is None else {"id": call}
    request = {"jsonrpc": "2.0", **known, "method": method, "params": params}
    await socket.send(json.dumps(request))


async def echo(socket: ClientConnection, said: str) -> str:
    answer = await ask(socket, "tools/call", name="echo", arguments={"said": said})
    return json.loads(answer["result"]["content"][0]["text"])["said"]


class BridgeProcess:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._listening = asyncio.create_task(self._listen())
        self.url = ""
        self.log: list[str] = []

    @property
    def pid(self) -> int:
        return self._process.pid

    async def _listen(self) -> None:
        assert self._process.stderr
        while line := await self._process.stderr.readline():
            self._lines.put_nowait(line.decode().strip())
        self._lines.put_nowait("(the end)")

    async def said(self, words: str) -> str:
        """The next line on stderr that holds these words."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                self.log.append(await self._lines.get())
                if words in self.log[-1]:
                    return self.log[-1]
                assert self.log[-1] != "(the end)", self.log

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    async def ended(self) -> int:
        async with asyncio.timeout(PATIENCE_S):
            code = await self._process.wait()
            await self._listening
        while not self._lines.empty():
            self.log.append(self._lines.get_nowait())
        return code

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def children(self) -> list[int]:
        """Everything that it started and that still runs, at any depth."""
        return list(descendants(self.pid))


def descendants(root: int) -> Iterator[int]:
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(folder.name))
    found = list(parents.get(root, ()))
    for pid in found:
        yield pid
        found.extend(parents.get(pid, ()))


@asynccontextmanager
async def bridge_process(
    *options: str,
    command: tuple[str, ...] = (),
    seen: Events | None = None,
    environ: dict[str, str] | None = None,
) -> AsyncGenerator[BridgeProcess]:
    """`mcp-bridge serve` on a port of its own, killed in the end."""
    told = ("--env", f"EVENTS_PORT={seen.port}") if seen else ()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "mcp_bridge.serve", "serve", "--port", "0", *told, *options),
        *("--", *(command or raw_command())),
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})},
    )
    bridge = BridgeProcess(process)
    try:
        async with asyncio.timeout(60):  # the SDK takes a second to import, or many when it is busy
            line = await bridge.said("listening at ")
        bridge.url = line.rpartition(" ")[2]
        yield bridge
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await bridge.ended()
