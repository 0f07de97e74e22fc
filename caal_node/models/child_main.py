"""The program of a child that reads what a stranger has made: limits, then a module's `main`.

It is started by its path as `child_main.py MODULE ARGUMENTS...`, so that it imports what the parent
has, wherever that lies, and nothing of it that the module does not need.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import sys
from pathlib import Path
from typing import Final

MEMORY_BYTES: Final = 1 << 30
"""A compressed page of a PDF may unpack to any size; a usual file needs some 100 MB."""
CPU_S: Final = 90
"""Seconds of processor time, should the parent be gone."""


def _limit() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    _limit()
    logging.disable()  # it would write what the file holds
    importlib.import_module(sys.argv.pop(1)).main()
