"""A server's control group, where the system lends one: one write ends whatever is in it.

The host makes a group below its own, and what becomes the server enters it first. No process leaves
it by clearing its environment or by losing its parents, as it may leave the mark and the tree that
`orphan_reaper.py` goes by. Groups are to be had on Linux with cgroups v2, for root and in what
systemd delegates, and not in most containers and desktop sessions; there the mark is all.

Files: https://docs.kernel.org/admin-guide/cgroup-v2.html (`cgroup.kill` is of Linux 5.14)
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import Final

from mcp_bridge.transports.orphan_reaper import host_is_gone

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
