"""What a supervisor that is stuck has under it, killed by the host in its place.

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

_ROUNDS: Final = 20
"""What is born while the rest is killed is found in the next; only a server that does nothing but
fork takes more than two."""
_DEAD_S: Final = 2.0
"""For the kernel to carry out SIGKILL: the dying need the processor once more; it may be busy."""
_LOOK_S: Final = 0.002


def kill_all_below(pid: int) -> None:
    """Kills every process that descends from `pid`, which must live and adopt orphans. On Linux.

    Blocks until they are dead, for 2 s at most; for a thread.
    """
    from mcp_bridge.transports.supervisor import descendants  # knows signals that Windows has not

    killed: set[int] = set()
    for _ in range(_ROUNDS):
        # The dead stay in the list, as `pid` reaps none of them.
        born = set(descendants(pid)) - killed
        if not born:
            break
        for one in born:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        killed |= born
    _wait_for_the_end(killed)


def _wait_for_the_end(pids: Collection[int]) -> None:
    until = time.monotonic() + _DEAD_S
    while any(map(_lives, pids)) and time.monotonic() < until:
        time.sleep(_LOOK_S)


def _lives(pid: int) -> bool:
    """Whether it runs; one that only waits to be reaped does not (proc_pid_stat(5), field 3)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[:1] not in ([b"Z"], [b"X"])
