"""Kills what a supervisor that is stuck has under it, in its place.

A supervisor that was stopped, or that the machine gives no time, cannot end its server's children.
Were it killed alone, they would be handed to init, and nobody would know them any more.
"""

from __future__ import annotations

import contextlib
import time
from typing import Final

import psutil

_MAX_ROUNDS: Final = 20
"""A process that is born while the rest is killed is found in the next round; only a server that
does nothing but fork takes more than two."""
_KILL_S: Final = 2.0
"""The time for the kernel to carry out SIGKILL: the dying need the processor once more."""
_POLL_S: Final = 0.002


def kill_all_below(pid: int) -> None:
    """Kills every process that descends from `pid`, which must live and adopt orphans. On Linux.

    It blocks until they are dead, for 2 s at most, so call it in a thread.
    """
    killed: set[psutil.Process] = set()
    with contextlib.suppress(psutil.Error):
        for _ in range(_MAX_ROUNDS):
            # The dead stay in the list, as `pid` reaps none of them.
            born = set(psutil.Process(pid).children(recursive=True)) - killed
            if not born:
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
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.Error:
        return False
