"""Run a command until standard input ends, so that it ends with whoever holds the other end.

`python -P parent_watchdog.py COMMAND ARG...`: run as a file, it imports nothing of this project. It
ends with the command's own code when the command ends first. It is for programs that cannot watch
their parent.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

# A server that has not ended by itself after this is killed.
TERMINATE_DEADLINE_S = 3.0


def main() -> int:
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    threading.Thread(target=_end_with_stdin, args=(child,), daemon=True).start()
    return child.wait()


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
