"""Run a command until standard input ends, so that it ends with whoever holds the other end.

`python -P parent_watchdog.py COMMAND ARG...`: run as a file, it imports nothing of this project. It
ends with the command's own code when the command ends first. It is for programs that cannot watch
their parent. SIGINT is passed on. On Linux the command does not outlive this process either.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading

# A server that has not ended by itself after this is killed.
TERMINATE_DEADLINE_S = 3.0
_PR_SET_PDEATHSIG = 1


def main() -> int:
    child = subprocess.Popen(
        sys.argv[1:],
        stdin=subprocess.DEVNULL,
        preexec_fn=_end_with_parent if sys.platform == "linux" else None,
    )
    signal.signal(signal.SIGINT, lambda number, _: child.send_signal(number))
    threading.Thread(target=_end_with_stdin, args=(child,), daemon=True).start()
    return child.wait()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _end_with_stdin(child: subprocess.Popen[bytes]) -> None:
    # The bare read: a buffered one would hold its lock when the command ends first.
    while os.read(0, 4096):
        pass
    child.terminate()
    try:
        child.wait(TERMINATE_DEADLINE_S)
    except subprocess.TimeoutExpired:
        child.kill()


if __name__ == "__main__":
    sys.exit(main())
