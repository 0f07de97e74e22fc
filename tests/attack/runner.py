"""Plays each attack in a process of its own, which is ended when it takes too long.

`python -m tests.attack.runner` reads the names of attacks, one a line, and answers each with its
outcome as one line of JSON. It imports everything once; then it forks for each attack.
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
import time
from pathlib import Path
from typing import Any, Final, Self

import tests.attack
from tests.attack.harness import ATTACKS, Attack, Outcome, measured

_ROOT: Final = Path(__file__).parents[2]
_NOT_ATTACKS: Final = frozenset({"__main__", "harness", "runner"})
_MARK: Final = "outcome: "
_POLL_S: Final = 0.02
_START_S: Final = 120.0
"""For the imports of everything, on a busy machine."""
_SAID_CHARS: Final = 2_000


def all_attacks() -> list[Attack]:
    """Every attack, in the order of the files' names."""
    for module in sorted(each.name for each in pkgutil.iter_modules(tests.attack.__path__)):
        if module not in _NOT_ATTACKS:
            importlib.import_module(f"tests.attack.{module}")
    return list(ATTACKS.values())


class Runner:
    """A process that plays one attack after the other."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.attack.runner"],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=_START_S)  # the end of its input is its own

    def outcome_of(self, one: Attack) -> Outcome:
        """Play `one` and return how it ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(one.name + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(_MARK):
                return Outcome(**json.loads(line.removeprefix(_MARK)))
        raise RuntimeError("the attacks' own process has ended")


def _forked(one: Attack) -> Outcome:
    """Play `one` in a fork of this process."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        pid = os.fork()
        if pid == 0:
            _play(one, Path(folder), said)
        until = time.monotonic() + one.limit_s
        status: int | None = None
        while status is None and time.monotonic() < until:
            time.sleep(_POLL_S)
            ended, code = os.waitpid(pid, os.WNOHANG)
            status = code if ended else None
        if status is None:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return _lost(one, f"it was still going after {one.limit_s:g} s")
        text = said.read_text(encoding="utf-8", errors="replace")
    for line in reversed(text.splitlines()):
        if line.startswith(_MARK):
            return Outcome(**json.loads(line.removeprefix(_MARK)))
    return _lost(one, f"wait status {status}: {text.strip()[-_SAID_CHARS:]}")


def _play(one: Attack, folder: Path, said: Path) -> None:
    """Be the process of `one`: in a session of its own, with a state of its own."""
    code = 1
    try:
        os.setsid()
        os.environ["CAAL_STATE"] = str(folder / "state")
        handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for there, here in ((nothing, 0), (handle, 1), (handle, 2)):
            os.dup2(there, here)
        outcome = asyncio.run(measured(one))
        fields: dict[str, Any] = dataclasses.asdict(outcome)
        print(f"\n{_MARK}{json.dumps(fields)}", flush=True)
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _lost(one: Attack, why: str) -> Outcome:
    endless = one.limit_s
    return Outcome(one.name, 0.0, endless, one.deadline_s, 0.0, one.memory_max_mb, False, why)


def main() -> None:
    os.umask(0o022)
    all_attacks()
    # As the worker does it (caal_node/cli/worker.py).
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        fields: dict[str, Any] = dataclasses.asdict(_forked(ATTACKS[line.rstrip("\n")]))
        print(_MARK + json.dumps(fields), flush=True)


if __name__ == "__main__":
    main()
