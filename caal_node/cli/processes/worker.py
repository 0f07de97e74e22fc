"""Runs `caal-node dev`, or another worker program, as a child process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from livekit.agents.utils import aio

from caal_node.cli.processes.livekit_server import PARENT_WATCHDOG
from caal_node.core.errors import CaalError

OUR_WORKER: Final = ("-m", "caal_node.cli", "dev", "--no-reload", "--log-level", "info")
REGISTERED: Final = b"registered worker"
"""LiveKit's own log line, once the server knows the worker."""
REGISTER_S: Final = 60.0
"""Seconds; importing takes 5 of them on two cores."""
STOP_S: Final = 15.0
TAIL_LINES: Final = 12
"""An error quotes this many of the log's last lines."""


class WorkerProcess:
    """The worker; `folder` is its working directory, with its settings and servers.

    `program` is what Python runs there. Its output goes to `log`, by default `worker.log` there.
    """

    def __init__(
        self,
        folder: Path,
        env: Mapping[str, str],
        program: Sequence[str] = OUR_WORKER,
        *,
        log: Path | None = None,
    ) -> None:
        self.log: Final = log or folder / "worker.log"
        self._program = program
        self._folder = folder
        self._env = {**os.environ, **env, "PYTHONUNBUFFERED": "1"}
        self._process: Process | None = None
        self._tail: list[bytes] = []
        self._registered = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", str(PARENT_WATCHDOG)),
            *(sys.executable, *self._program),
            cwd=self._folder,
            env=self._env,
            stdin=PIPE,
            stdout=PIPE,
            stderr=STDOUT,
            start_new_session=True,
        )
        self._reader = asyncio.create_task(self._read_log(), name="caal-worker-log")
        try:
            async with asyncio.timeout(REGISTER_S):
                await self.wait_while_alive(self._registered.wait())
        except TimeoutError:
            await self.aclose()
            raise CaalError(
                f"the worker did not register in {REGISTER_S:g} s; see {self.log}"
            ) from None
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def wait_while_alive(self, awaited: Awaitable[object]) -> None:
        """Wait for `awaited`, unless the worker ends first.

        Raises:
            CaalError: it ended; the message holds its last lines.
        """
        assert self._process is not None
        waiting = asyncio.ensure_future(awaited)
        ended = asyncio.ensure_future(self._process.wait())
        try:
            await asyncio.wait({waiting, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                last = b"".join(self._tail).decode(errors="replace").strip()
                raise CaalError(f"the worker ended with code {ended.result()}:\n{last}")
        finally:
            await aio.cancel_and_wait(waiting, ended)

    async def aclose(self) -> None:
        """Ask it to end, with its rooms; kill it and its children after STOP_S."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGINT)
            try:
                await asyncio.wait_for(process.wait(), STOP_S)
            except TimeoutError:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if self._reader is not None and process is not None:
            try:
                await asyncio.wait_for(self._reader, STOP_S)
            except TimeoutError:  # a child of the worker outlived it and holds the pipe
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    async def _read_log(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with self.log.open("wb") as log:
            async for line in self._process.stdout:
                log.write(line)
                log.flush()
                self._tail = [*self._tail[1 - TAIL_LINES :], line]
                if REGISTERED in line:
                    self._registered.set()
