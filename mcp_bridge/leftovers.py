"""What a supervisor that is stuck has under it, killed by the host in its place.

A supervisor that was stopped, or that the machine gives no time, cannot end its server's children.
Were it killed alone, they would be handed to init, and nobody would know them any more.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Final

_ROUNDS: Final = 20
"""What is born while the rest is killed is found in the next; only a server that does nothing but
fork takes more than two."""


def kill_all_below(pid: int) -> None:
    """Kills every process that descends from `pid`, which must live and adopt orphans. On Linux."""
    from mcp_bridge.supervisor import descendants  # knows signals that Windows has not

    killed: set[int] = set()
    for _ in range(_ROUNDS):
        # The dead stay in the list, as `pid` reaps none of them.
        born = set(descendants(pid)) - killed
        if not born:
            return
        for one in born:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        killed |= born
