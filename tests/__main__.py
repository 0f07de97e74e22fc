"""Run every test: first what can run side by side, then what needs the machine to itself.

Run: `python -m tests [PYTEST ARGUMENTS]`, as `make test` and `make test-rest` do. The arguments go
to both parts, so paths, `-k` and `-m` choose as they do anywhere else.

A few that fail run once more on the then quiet machine, since a busy one makes some of 16,000 tests
late. The ones that pass then are named at the end: each is a test that has to wait better.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

TOGETHER: Final = ("-n", "3", "--dist", "loadgroup", "--no-loadscope-reorder", "--alone=without")
"""Three workers fill two cores, as a third of the time is waiting."""
ALONE: Final = ("-n", "0", "--alone=only")
AGAIN: Final = ("-n", "0", "--last-failed", "--last-failed-no-failures=none")
A_FEW: Final = 5
"""More do not fail by chance."""
PASSED: Final = 0
FAILED: Final = 1
NOTHING_CHOSEN: Final = 5


def main() -> int:
    arguments = sys.argv[1:]
    codes: set[int] = set()
    with tempfile.TemporaryDirectory() as cache:
        # Of an option given twice pytest takes the last: the first part can have more workers.
        for part in ([*TOGETHER, *arguments], [*arguments, *ALONE]):
            code = _run(part, cache)
            if code not in (PASSED, FAILED, NOTHING_CHOSEN):
                return code  # interrupted, or wrongly called
            codes.add(code)
        if FAILED not in codes:
            return min(codes)
        failed = _last_failed(cache)
        if not 0 < len(failed) <= A_FEW:
            return FAILED
        print(f"{len(failed)} failed; once more, alone:", flush=True)
        code = _run([*arguments, *AGAIN], cache)
    if code == PASSED:
        print("passed only when alone:", *failed, sep="\n  ", flush=True)
    return code


def _run(arguments: list[str], cache: str) -> int:
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
    return subprocess.run(command, check=False).returncode


def _last_failed(cache: str) -> list[str]:
    """The ids of the tests (and files) that failed."""
    file = Path(cache, "v", "cache", "lastfailed")
    return sorted(json.loads(file.read_text())) if file.exists() else []


if __name__ == "__main__":
    sys.exit(main())
