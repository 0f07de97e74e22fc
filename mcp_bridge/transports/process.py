"""Runs a server's process under a supervisor of its own; in the end all that it started is gone.

On POSIX the host starts `supervisor.py`, which starts the server and outlives it until nothing is
left. Elsewhere, and in a frozen program, which has no interpreter at hand, the process is started
as it is. What no supervisor has seen end is found by its control group and its mark.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import signal
import sys
import threading
import time
from asyncio.subprocess import PIPE, SubprocessStreamProtocol
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import cache_from_source
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import psutil
from mcp.client.stdio import get_default_environment

from mcp_bridge.core.errors import ServerUnavailable
from mcp_bridge.core.files import expand_home
from mcp_bridge.core.sanitize import one_line, visible_text
from mcp_bridge.core.server_config import ServerConfig
from mcp_bridge.security.policy import objections
from mcp_bridge.security.programs import OFFLINE, located

# Kills what a supervisor cannot: it is stuck, was killed itself, or died together with its host.
#
# Whatever a server starts inherits the server's mark, a variable of its environment that names the
# host. So its processes are known wherever they were handed to, as long as they, or one above them,
# kept that variable. A process is found and killed as the one that it was when it was looked at:
# psutil compares its start time, since the system gives numbers out again.

MARK: Final = "MCP_BRIDGE_SERVER"
"""The variable. Its value is the host's pid namespace, the host's pid and a random number."""
_MAX_ROUNDS: Final = 20
"""A process that is born while the rest is killed is found in the next round; only a server that
does nothing but fork takes more than two."""
_END_S: Final = 2.0
"""The time for the kernel to carry out SIGKILL: the dying need the processor once more."""
_LOOK_S: Final = 0.002
_ENDED: Final = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
_CLOCK_S: Final = 2.0
"""Start times are told by a clock that the kernel rounds to a second, now up and now down."""


def new_mark() -> str:
    """Gives a server that this process starts its mark."""
    return f"{_pid_namespace()}-{os.getpid()}-{secrets.token_hex(8)}"


def kill_marked(mark: str, sparing: int) -> None:
    """Kills what bears `mark` and what descends from it, but not the process `sparing`.

    A supervisor is spared, since what loses it cannot be found by descent any more. This blocks
    until they are dead, for 2 s at most, so call it in a thread.
    """

    def found() -> set[psutil.Process]:
        everything = _Processes()
        return everything.families(
            process for process, its_mark in everything.marks.items() if its_mark == mark
        )

    _kill(lambda: {process for process in found() if process.pid != sparing})


def kill_left_by_dead_hosts() -> None:
    """Kills what servers left whose supervisor was killed together with its host.

    It blocks as `kill_marked` does.
    """

    def found() -> set[psutil.Process]:
        everything = _Processes()
        return everything.families(
            process
            for process, mark in everything.marks.items()
            if host_is_gone(mark, process.create_time())
        )

    _kill(found)


class _Processes:
    """All processes as they are now, as far as this user may look into them."""

    def __init__(self) -> None:
        self.marks: Final[dict[psutil.Process, str]] = {}
        self._children: Final[dict[int, list[psutil.Process]]] = {}
        for pid in psutil.pids():
            with contextlib.suppress(psutil.Error, OSError):
                # A new object each: one that is kept has its start time by the clock of that time.
                process = psutil.Process(pid)
                with process.oneshot():
                    if not _runs(process):
                        continue
                    self._children.setdefault(process.ppid(), []).append(process)
                    if mark := process.environ().get(MARK):
                        self.marks[process] = mark

    def families(self, heads: Iterable[psutil.Process]) -> set[psutil.Process]:
        """Gives `heads` and whatever descends from them."""
        waiting, found = list(heads), set[psutil.Process]()
        while waiting:
            if (process := waiting.pop()) not in found:
                found.add(process)
                waiting.extend(self._children.get(process.pid, ()))
        return found


def host_is_gone(mark: str, since: float) -> bool:
    """Tells whether the host in a mark, which is there `since` then, has ended.

    In doubt it has not. `since` is the wall clock's time in seconds.
    """
    namespace, _, rest = mark.partition("-")
    pid = rest.partition("-")[0]
    if namespace != str(_pid_namespace()) or not (pid.isascii() and pid.isdigit()):
        return False
    try:
        if not psutil.pid_exists(int(pid)):
            return True
        host = psutil.Process(int(pid))
        # A host is older than its servers, so a younger one only has its number.
        reused = host.create_time() > since + _CLOCK_S
        return reused or host.status() in _ENDED
    except (psutil.Error, ValueError, OverflowError):
        return False  # another user's may be hidden


def _kill(find: Callable[[], set[psutil.Process]]) -> None:
    killed: set[psutil.Process] = set()
    for _ in range(_MAX_ROUNDS):
        if not (born := find() - killed):
            break
        for process in born:
            with contextlib.suppress(psutil.Error):
                process.kill()
        killed |= born
    until = time.monotonic() + _END_S
    while any(map(_runs, killed)) and time.monotonic() < until:
        time.sleep(_LOOK_S)


def _runs(process: psutil.Process) -> bool:
    """Tells whether a process runs; one that only waits to be reaped does not."""
    try:
        return process.status() not in _ENDED
    except psutil.Error:
        return False


def _pid_namespace() -> int:
    """Gives the number space of this process's pids: a container has its own."""
    return Path("/proc/self/ns/pid").stat().st_ino if sys.platform == "linux" else 0


# A server's control group, where the system lends one: one write ends whatever is in it.
#
# The host makes a group below its own, and what becomes the server enters it first. No process
# leaves it by clearing its environment or by losing its parents, as it may leave the mark and the
# tree of processes. Groups are to be had on Linux with cgroups v2, for root and
# in what systemd delegates, and not in most containers and desktop sessions; there the mark is all.
#
# Files: https://docs.kernel.org/admin-guide/cgroup-v2.html (`cgroup.kill` is of Linux 5.14)

_PREFIX: Final = "mcp-bridge-"
_REMOVE_S: Final = 0.5
"""The time for the kernel to end what was killed: a group that holds anything stays."""
_POLL_S: Final = 0.005


def make_group(mark: str) -> str:
    """Gives the path of a new group for the server with this mark, or "" where there is none."""
    with contextlib.suppress(OSError):
        if (own := _own_group()) is not None:
            group = own / f"{_PREFIX}{mark}"
            group.mkdir()
            if (group / "cgroup.kill").exists():
                return str(group)
            group.rmdir()
    return ""


def end_group(group: str) -> None:
    """Kills what is in a group and removes it. It blocks, for half a second at most."""
    if not group:
        return
    until = time.monotonic() + _REMOVE_S
    while time.monotonic() < until:
        try:
            (Path(group) / "cgroup.kill").write_text("1", encoding="ascii")
            # A server may itself be a host; its groups lie in its own, and ended with it.
            for inner in sorted(Path(group).rglob(f"{_PREFIX}*"), reverse=True):
                inner.rmdir()
            Path(group).rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(_POLL_S)
        else:
            return


def end_groups_of_dead_hosts() -> None:
    """Ends the groups beside ours whose host was killed before it could. It blocks likewise."""
    with contextlib.suppress(OSError):
        for group in own.glob(f"{_PREFIX}*") if (own := _own_group()) else ():
            mark = group.name.removeprefix(_PREFIX)
            if host_is_gone(mark, group.stat().st_ctime):
                end_group(str(group))


def _own_group() -> Path | None:
    """Gives the folder of the group that this process is in. Raises: OSError."""
    if sys.platform != "linux":
        return None
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    root = next((fields[1] for fields in mounts if fields[2] == "cgroup2"), None)
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    return None if root is None or own is None else Path(root) / own


EXIT_GRACE_S: Final = 1.0
"""The time after stdin closes: a healthy server needs some 50 ms."""
_TERMINATE_S: Final = 1.5
"""The time from SIGTERM on; the supervisor kills after 1 s and needs a moment to see the end."""
_SUPERVISOR: Final = str(Path(__file__).with_name("supervisor.py"))
"""This is run, not imported: it knows signals that Windows has not."""
_KILL_S: Final = 5.0
"""The time for the supervisor to kill everything and see it end: it gives up after 2 s, and a
machine may hold it up for some more. Normally it takes some milliseconds."""
_KERNEL_S: Final = 0.5
"""The time for the kernel to carry out SIGKILL."""
_FLUSH_S: Final = 0.5
"""The time after the process died for reading what it had already written."""
_STDERR_LINES: Final = 20
_STDERR_LINE_CHARS: Final = 300
_NAMES_ERROR: Final = re.compile(
    r"(?:^|[\s:(\[])[\w.]*(?:error|exception|fatal|panic)(?=[\s:\])]|$)", re.IGNORECASE
)
_CODE: Final = re.compile(r"File \"|at |raise |except |\^|~")
"""The lines of a traceback that are places and code."""
_STDERR_PENDING_CHARS: Final = 16 * 1024
"""So much is kept of a line that does not end: secrets are looked for before it is cut."""


_first_start: Final = threading.Lock()
"""It is taken for good by the host's first start, which looks for what killed hosts have left."""


class _Protocol(SubprocessStreamProtocol):
    """Tells when the process itself ended, though a grandchild may hold its pipes open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=64 * 1024, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class ServerProcess:
    """A running server, made by `spawn`. Its owner must call `stop`, whatever happens."""

    def __init__(
        self,
        config: ServerConfig,
        transport: asyncio.SubprocessTransport,
        protocol: _Protocol,
        lifeline: int | None,
        start: _ProgramStart,
    ) -> None:
        loop = asyncio.get_running_loop()
        process = asyncio.subprocess.Process(transport, protocol, loop)
        # They were asked for.
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ServerUnavailable(config.name, "its process has no pipes")
        self.stdin: Final = process.stdin
        self.stdout: Final = process.stdout
        self.pid: Final = process.pid
        """The supervisor's process id, where there is one."""
        self.exited: Final = protocol.exited
        self._stderr_ended: Final = asyncio.Event()
        self._config: Final = config
        self._stderr: Final = process.stderr
        self._transport: Final = transport
        self._lifeline = lifeline
        self._supervised: Final = lifeline is not None
        self._mark: Final = start.mark
        self._group: Final = start.group
        self._last_words: Final[deque[str]] = deque(maxlen=_STDERR_LINES)

    @property
    def returncode(self) -> int | None:
        return self._transport.get_returncode()

    def last_words(self) -> str:
        """Gives the line of stderr that says why: the first of the last ones that names an error,
        else the last that says something. An empty text for none."""
        lines = [line for line in self._last_words if line]
        named = (line for line in lines if _NAMES_ERROR.search(line) and not _CODE.match(line))
        return next(named, lines[-1] if lines else "")

    async def watch(self) -> None:
        """Reads stderr, so that the process never blocks on it; ends `stdout` after the process."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read_stderr)
            await self.exited.wait()
            self.kill()  # where no supervisor has: grandchildren may hold stdout open
            await self._kill_leftovers()
            await anyio.sleep(_FLUSH_S)
            self.close_output()

    def close_output(self) -> None:
        """Ends what `stdout` gives, though a grandchild may hold it open."""
        if (pipe := self._transport.get_pipe_transport(1)) is not None:
            pipe.close()

    async def wait_for_end(self) -> str:
        """Ends a process whose output has ended, and says as half a sentence how it ended.

        It waits, but not for ever, until exit code and last words are known.
        """
        with anyio.move_on_after(_FLUSH_S):  # mostly its output ended because it did
            await self.exited.wait()
        self.kill()  # nobody can talk to it any more
        if await self._exits(_KILL_S):
            with anyio.move_on_after(_KERNEL_S):  # a grandchild may hold it open
                await self._stderr_ended.wait()
        match self.returncode:
            case None:
                reason = "closed its output"
            case code if code < 0:
                reason = f"was ended by signal {-code}"
            case code:
                reason = f"exited with code {code}"
        words = self.last_words()
        return f"{reason}: {words}" if words else f"{reason} without a word on stderr"

    async def _read_stderr(self) -> None:
        rest = ""
        while chunk := await self._stderr.read(8192):
            *lines, rest = (rest + chunk.decode(errors="replace")).split("\n")
            self._last_words.extend(map(self._line, lines[-_STDERR_LINES:]))
            rest = rest[-_STDERR_PENDING_CHARS:]
        self._last_words.append(self._line(rest))
        self._stderr_ended.set()

    def _line(self, text: str) -> str:
        # Cut afterwards: a cut secret would not be known for one.
        return one_line(self._config.redact(visible_text(text)), _STDERR_LINE_CHARS)

    async def stop(self) -> None:
        """Ends what is left: stdin closes, then SIGTERM is sent, then SIGKILL.

        The order is after https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle
        """
        with contextlib.suppress(OSError, RuntimeError):
            self.stdin.close()
        try:
            if not await self._exits(EXIT_GRACE_S):
                self._signal(signal.SIGTERM)
                if not await self._exits(_TERMINATE_S):
                    self.kill()
                    await self._exits(_KILL_S)
            await self._kill_leftovers()
            if not self._supervised or not self.exited.is_set():
                self._signal_group(_SIGKILL)  # the supervisor itself, should it be stuck
                await self._exits(_KERNEL_S)
        finally:
            self._close_lifeline()
            with contextlib.suppress(PermissionError):
                self._transport.close()

    async def _kill_leftovers(self) -> None:
        """Kills what the server started, unless its supervisor has seen it end.

        A supervisor that was killed looks like one whose server was, so then it is looked again.
        """
        ended = self.returncode is not None and self.returncode >= 0
        if not (self._supervised and ended and sys.platform == "linux"):
            await anyio.to_thread.run_sync(kill_marked, self._mark, self.pid)
        await anyio.to_thread.run_sync(end_group, self._group)

    def kill(self) -> None:
        """Kills the server and all that it started, without asking first."""
        if self._supervised:
            self._signal(signal.SIGUSR2)
        else:
            self._signal_group(_SIGKILL)

    def _signal(self, number: int) -> None:
        if self._supervised and not self.exited.is_set():
            # Not by the transport: it looks first whether the process ended, and so takes the exit
            # code away from whoever waits for it.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
        elif not self._supervised:
            self._signal_group(number)

    def _signal_group(self, number: int) -> None:
        # The pid is the group's id, since the process began a session. It stays so while any
        # member lives, after the leader too.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._transport.kill()
            else:
                os.killpg(self.pid, number)

    def _close_lifeline(self) -> None:
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    async def _exits(self, within_s: float) -> bool:
        with anyio.move_on_after(within_s):
            await self.exited.wait()
        return self.exited.is_set()


_SIGKILL: Final = signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM


@dataclass(frozen=True, slots=True)
class _ProgramStart:
    """The program to start, ready for the system."""

    program: str
    cwd: str | None
    environ: Mapping[str, str]
    supervisor: str
    mark: str
    group: str
    """The control group that it enters, or "" where there is none to be had."""


def _find_program(config: ServerConfig) -> _ProgramStart:
    """Looks for the program. Reads the disk.

    Raises: ServerUnavailable, which says what is missing.
    """
    for finding in objections(config):  # again: a link may lead elsewhere than when it was read
        raise ServerUnavailable(config.name, f"{finding.key}: {finding}")
    environ = get_default_environment()
    if config.offline:
        environ |= OFFLINE
    environ |= config.env
    cwd = Path(expand_home(config.cwd)) if config.cwd else None
    if cwd is not None and not cwd.is_dir():
        raise ServerUnavailable(
            config.name, f"its cwd {str(cwd)!r} is not a folder; make it or fix it"
        )
    command = config.command
    program = located(command, cwd, environ.get("PATH"))
    if program is None:
        fix = "put its arguments into args" if " " in command else "install it, or fix its path"
        raise ServerUnavailable(config.name, f"the command {command!r} was not found; {fix}")
    folder, supervisor = str(cwd) if cwd else None, _compiled(_SUPERVISOR)
    mark = new_mark()
    group = make_group(mark) if _has_supervisors() else ""
    return _ProgramStart(program, folder, environ | {MARK: mark}, supervisor, mark, group)


@cache
def _compiled(source: str) -> str:
    """Gives the path of the byte code, if it can be kept: compiling takes 5 ms of each start."""
    try:
        SourceFileLoader("supervisor", source).get_code("supervisor")  # writes it, if need be
        kept = cache_from_source(source)
    except (OSError, ImportError, NotImplementedError):
        return source
    return kept if Path(kept).exists() else source


async def spawn(config: ServerConfig) -> ServerProcess:
    """Starts a server.

    Raises: ServerUnavailable, which says what is missing.
    """
    start = await anyio.to_thread.run_sync(_find_program, config)
    if _first_start.acquire(blocking=False):
        await anyio.to_thread.run_sync(end_groups_of_dead_hosts)
        await anyio.to_thread.run_sync(kill_left_by_dead_hosts)
    loop = asyncio.get_running_loop()
    before, watched, lifeline = _supervised(start)
    try:
        transport, protocol = await loop.subprocess_exec(
            lambda: _Protocol(loop),
            *before,
            start.program,
            *config.args,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=start.environ,
            cwd=start.cwd,
            start_new_session=True,
            pass_fds=() if watched is None else (watched,),
        )
    except BaseException as error:
        if lifeline is not None:
            os.close(lifeline)
        end_group(start.group)  # nothing is in it, so it goes at once
        if not isinstance(error, OSError | ValueError):
            raise
        reason = error.strerror if isinstance(error, OSError) else "a value holds a NUL"
        raise ServerUnavailable(config.name, f"could not be started ({reason}); fix it") from None
    finally:
        if watched is not None:
            os.close(watched)
    return ServerProcess(config, transport, protocol, lifeline, start)


def _supervised(start: _ProgramStart) -> tuple[list[str], int | None, int | None]:
    """Gives the words before the command, the lifeline's end to pass on, and the one to keep."""
    if not _has_supervisors():
        return [], None, None
    watched, lifeline = os.pipe()
    keep_locale = "1" if "LC_CTYPE" in start.environ else "0"
    program = [sys.executable, "-I", "-S", start.supervisor]
    return [*program, str(os.getpid()), str(watched), keep_locale, start.group], watched, lifeline


def _has_supervisors() -> bool:
    return sys.platform != "win32" and not getattr(sys, "frozen", False) and bool(sys.executable)
