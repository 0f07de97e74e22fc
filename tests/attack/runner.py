"""Plays one attack in a process of its own, which is ended when it takes too long.

`python -m tests.attack.runner NAME` prints the outcome as one line of JSON.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import tests.attack
from tests.attack.harness import ATTACKS, Attack, Outcome, measured

_ROOT: Final = Path(__file__).parents[2]
_NOT_ATTACKS: Final = frozenset({"__main__", "harness", "runner"})
_MARK: Final = "outcome: "


def all_attacks() -> list[Attack]:
    """Every attack, in the order of the files' names."""
    for module in sorted(each.name for each in pkgutil.iter_modules(tests.attack.__path__)):
        if module not in _NOT_ATTACKS:
            importlib.import_module(f"tests.attack.{module}")
    return list(ATTACKS.values())


def outcome_of(one: Attack) -> Outcome:
    """Play `one` in a process of its own and return how it ended."""
    with tempfile.TemporaryDirectory() as state:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.attack.runner", one.name],
            cwd=_ROOT,
            env={**os.environ, "CAAL_STATE": str(Path(state) / "state")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=one.limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return _lost(one, f"it was still going after {one.limit_s:g} s")
    for line in reversed(said.splitlines()):
        if line.startswith(_MARK):
            return Outcome(**json.loads(line.removeprefix(_MARK)))
    return _lost(one, f"exit {process.returncode}: {said.strip()[-2_000:]}")


def _lost(one: Attack, why: str) -> Outcome:
    endless = one.limit_s
    return Outcome(one.name, 0.0, endless, one.deadline_s, 0.0, one.memory_max_mb, False, why)


def main() -> None:
    os.umask(0o022)
    all_attacks()
    one = ATTACKS[sys.argv[1]]
    # As the worker does it (caal_node/cli/worker.py).
    gc.collect()
    gc.freeze()
    outcome = asyncio.run(measured(one))
    fields: dict[str, Any] = dataclasses.asdict(outcome)
    print(_MARK + json.dumps(fields), flush=True)


if __name__ == "__main__":
    main()
