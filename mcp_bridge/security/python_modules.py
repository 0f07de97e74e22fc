"""Modules that run code or a program of their arguments, or what stdin brings, after `python -m`.

Those that are programs of their own under the same name (`uv`, `IPython`) are judged as such, and
need no place here.
"""

from __future__ import annotations

from typing import Final

TAKE_CODE: Final = (
    # of the standard library
    "_pyrepl", "asyncio", "bdb", "cProfile", "code", "doctest", "idlelib", "lib2to3", "pdb",
    "pickle", "pip", "profile", "profiling", "pty", "pydoc", "runpy", "site", "test", "timeit",
    "trace", "turtledemo", "unittest",
    # debuggers, profilers, runners
    "austin", "coverage", "debugpy", "fire", "honcho", "invoke", "ipdb", "ipykernel", "jupyter",
    "kernprof", "line_profiler", "memory_profiler", "memray", "nox", "pudb", "pyinstrument",
    "pytest", "scalene", "snakeviz", "tox", "viztracer", "watchdog", "watchfiles",
)  # fmt: skip
