"""Run every test: first what can run side by side, then what needs the machine to itself.

Run: `python -m tests [PYTEST ARGUMENTS]`, as `make test` and `make test-rest` do. The arguments go
to both parts, so paths, `-k` and `-m` choose as they do anywhere else.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Final

TOGETHER: Final = ("-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder", "--alone=without")
"""Two workers: half of the time is waiting, but models and speech fill two cores by themselves."""
ALONE: Final = ("-n", "0", "--alone=only")
PASSED: Final = 0
FAILED: Final = 1
NOTHING_CHOSEN: Final = 5


def main() -> int:
    arguments = sys.argv[1:]
    codes: set[int] = set()
    # Of an option given twice pytest takes the last, so more workers can be had for the first part.
    for part in ([*TOGETHER, *arguments], [*arguments, *ALONE]):
        code = subprocess.run([sys.executable, "-m", "pytest", *part], check=False).returncode
        if code not in (PASSED, FAILED, NOTHING_CHOSEN):
            return code  # interrupted, or wrongly called
        codes.add(code)
    return FAILED if FAILED in codes else min(codes)


if __name__ == "__main__":
    sys.exit(main())
