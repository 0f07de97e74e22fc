"""Kills what a supervisor cannot: it is stuck, was killed itself, or died together with its host.

Whatever a server starts inherits the server's mark, a variable of its environment that names the
host. So its processes are known wherever they were handed to, as long as they, or one above them,
kept that variable. A process is found and killed as the one that it was when it was looked at:
psutil compares its start time, since the system gives numbers out again.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import psutil

MARK: Final = "MCP_BRIDGE_SERVER"
"""The variable. Its value is the host's pid namespace, the host's pid and a random number."""
_MAX_ROUNDS: Final = 20
"""A process that is born while the rest is killed is found in the next round; only a server that
does nothing but fork takes more than two."""
_KILL_S: Final = 2.0
"""The time for the kernel to carry out SIGKILL: the dying need the processor once more."""
_POLL_S: Final = 0.002
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
    until = time.monotonic() + _KILL_S
    while any(map(_runs, killed)) and time.monotonic() < until:
        time.sleep(_POLL_S)


def _runs(process: psutil.Process) -> bool:
    """Tells whether a process runs; one that only waits to be reaped does not."""
    try:
        return process.status() not in _ENDED
    except psutil.Error:
        return False


def _pid_namespace() -> int:
    """Gives the number space of this process's pids: a container has its own."""
    return Path("/proc/self/ns/pid").stat().st_ino if sys.platform == "linux" else 0
