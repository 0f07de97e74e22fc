"""What an agent talks to in a soak: each a process of its own that can be ended and begun anew.

`python -m tests.bench.soak_peers model|n8n PORT` serves one until it is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tests.bench.obedient_model import obey
from tests.recorded_n8n import RecordedN8n
from tests.stand_ins.mcp_events import ROOT
from tests.stand_ins.stand_in_model import Asked, Cut, Hang, Refuse, Reply, StandInModel

READY_S: Final = 30.0
"""For a process to import and listen, beside a turn that goes on."""
KEPT_REQUESTS: Final = 8
"""A stand-in notes every request; a day of them would fill the memory that is measured."""
BYTES_A_TOKEN: Final = 4
FAULTS: Final[Mapping[str, Reply]] = {
    "model cut": [Cut()],
    "model hang": [Hang()],
    "model refuse": [Refuse(500, "out of memory")],
}
"""What the person says, and what the model's server does about it."""


class Peer:
    """A process that listens on one port for as long as it is wanted."""

    def __init__(self, *command: str, port: int, environ: Mapping[str, str] | None = None) -> None:
        self.port: Final = port
        self._command: Final = command
        self._environ: Final = {**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})}
        self._process: Process | None = None

    @property
    def is_up(self) -> bool:
        return self._process is not None

    async def start(self) -> None:
        """Return once it listens."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command, env=self._environ, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
        )
        async with asyncio.timeout(READY_S):
            while True:
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                    writer.close()
                    return
                await asyncio.sleep(0.05)

    async def kill(self) -> None:
        """End it as a crash would."""
        if (process := self._process) is not None:
            self._process = None
            process.kill()
            await process.wait()


class Peers:
    """A model's server, an n8n and an MCP server over HTTP, and what starts one over stdio."""

    def __init__(self, events_port: int) -> None:
        telling = {"EVENTS_PORT": str(events_port)}
        self.model: Final = _served("model")
        self.n8n: Final = _served("n8n")
        port = _free_port()
        self.web: Final = Peer(
            *(sys.executable, "-m", "tests.stand_ins.mcp_stand_in", str(port)),
            port=port,
            environ=telling,
        )
        self._stdio: Final[dict[str, Any]] = {
            "command": sys.executable,
            "args": ["-m", "tests.stand_ins.mcp_stand_in"],
            "env": {"PYTHONPATH": str(ROOT), **telling},
            "allow": ["env"],
            "connect_timeout": READY_S,
        }

    @property
    def model_url(self) -> str:
        return f"http://127.0.0.1:{self.model.port}/v1"

    @property
    def all(self) -> Sequence[Peer]:
        return (self.model, self.n8n, self.web)

    def write_servers(self, path: Path) -> None:
        """Write the configuration of both MCP servers."""
        web = {"url": f"http://127.0.0.1:{self.web.port}/mcp", "connect_timeout": READY_S}
        path.write_text(json.dumps({"sdk": self._stdio, "web": web}), encoding="utf-8")


@asynccontextmanager
async def started_peers() -> AsyncGenerator[Peers]:
    """All of them, listening; they are gone afterwards."""

    async def drop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while await reader.read(4096):
                pass
        writer.close()

    async with await asyncio.start_server(drop, "127.0.0.1", 0) as events:
        peers = Peers(events.sockets[0].getsockname()[1])
        try:
            await asyncio.gather(*(peer.start() for peer in peers.all))
            yield peers
        finally:
            await asyncio.gather(*(peer.kill() for peer in peers.all))


def _served(kind: str) -> Peer:
    port = _free_port()
    return Peer(sys.executable, "-m", "tests.bench.soak_peers", kind, str(port), port=port)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


async def _main(kind: str, port: int) -> None:
    if kind == "n8n":
        n8n = RecordedN8n(port, active=["get_weather"])
        async with n8n:
            while True:
                await asyncio.sleep(1)
                del n8n.requests[:-KEPT_REQUESTS]

    def answer(asked: Asked) -> Reply:
        del model.requests[:-KEPT_REQUESTS]
        # A count that stays the same would look like a server that cuts prompts.
        model.prompt_tokens = len(asked.body) // BYTES_A_TOKEN
        last = asked.json["messages"][-1]
        return FAULTS.get(last["content"], None) or obey(asked)

    model = StandInModel(answer=answer, port=port)
    async with model:
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2])))
