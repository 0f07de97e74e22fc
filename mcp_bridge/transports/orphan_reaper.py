"""Kills what a supervisor that is stuck has under it, in its place.

A supervisor that was stopped, or that the machine gives no time, cannot end its server's children.
Were it killed alone, they would be handed to init, and nobody would know them any more.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

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
    from mcp_bridge.transports.supervisor import descendants  # knows signals that Windows has not

    killed: set[int] = set()
    for _ in range(_MAX_ROUNDS):
        # The dead stay in the list, as `pid` reaps none of them.
        born = set(descendants(pid)) - killed
        if not born:
            break
        for one in born:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        killed |= born
    _wait_until_dead(killed)


def _wait_until_dead(pids: Collection[int]) -> None:
    until = time.monotonic() + _KILL_S
    while any(map(_runs, pids)) and time.monotonic() < until:
        time.sleep(_POLL_S)


def _runs(pid: int) -> bool:
    """Tells whether it runs; one that only waits to be reaped does not (proc_pid_stat(5), field 3).
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[:1] not in ([b"Z"], [b"X"])
