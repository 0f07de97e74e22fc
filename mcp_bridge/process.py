"""A server's process: started in a group of its own, and gone with its whole group at the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, SubprocessStreamProtocol
from collections import deque
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
from mcp.client.stdio import get_default_environment

from mcp_bridge.errors import ServerUnavailable
from mcp_bridge.servers import ServerConfig

EXIT_GRACE_S: Final = 1.0
"""After stdin closes, and again after SIGTERM: a healthy server needs some 50 ms."""
_KILL_S: Final = 0.3
"""For the kernel to carry out SIGKILL. A member that nobody reaps counts to the end of it."""
_GROUP_POLL_S: Final = 0.01
_STDERR_LINES: Final = 20
_STDERR_LINE_CHARS: Final = 300


class _Protocol(SubprocessStreamProtocol):
    """Knows when the process itself ended, though a grandchild may hold its pipes open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=64 * 1024, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class ServerProcess:
    """Made by `spawn`. Its owner must call `stop`, whatever happens."""

    def __init__(
        self, server: str, transport: asyncio.SubprocessTransport, protocol: _Protocol
    ) -> None:
        loop = asyncio.get_running_loop()
        process = asyncio.subprocess.Process(transport, protocol, loop)
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ServerUnavailable(server, "its process has no pipes")  # it was asked for them
        self.stdin: Final = process.stdin
        self.stdout: Final = process.stdout
        self.pid: Final = process.pid
        self.exited: Final = protocol.exited
        self.heard: Final = asyncio.Event()
        """Set when stderr is read to its end."""
        self._stderr: Final = process.stderr
        self._transport: Final = transport
        self._last_words: Final[deque[str]] = deque(maxlen=_STDERR_LINES)

    @property
    def returncode(self) -> int | None:
        return self._transport.get_returncode()

    def last_words(self) -> str:
        """The last line of stderr that says something, or an empty text."""
        return next((line for line in reversed(self._last_words) if line), "")

    async def listen(self) -> None:
        """Reads stderr to its end, so that the process never blocks on it; keeps the last lines."""
        rest = ""
        while chunk := await self._stderr.read(8192):
            *lines, rest = (rest + chunk.decode(errors="replace")).split("\n")
            self._last_words.extend(line.strip()[:_STDERR_LINE_CHARS] for line in lines)
            rest = rest[-_STDERR_LINE_CHARS:]
        self._last_words.append(rest.strip())
        self.heard.set()

    async def stop(self) -> None:
        """Asks, insists, kills: stdin closes, SIGTERM, SIGKILL; then the rest of the group.

        Order after https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle
        """
        with contextlib.suppress(OSError, RuntimeError):
            self.stdin.close()
        asked = await self._exits()
        if self._group_lives():
            self.signal_group(signal.SIGTERM)
            await (self._group_ends(EXIT_GRACE_S) if asked else self._exits())
        self.kill_group()
        await self._exits()
        await self._group_ends(_KILL_S)
        with contextlib.suppress(PermissionError):
            self._transport.close()

    def kill_group(self) -> None:
        self.signal_group(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)

    def signal_group(self, number: int) -> None:
        # The pid is the group's id, since the process began a session. It stays so while any
        # member lives, after the leader too.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._transport.kill()
            else:
                os.killpg(self.pid, number)

    async def _exits(self) -> bool:
        with anyio.move_on_after(EXIT_GRACE_S):
            await self.exited.wait()
        return self.exited.is_set()

    async def _group_ends(self, within_s: float) -> None:
        with anyio.move_on_after(within_s):
            while self._group_lives():  # noqa: ASYNC110 - the kernel announces no group's end
                await anyio.sleep(_GROUP_POLL_S)

    def _group_lives(self) -> bool:
        if sys.platform == "win32":
            return not self.exited.is_set()
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass  # it lives, and is not ours to signal
        return True


def _located(config: ServerConfig, search_path: str | None) -> tuple[str, str | None]:
    """The program's path and the folder to start it in. Reads the disk."""
    command = str(Path(config.command).expanduser()) if "~" in config.command else config.command
    program = shutil.which(command, path=search_path)
    if program is None:
        mend = "put its arguments into args" if " " in command else "install it, or mend its path"
        raise ServerUnavailable(config.name, f"the command {command!r} was not found; {mend}")
    cwd = Path(config.cwd).expanduser() if config.cwd else None
    if cwd is not None and not cwd.is_dir():
        raise ServerUnavailable(
            config.name, f"its cwd {str(cwd)!r} is no folder; make it or mend it"
        )
    return program, str(cwd) if cwd else None


async def spawn(config: ServerConfig) -> ServerProcess:
    """Raises: ServerUnavailable, which says what is missing."""
    environ = get_default_environment() | dict(config.env)
    program, cwd = await anyio.to_thread.run_sync(_located, config, environ.get("PATH"))
    loop = asyncio.get_running_loop()
    try:
        transport, protocol = await loop.subprocess_exec(
            lambda: _Protocol(loop),
            program,
            *config.args,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=environ,
            cwd=cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "a value holds a NUL"
        raise ServerUnavailable(config.name, f"could not be started ({reason}); mend it") from None
    return ServerProcess(config.name, transport, protocol)
